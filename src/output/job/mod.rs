//! A job, printed for people and for programs.

mod columns;
mod detail;
mod json;
mod row;
#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};

pub(crate) use self::row::{ColumnChange, JobColumns};
use super::table::SHORT;
use crate::job::{Entry, Pause, Pauses, State};

#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) now: DateTime<Utc>,
    pub(crate) is_revealed: bool,
    /// Whether secrets are hidden from programs too, unless people see them.
    pub(crate) is_covered: bool,
    pub(crate) pause: Option<&'a Pause>,
    /// Whether no conductor can ever run its command.
    pub(crate) has_invalid_command: bool,
}

impl<'a> JobView<'a> {
    pub(crate) fn of(entry: &'a Entry, now: DateTime<Utc>) -> Self {
        Self {
            entry,
            now,
            is_revealed: false,
            is_covered: false,
            pause: None,
            has_invalid_command: false,
        }
    }

    pub(crate) fn covered(self, is_covered: bool) -> Self {
        Self { is_covered, ..self }
    }

    /// Adds whether a pause keeps the job from being claimed.
    pub(crate) fn under(self, pauses: &'a Pauses) -> Self {
        let job = self
            .entry
            .job()
            .filter(|job| job.state() == State::Unclaimed);
        Self {
            pause: job.and_then(|job| pauses.of(&job.name, self.now)),
            ..self
        }
    }

    fn since(&self, time: DateTime<Utc>) -> Duration {
        (self.now - time).to_std().unwrap_or_default()
    }
}

pub(crate) fn count_jobs(jobs: u64) -> String {
    match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

/// Returns enough of a reference for people; keys are never cut.
pub(crate) fn short(reference: &str) -> &str {
    match reference.starts_with("key:") {
        true => reference,
        false => reference.get(..SHORT).unwrap_or(reference),
    }
}

pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.trunc_subsecs(6)
        .to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
