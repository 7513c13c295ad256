//! The nodes that came and went, and what is known of those behind the one that is being told.

use std::collections::VecDeque;

use crate::job::{JobKey, Owner};

/// A node that came or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::board::zookeeper) enum Change {
    JobCame(JobKey),
    JobWent(JobKey),
    LockCame(JobKey),
    LockWent(JobKey),
    TrashCame(JobKey),
    TrashWent(JobKey),
    ConductorCame(Owner),
    ConductorWent(Owner),
    /// Somebody wrote to a node of this job, to which nobody writes.
    Meddled(JobKey),
}

impl Change {
    pub(in crate::board::zookeeper) fn job(&self) -> Option<&JobKey> {
        match self {
            Self::JobCame(key)
            | Self::JobWent(key)
            | Self::LockCame(key)
            | Self::LockWent(key)
            | Self::TrashCame(key)
            | Self::TrashWent(key)
            | Self::Meddled(key) => Some(key),
            Self::ConductorCame(_) | Self::ConductorWent(_) => None,
        }
    }

    /// Whether it is about the shelf where jobs wait, whose changes come in the order they happened.
    fn is_on_board(&self) -> bool {
        matches!(
            self,
            Self::JobCame(_) | Self::JobWent(_) | Self::LockCame(_) | Self::LockWent(_)
        )
    }
}

/// The changes behind the one that is being told.
pub(super) struct Ahead<'a> {
    pub(super) changes: &'a mut VecDeque<Change>,
    /// How many of them are still to be told.
    pub(super) left: &'a mut usize,
}

impl Ahead<'_> {
    /// Returns what happens next to a job, as far as the board itself goes.
    pub(super) fn next_on_board(&self, key: &JobKey) -> Option<&Change> {
        let mut next = self.changes.iter();
        next.find(|change| change.is_on_board() && change.job() == Some(key))
    }

    /// Whether it is still to be told.
    pub(super) fn has(&self, wanted: &Change) -> bool {
        self.changes.contains(wanted)
    }

    /// Takes a change out, if it is there.
    pub(super) fn take(&mut self, wanted: &Change) -> bool {
        let found = self.changes.iter().position(|change| change == wanted);
        if let Some(at) = found {
            *self.left -= usize::from(at < *self.left);
            self.changes.remove(at);
        }
        found.is_some()
    }
}
