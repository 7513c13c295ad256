//! A job for tests that are about something else.

use super::{Job, JobKey};

impl Job {
    /// Makes a job of which nothing matters but its name.
    pub(crate) fn named(name: &str) -> Self {
        Self::new(JobKey::new("k"), "u".to_owned(), name.to_owned())
    }
}
