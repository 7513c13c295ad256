//! A sample job for tests.

use super::{Job, JobKey};

impl Job {
    /// Makes a job where only the name matters.
    pub(crate) fn named(name: &str) -> Self {
        Self::new(JobKey::new("k"), "u".to_owned(), name.to_owned())
    }
}
