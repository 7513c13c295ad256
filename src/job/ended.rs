//! The history: records of jobs after they left the board.

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{AuditEntry, Book, Failure, Job, Location, Owner, Priority, shortened};
use crate::{names::named, secret::covered_text};

pub(crate) const HISTORY: u32 = 10_000;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_on: Option<DateTime<Utc>>,
}

impl Identity {
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

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) enum Outcome ("outcome", str::eq) {
        Consumed => "consumed",
        /// It was consumed although its command failed.
        Failed => "failed",
        Purged => "purged",
        /// It continues on another board.
        Moved => "moved",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) on: DateTime<Utc>,
    pub(crate) outcome: Outcome,
    pub(crate) owner: Option<Owner>,
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    pub(crate) has_succeeded: bool,
}

impl Job {
    /// Returns the audit entry of the intervention that ended or trashed it.
    pub(crate) fn sent_by(&self) -> Option<&AuditEntry> {
        let action = match (
            self.location,
            self.ended.as_ref().map(|ended| ended.outcome),
        ) {
            (Location::History, Some(Outcome::Purged)) => "purged",
            (Location::History, Some(Outcome::Moved)) => AuditEntry::MOVED,
            (Location::History, _) => "consumed",
            (Location::Trash, _) => "trashed",
            (Location::Board, _) => return None,
        };
        let audit = self.attempts.audit.as_ref();
        audit.filter(|audit| audit.is_of(action))
    }

    /// Returns the last intervention; of an ended job, only one that may have ended it.
    pub(crate) fn last_action(&self) -> Option<&AuditEntry> {
        const EARLIER: [&str; 5] = [
            "abandoned",
            "changed",
            "restored",
            AuditEntry::RETRIED,
            AuditEntry::RECEIVED,
        ];
        let is_earlier = |action: &str| self.ended.is_some() && EARLIER.contains(&action);
        let last = self.attempts.audit.as_ref();
        last.filter(|it| !it.action.as_deref().is_some_and(is_earlier))
    }

    /// Returns who acted last; of a consumed job without an action, the owner that ended it.
    pub(crate) fn by(&self) -> Option<Cow<'_, str>> {
        if let Some(audit) = self.last_action() {
            return Some(audit.by.as_str().into());
        }
        let ended = self.ended.as_ref();
        let ended = ended.filter(|it| it.outcome != Outcome::Purged)?;
        ended.owner.as_ref().map(Owner::text)
    }

    /// Returns the reason of the last action; for a failure, its headline.
    pub(crate) fn reason(&self) -> Option<Cow<'_, str>> {
        let reason = self.last_action()?.reason.as_deref()?;
        let failure = self.attempts.failures.last();
        let failure = failure.filter(|it| it.reason == reason);
        Some(failure.map_or(reason.into(), |it| it.headline().into()))
    }

    /// Returns the failure that moved it to the trash; `None` if an operator did.
    pub(crate) fn fatal_failure(&self) -> Option<&Failure> {
        let last = self
            .attempts
            .failures
            .last()
            .filter(|_| self.location == Location::Trash)?;
        // An operator's reason outweighs an earlier failure.
        let is_reason = |it: &AuditEntry| it.reason.as_deref() == Some(&last.reason);
        self.sent_by().is_none_or(is_reason).then_some(last)
    }

    /// Returns the number of failed attempts: all but a running and a successful one.
    pub(crate) fn failed_attempts(&self) -> u32 {
        let has_succeeded = self.ended.as_ref().is_some_and(|it| it.has_succeeded);
        let not_failed = u32::from(self.holding.is_some() || has_succeeded);
        self.attempts.count.saturating_sub(not_failed)
    }

    /// Returns the address of the board that it was moved from, from the audit entry.
    pub(crate) fn moved_from(&self) -> Option<String> {
        let audit = self.attempts.audit.as_ref();
        let audit = audit.filter(|it| it.action.as_deref() == Some(AuditEntry::RECEIVED))?;
        let from = audit.reason.as_deref()?.strip_prefix(Self::MOVED_FROM);
        // A peer may write a long text, or an address with a password.
        from.filter(|from| from.len() <= 1000).map(covered_text)
    }

    pub(crate) const MOVED_FROM: &str = "moved from ";

    pub(crate) fn last_exit(&self) -> Option<(Option<i32>, Option<i32>)> {
        if self.ended.as_ref().is_some_and(|ended| ended.has_succeeded) {
            return Some((Some(0), None));
        }
        let last = self.attempts.failures.last()?;
        Some((last.exit_code, last.signal))
    }

    pub(crate) fn waited(&self) -> Option<TimeDelta> {
        let waited = self.attempts.first_claimed_on? - self.created_on?;
        Some(waited.max(TimeDelta::zero()))
    }

    pub(crate) fn took(&self) -> Option<TimeDelta> {
        let ended = self.ended.as_ref()?;
        let took = ended.on - ended.claimed_on?;
        // Clocks may disagree.
        Some(took.max(TimeDelta::zero()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_failure_is_its_headline() {
        let failure = Failure {
            exit_code: Some(3),
            ..Failure::reported("the command ended with code 3", "night")
        };
        let reason = |reason: &str| {
            let mut job = Job::named("a");
            job.attempts.audit = Some(AuditEntry::now("trashed", "night", Some(reason)));
            job.attempts.failures = vec![failure.clone()];
            job.reason().map(Cow::into_owned)
        };
        assert_eq!(reason(&failure.reason).as_deref(), Some("exit 3"));
        assert_eq!(reason("no use").as_deref(), Some("no use"));
    }
}
