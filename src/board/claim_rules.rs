//! Which jobs a claim may take, and whether it counts as an attempt.

use std::time::Duration;

use crate::job::Term;

/// How long a job is delayed if it may not be claimed ahead of its turn.
pub(crate) const NOT_AHEAD: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimRules {
    /// False for claims by hand.
    pub(crate) is_attempt: bool,
    /// How many of the claimed jobs start immediately.
    ///
    /// The others wait for their turn, and their claims become attempts once they have a result. A job whose claim
    /// expired before that is not claimed ahead again, or its attempts might never be counted: it is delayed by
    /// [`NOT_AHEAD`] for every claimant.
    pub(crate) at_once: usize,
    /// Whether to skip delayed jobs. False when the job was requested by name.
    pub(crate) respects_delay: bool,
}

impl ClaimRules {
    /// Claims named jobs by hand, also delayed ones, and counts no attempt.
    pub(crate) const BY_HAND: Self = Self {
        is_attempt: false,
        at_once: usize::MAX,
        respects_delay: false,
    };

    /// Whether a claim needs the sidecar; a job with an unreadable sidecar is then refused.
    ///
    /// A claim by name that only writes an owner needs none.
    pub(crate) fn needs_sidecar(self, term: Term) -> bool {
        self.is_attempt || self.respects_delay || matches!(term, Term::Lease(_))
    }
}
