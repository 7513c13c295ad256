//! Results of board operations.

use crate::job::{Fence, JobKey};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) key: JobKey,
    pub(crate) sequence: i64,
    /// The fence of the claim that was posted with the job.
    pub(crate) fence: Option<Fence>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Whether a job with the same uuid left the trash.
    pub(crate) replaced_namesake: bool,
    /// Why the history lacks the job.
    pub(crate) forgotten: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) server: String,
    pub(crate) jobs: u64,
    pub(crate) trashed: u64,
    /// Number of other trashed jobs, from boards that share the trash.
    pub(crate) trashed_by_siblings: u64,
    /// Whether the board has a trace of any job, present or past.
    pub(crate) is_used: bool,
    pub(crate) warning: Option<String>,
}
