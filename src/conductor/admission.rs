//! Decides whether a conductor takes an unclaimed job, and explains why not.

use std::fmt;

use chrono::{DateTime, Utc};

use super::policy::{ExecutionPolicy, Forbidden, excerpt};
use crate::{
    board::filter::Filters,
    job::{Entry, Job, Pauses},
    process::clock,
};

#[derive(Debug)]
pub(crate) enum Rejection {
    Policy(Forbidden),
    Record(String),
    Pause(String),
}

impl Rejection {
    /// Whether the job needs another conductor or a change.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Policy(reason) => reason.is_refusal(),
            Self::Record(_) => true,
            Self::Pause(_) => false,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(reason) => reason.fmt(f),
            Self::Record(text) | Self::Pause(text) => f.write_str(&excerpt(text)),
        }
    }
}

pub(crate) fn is_meant(filters: &Filters, job: Job, now: DateTime<Utc>) -> Option<Job> {
    let entry = Entry::Job(Box::new(job));
    match (filters.matches(&entry, now), entry) {
        (true, Entry::Job(job)) => Some(*job),
        _ => None,
    }
}

/// Requires that the policy allows the job and that it is readable.
pub(crate) fn admit(policy: &ExecutionPolicy, job: &Job) -> Result<(), Rejection> {
    let is_whole = job.may_be_offered();
    match policy.admit(job) {
        Ok(()) if is_whole => Ok(()),
        // Without its details it is unknown whether the job has a command.
        Err(reason) if is_whole || job.details.is_some() => Err(Rejection::Policy(reason)),
        _ => Err(Rejection::Record(job.problem.clone().unwrap_or_default())),
    }
}

/// Like [`admit`], and requires that no pause applies. As in a diagnosis, only an unreadable record matters more than a
/// pause.
pub(super) fn admit_now(
    policy: &ExecutionPolicy,
    pauses: &Pauses,
    job: &Job,
) -> Result<(), Rejection> {
    match (admit(policy, job), pauses.of(&job.name, clock::wall())) {
        (Err(record @ Rejection::Record(_)), _) => Err(record),
        (_, Some(pause)) => Err(Rejection::Pause(pause.to_string())),
        (admitted, None) => admitted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{AuditEntry, Pause};

    #[test]
    fn paused_job_is_skipped_because_of_its_pause() {
        let audit = AuditEntry::now("paused", "olga", None);
        let pause = Pause::new("night-*".to_owned(), None, audit);
        let pauses = Pauses::new(vec![pause], clock::wall());
        let policy = ExecutionPolicy::unrestricted();
        let reason = |name| admit_now(&policy, &pauses, &Job::named(name)).unwrap_err();
        assert!(matches!(reason("night-1"), Rejection::Pause(_)));
        assert!(matches!(reason("day-1"), Rejection::Policy(_)));
    }
}
