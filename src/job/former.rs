//! What a job brings with it that was on a board before.

use chrono::{DateTime, Utc};

use super::{Draft, History, Job, JobKey, Shelf};

/// What a job was on the board that it comes from, and is to be again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Former {
    /// Where it belongs: on the board, or in the trash.
    pub(crate) shelf: Shelf,
    /// Its posting, as boards of the kind store it to which it comes; empty, if it is to be made anew.
    pub(crate) raw: Vec<u8>,
    /// Under which name to keep a record that cannot be read, and so says no uuid.
    pub(crate) malformed: Option<JobKey>,
    /// Its number, which it keeps where none was given out that is greater.
    pub(crate) sequence: Option<i64>,
    pub(crate) created_on: Option<DateTime<Utc>>,
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    pub(crate) history: History,
}

impl Draft {
    pub(crate) fn shelf(&self) -> Shelf {
        self.former
            .as_ref()
            .map_or(Shelf::Board, |former| former.shelf)
    }

    /// Returns it with what it was before; none, for a new job.
    pub(crate) fn with_former(&self) -> Option<(&Self, &Former)> {
        Some((self, self.former.as_deref()?))
    }
}

impl Former {
    /// Numbers from here on are not kept: a board counts on from the greatest one.
    const GREATEST: i64 = 1 << 40;

    /// Takes over what a job was, with this for its posting.
    pub(crate) fn of(job: &Job, raw: Vec<u8>) -> Self {
        Self {
            shelf: job.shelf,
            raw,
            malformed: None,
            sequence: job
                .sequence
                .filter(|number| (0..Self::GREATEST).contains(number)),
            created_on: job.created_on,
            trashed_on: job.trashed_on,
            history: job.history.clone(),
        }
    }

    /// Has the attempts begin anew; what failed before is still told.
    pub(crate) fn begin_anew(&mut self) {
        self.history = History {
            failures: std::mem::take(&mut self.history.failures),
            remark: self.history.remark.take(),
            ..History::default()
        };
    }
}
