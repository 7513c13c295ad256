//! Results of board operations.

use chrono::Utc;

use super::Capabilities;
use crate::{
    job::{Attempts, ClaimEnd, Claimant, Claimed, Draft, Fence, Holding, Job, JobKey, Term},
    problem::Problem,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) key: JobKey,
    pub(crate) sequence: i64,
    /// The fence of the claim that was posted with the job.
    pub(crate) fence: Option<Fence>,
}

impl Posted {
    /// Returns the job and its claim, if it was posted with one. The claim counts as its first attempt.
    pub(crate) fn claimed(
        self,
        draft: &Draft,
        by: &Claimant,
        capabilities: Capabilities,
    ) -> Option<Claimed> {
        let (fence, now) = (self.fence?, Utc::now());
        let end = match by.term {
            Term::Indefinite => ClaimEnd::Never,
            Term::For(_) | Term::Lease(_) if capabilities.has_expiring_claims => ClaimEnd::Timed,
            Term::For(_) | Term::Lease(_) => ClaimEnd::Session,
        };
        let job = Job {
            priority: draft.priority,
            sequence: Some(self.sequence),
            created_on: Some(now),
            holding: Some(Holding {
                claimed_on: Some(now),
                ..Holding::new(Some(by.owner.clone()), end, Some(fence.clone()))
            }),
            book: draft.book.clone(),
            details: Some(draft.details.clone()),
            attempts: Attempts {
                count: 1,
                ..Attempts::default()
            },
            ..Job::new(self.key, draft.uuid.to_string(), draft.name.clone())
        };
        Some(Claimed {
            job,
            fence,
            is_first: true,
        })
    }
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
    /// A problem of the server that its totals reveal.
    pub(crate) problem: Option<Problem>,
}
