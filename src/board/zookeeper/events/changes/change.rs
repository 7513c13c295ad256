//! The nodes that came and went.

use crate::job::{JobKey, Owner};

/// A node that came or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    JobCame(JobKey),
    JobWent(JobKey),
    LockCame(JobKey),
    LockWent(JobKey),
    TrashCame(JobKey),
    TrashWent(JobKey),
    ConductorCame(Owner),
    ConductorWent(Owner),
    /// These names are paused, or in another way.
    Paused(String),
    Resumed(String),
    /// Somebody wrote to a node of this job, to which nobody writes.
    Meddled(JobKey),
}

impl Change {
    pub(crate) fn job(&self) -> Option<&JobKey> {
        match self {
            Self::JobCame(key)
            | Self::JobWent(key)
            | Self::LockCame(key)
            | Self::LockWent(key)
            | Self::TrashCame(key)
            | Self::TrashWent(key)
            | Self::Meddled(key) => Some(key),
            Self::ConductorCame(_)
            | Self::ConductorWent(_)
            | Self::Paused(_)
            | Self::Resumed(_) => None,
        }
    }

    /// Whether it is about the shelf where jobs wait, whose changes come in the order they happened.
    pub(super) fn is_on_board(&self) -> bool {
        matches!(
            self,
            Self::JobCame(_) | Self::JobWent(_) | Self::LockCame(_) | Self::LockWent(_)
        )
    }
}
