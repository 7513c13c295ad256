//! A job, printed for people and for programs.

mod columns;
mod detail;
mod row;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};

pub(crate) use self::row::{ColumnChange, JobColumns};
use super::table::SHORT;
use crate::{
    job::{Entry, Job, Pause, Pauses, State},
    secret::covered,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) now: DateTime<Utc>,
    pub(crate) is_revealed: bool,
    /// Whether secrets are hidden from programs too, unless people see them.
    pub(crate) is_covered: bool,
    /// Whether the reason is given as stored: a dump is loaded again.
    pub(crate) is_dump: bool,
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
            is_dump: false,
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
}

macro_rules! write_members {
    ($map:ident { $($key:literal: $value:expr,)+ }) => { $($map.serialize_entry($key, &$value)?;)+ };
}

/// Every key is always there.
impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (entry, job, claim) = (self.entry, self.entry.job(), self.entry.holding());
        let ended = job.and_then(|job| job.ended.as_ref());
        let attempts = job.map(|job| &job.attempts);
        let audit = job.and_then(|job| match self.is_dump {
            true => job.attempts.audit.as_ref(),
            false => job.last_action(),
        });
        let by = match self.is_dump {
            true => audit.map(|audit| audit.by.as_str().into()),
            false => job.and_then(Job::by),
        };
        let (exit_code, signal) = job.and_then(Job::last_exit).unzip();
        let time = |time: Option<DateTime<Utc>>| time.map(rfc3339);
        let seconds = |span: Option<TimeDelta>| span.map(|span| span.as_seconds_f64());
        let (problem, raw) = match entry {
            Entry::Job(job) => (job.problem.as_deref(), &job.raw),
            Entry::Malformed(record) => (Some(&*record.problem), &record.raw),
        };
        let hides = self.is_covered && !self.is_revealed;
        let details = job.and_then(Job::details);
        let hidden = details.as_ref().filter(|_| hides).map(|it| covered(it));
        let reason = match self.is_dump {
            true => audit.and_then(|audit| audit.reason.as_deref().map(Cow::Borrowed)),
            false => job.and_then(Job::reason),
        };
        let mut map = serializer.serialize_map(None)?;
        write_members! { map {
            "uuid": job.map(|job| &job.uuid),
            "key": entry.key(),
            "name": job.map(|job| &job.name),
            "state": entry.state(),
            "priority": job.map(|job| job.priority),
            "sequence": job.and_then(|job| job.sequence),
            "created_on": time(job.and_then(|job| job.created_on)),
            "last_modified": time(job.and_then(|job| job.last_modified)),
            "owner": claim.and_then(|claim| claim.owner.as_ref()),
            "lease": claim.map(|claim| claim.end),
            "expires_in": claim.and_then(|claim| claim.expires_in).map(|left| left.as_secs_f64()),
            "claimed_on": time(claim.and_then(|claim| claim.claimed_on)),
            "fence": claim.and_then(|claim| claim.fence.as_ref()),
            "trashed_on": time(job.and_then(|job| job.trashed_on)),
            "ended_on": time(ended.map(|ended| ended.on)),
            "outcome": ended.map(|ended| ended.outcome),
            "by": by,
            "action": audit.and_then(|audit| audit.action.as_ref()),
            "action_on": time(audit.and_then(|audit| audit.on)),
            "reason": reason,
            "waited": seconds(job.and_then(Job::waited)),
            "took": seconds(job.and_then(Job::took)),
            "exit_code": exit_code.flatten(),
            "signal": signal.flatten(),
            "book": job.and_then(|job| job.book.as_ref()),
            "details": hidden.as_ref().or(details.as_deref()),
            "attempts": attempts.map(|attempts| attempts.count),
            "postponed": attempts.map(|attempts| attempts.postponed),
            "not_before": time(attempts.and_then(|attempts| attempts.not_before)),
            "last_failure": attempts.and_then(|attempts| attempts.failures.last()),
            "failures": attempts.map(|attempts| &attempts.failures),
            "problem": problem,
        } }
        if job.is_none_or(|job| !job.raw.is_empty()) {
            // Secrets in an unreadable posting cannot be found.
            let raw = if hides { &[] } else { raw.as_slice() };
            write_members! { map { "size": entry.size(), "raw": BASE64.encode(raw), } }
        }
        map.end()
    }
}

pub(crate) fn count_jobs(jobs: u64) -> String {
    match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

/// Groups thousands: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns enough of a reference for people; keys are never cut.
pub(crate) fn short(reference: &str) -> &str {
    match reference.starts_with("key:") {
        true => reference,
        false => reference.get(..SHORT).unwrap_or(reference),
    }
}

/// Returns the name and the short reference of a record; an unreadable record has its key for both.
pub(crate) fn titled(name: &str, reference: &str) -> String {
    match name.is_empty() || reference.strip_prefix("key:").unwrap_or(reference) == name {
        true => short(reference).to_owned(),
        false => format!("{name} {}", short(reference)),
    }
}

pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.trunc_subsecs(6)
        .to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
