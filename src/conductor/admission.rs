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
    /// Only the pause prevents the claim.
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

/// Like [`admit`], and requires that no pause applies.
pub(super) fn admit_now(
    policy: &ExecutionPolicy,
    pauses: &Pauses,
    job: &Job,
) -> Result<(), Rejection> {
    admit(policy, job)?;
    match pauses.of(&job.name, clock::wall()) {
        None => Ok(()),
        Some(pause) => Err(Rejection::Pause(pause.to_string())),
    }
}
