//! The records of moves to another board.

use chrono::{DateTime, Utc};

use super::Owner;

/// The most records that a board reads; a move leaves at most a few hundred.
pub(crate) const MAX_RECORDS: usize = 10_000;

/// A move that has begun on the source board, or a job that it has handed over.
///
/// Present until the target board has released the job. Peers never see it, and it does not depend on the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveRecord {
    /// Identifies the move: both copies of a job are claimed under this name.
    pub(crate) owner: Owner,
    pub(crate) stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Jobs may be moving to the board of this name.
    Begun { to: String, on: DateTime<Utc> },
    /// The job of this uuid was consumed here, so the copy on the target is the job from now on.
    Committed { uuid: String },
}

impl MoveRecord {
    pub(crate) fn commit(owner: &Owner, uuid: &str) -> Self {
        let (owner, uuid) = (owner.clone(), uuid.to_owned());
        let stage = Stage::Committed { uuid };
        Self { owner, stage }
    }
}
