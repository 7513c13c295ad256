//! What is remembered of a job after it has left its board.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Book, Job, Owner, Priority, Shelf, shortened};
use crate::names::named;

/// How many jobs a board remembers after they have left it, unless somebody says otherwise.
pub(crate) const HISTORY: u32 = 10_000;

/// What a job is, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) uuid: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_on: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) book: Option<Book>,
    /// When it was claimed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_on: Option<DateTime<Utc>>,
}

impl Identity {
    /// Returns it with as much of its texts as is kept of them.
    pub(crate) fn shortened(&self) -> Self {
        Self {
            uuid: shortened(&self.uuid),
            name: shortened(&self.name),
            book: self.book.as_ref().map(|book| Book {
                name: shortened(&book.name),
                uuid: shortened(&book.uuid),
            }),
            ..self.clone()
        }
    }
}

impl From<&Job> for Identity {
    fn from(job: &Job) -> Self {
        Self {
            uuid: job.uuid.clone(),
            name: job.name.clone(),
            priority: job.priority,
            sequence: job.sequence,
            created_on: job.created_on,
            book: job.book.clone(),
            claimed_on: job.held_since(),
        }
    }
}

/// Who did something to a job that is not its ordinary course, what it was, when, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Remark {
    pub(crate) by: String,
    /// The past form of the verb. Earlier versions kept neither it nor the time, and later ones may know more of
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl Remark {
    /// The action of whoever takes a job to another board.
    pub(crate) const MOVED: &str = "moved";

    /// The action of a move on the job that it brings to a board.
    pub(crate) const RECEIVED: &str = "received";

    pub(crate) fn now(action: &str, by: &str, reason: Option<&str>) -> Self {
        Self {
            by: shortened(by),
            action: Some(action.to_owned()),
            on: Some(Utc::now().trunc_subsecs(6)),
            reason: reason.map(shortened),
        }
    }

    /// Whether it says who did this, and not something else before it.
    pub(crate) fn is_of(&self, action: &str) -> bool {
        self.action.as_deref().is_none_or(|done| done == action)
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) enum Departure ("outcome", str::eq) {
        Consumed => "consumed",
        /// It was consumed although its command failed.
        Failed => "failed",
        Purged => "purged",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) on: DateTime<Utc>,
    pub(crate) departure: Departure,
    /// Who had it last, where that is remembered.
    pub(crate) owner: Option<Owner>,
    /// When it was claimed last.
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    /// Whether it ended by the success of a command.
    pub(crate) has_succeeded: bool,
}

impl Job {
    /// Returns who brought it where it is now, in the trash or to its end, if that was not its
    /// ordinary course.
    pub(crate) fn sent_by(&self) -> Option<&Remark> {
        let action = match (self.shelf, self.ended.as_ref().map(|ended| ended.departure)) {
            (Shelf::Past, Some(Departure::Purged)) => "purged",
            (Shelf::Past, _) => "consumed",
            (Shelf::Trash, _) => "trashed",
            (Shelf::Board, _) => return None,
        };
        let remark = self.history.remark.as_ref();
        remark.filter(|remark| remark.is_of(action) || self.is_moved())
    }

    /// Returns how many of its attempts have failed: all but a running one and a successful one.
    pub(crate) fn failed_attempts(&self) -> u32 {
        let has_succeeded = self.ended.as_ref().is_some_and(|it| it.has_succeeded);
        let not_failed = u32::from(self.holding.is_some() || has_succeeded);
        self.history.attempts.saturating_sub(not_failed)
    }

    /// Whether it left its board for another one, where it goes on.
    pub(crate) fn is_moved(&self) -> bool {
        let remark = self
            .history
            .remark
            .as_ref()
            .filter(|_| self.ended.is_some());
        remark.is_some_and(|remark| remark.action.as_deref() == Some(Remark::MOVED))
    }

    /// Returns the address of the board that it was moved from, where the audit entry has it.
    pub(crate) fn moved_from(&self) -> Option<&str> {
        let remark = self.history.remark.as_ref();
        let remark = remark.filter(|it| it.action.as_deref() == Some(Remark::RECEIVED))?;
        let from = remark.reason.as_deref()?.strip_prefix(Self::MOVED_FROM);
        // Peers can write to the record, too.
        from.filter(|from| from.len() <= 1000)
    }

    /// Begins the reason of that entry.
    pub(crate) const MOVED_FROM: &str = "moved from ";

    /// Returns the exit code and the signal by which the last attempt ended whose end is known.
    pub(crate) fn last_exit(&self) -> Option<(Option<i32>, Option<i32>)> {
        if self.ended.as_ref().is_some_and(|ended| ended.has_succeeded) {
            return Some((Some(0), None));
        }
        let last = self.history.failures.last()?;
        Some((last.exit_code, last.signal))
    }

    /// Returns how long it waited for its first claim, as far as that is known.
    pub(crate) fn waited(&self) -> Option<TimeDelta> {
        let waited = self.history.first_claimed_on? - self.created_on?;
        Some(waited.max(TimeDelta::zero()))
    }

    /// Returns how long it took from its last claim to its end.
    pub(crate) fn took(&self) -> Option<TimeDelta> {
        let ended = self.ended.as_ref()?;
        let took = ended.on - ended.claimed_on?;
        // Clocks may disagree.
        Some(took.max(TimeDelta::zero()))
    }
}
