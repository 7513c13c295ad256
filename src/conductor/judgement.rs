//! Whether a conductor takes a job that nobody has: asked by itself, and by whoever wants to know why none
//! does.

use std::fmt;

use chrono::{DateTime, Utc};

use super::policy::{Policy, Unfit, excerpt};
use crate::{
    board::filter::Filters,
    job::{Entry, Job, Pauses},
};

#[derive(Debug)]
pub(crate) enum Against {
    Policy(Unfit),
    /// What is kept beside it cannot be read, or not all of it.
    Record(String),
    /// It would be taken, were it not for that.
    Pause(String),
}

impl Against {
    /// Whether the job is one to be conducted, though not here, or not as it is.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Policy(unfit) => unfit.is_refusal(),
            Self::Record(_) => true,
            Self::Pause(_) => false,
        }
    }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(unfit) => unfit.fmt(f),
            Self::Record(text) | Self::Pause(text) => f.write_str(&excerpt(text)),
        }
    }
}

/// Returns the job if the filters of a conductor mean it.
pub(crate) fn is_meant(filters: &Filters, job: Job, now: DateTime<Utc>) -> Option<Job> {
    let entry = Entry::Job(Box::new(job));
    match (filters.matches(&entry, now), entry) {
        (true, Entry::Job(job)) => Some(*job),
        _ => None,
    }
}

/// Whether a job may be performed under a policy, and can be read whole.
pub(crate) fn admit(policy: &Policy, job: &Job) -> Result<(), Against> {
    let is_whole = job.may_be_offered();
    match policy.admit(job) {
        Ok(()) if is_whole => Ok(()),
        // Without its details nobody knows whether it has a command.
        Err(reason) if is_whole || job.details.is_some() => Err(Against::Policy(reason)),
        _ => Err(Against::Record(job.problem.clone().unwrap_or_default())),
    }
}

/// Whether a job may be performed as [`admit`] has it, and is not paused.
pub(super) fn admit_now(policy: &Policy, pauses: &Pauses, job: &Job) -> Result<(), Against> {
    admit(policy, job)?;
    match pauses.of(&job.name, Utc::now()) {
        None => Ok(()),
        Some(pause) => Err(Against::Pause(pause.to_string())),
    }
}
