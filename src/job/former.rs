//! The earlier state of a moved job.

use chrono::{DateTime, Utc};

use super::{Draft, History, Job, JobKey, Shelf};

/// The state on the source board, which the job keeps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Former {
    /// Where it belongs: on the board, or in the trash.
    pub(crate) shelf: Shelf,
    /// Its posting in the target board's format; empty to write a new one.
    pub(crate) raw: Vec<u8>,
    /// The key of an unreadable record, which has no known uuid.
    pub(crate) malformed: Option<JobKey>,
    /// Its number, which it keeps unless the target board has used a greater one.
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

    /// Returns it with its earlier state; `None` for a new job.
    pub(crate) fn with_former(&self) -> Option<(&Self, &Former)> {
        Some((self, self.former.as_deref()?))
    }
}

impl Former {
    /// Numbers from here on are not kept: a board continues after its greatest number.
    const GREATEST: i64 = 1 << 40;

    /// Takes the state of a job, with this posting.
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

    /// Resets the attempts; earlier failures stay visible.
    pub(crate) fn begin_anew(&mut self) {
        self.history = History {
            failures: std::mem::take(&mut self.history.failures),
            remark: self.history.remark.take(),
            ..History::default()
        };
    }
}
