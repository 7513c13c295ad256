//! Who may claim and settle a job, and how that changes its counts. Redis applies these rules in its scripts, ZooKeeper
//! and embedded boards apply them here.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{BoardError, Result, wire::sidecar::Sidecar};
use crate::job::{
    Authority, Claimant, Claimed, Decision, ExpectedState, Failure, Fence, Holding, JobChange,
    Location, Owner, Revision, Settlement, Term,
};

/// How long a job is delayed if it may not be claimed ahead of its turn.
pub(crate) const NOT_AHEAD: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimRules {
    /// False for claims by hand.
    pub(crate) is_attempt: bool,
    /// How many of the claimed jobs start immediately.
    ///
    /// The others wait for their turn, and their claims become attempts once they have a result. If a claim expires
    /// first, the job is not claimed ahead again, so that its attempts are counted: a claim that would wait
    /// for its turn is refused, with a delay of [`NOT_AHEAD`].
    pub(crate) starting: usize,
    /// Whether to skip delayed jobs. False when the job was requested by name.
    pub(crate) respects_delay: bool,
}

impl ClaimRules {
    /// Claims named jobs by hand, also delayed ones, and counts no attempt.
    pub(crate) const BY_HAND: Self = Self {
        is_attempt: false,
        starting: usize::MAX,
        respects_delay: false,
    };

    /// Whether a claim needs the sidecar; a job with an unreadable sidecar is then refused.
    ///
    /// A claim by name that only writes an owner needs none.
    pub(crate) fn needs_sidecar(self, term: Term) -> bool {
        self.is_attempt || self.respects_delay || matches!(term, Term::Lease(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimRequest<'a> {
    pub(super) by: &'a Claimant,
    pub(super) rules: ClaimRules,
    /// Whether the job waits for its turn after the claim.
    pub(super) is_ahead: bool,
}

impl<'a> ClaimRequest<'a> {
    pub(super) fn after(won: usize, by: &'a Claimant, rules: ClaimRules) -> Self {
        let is_ahead = rules.is_attempt && won >= rules.starting;
        Self {
            by,
            rules,
            is_ahead,
        }
    }

    pub(super) fn is_counted(self) -> bool {
        self.rules.is_attempt && !self.is_ahead
    }

    /// Whether this claim is refused if the job's sidecar is unreadable.
    pub(super) fn needs_sidecar(self) -> bool {
        self.rules.needs_sidecar(self.by.term)
    }

    pub(super) fn permit(self, side: &Sidecar, now: DateTime<Utc>) -> Result<()> {
        let delay = side.not_before;
        if let Some(until) = delay.filter(|until| self.rules.respects_delay && *until > now) {
            return Err(BoardError::Delayed { until });
        }
        if self.is_ahead && side.ahead {
            let until = now + NOT_AHEAD;
            return Err(BoardError::Delayed { until });
        }
        Ok(())
    }
}

/// Rejects a change by anyone but the owner; with a fence, also after another claim of that owner.
pub(super) fn permit_owner(
    held: Option<&Holding>,
    wanted: &Owner,
    fence: Option<&Fence>,
) -> Result<()> {
    let held = held.ok_or(BoardError::NotClaimed)?;
    if planted!(AnyOwnerMayAct) {
        return Ok(());
    }
    if held.owner.as_ref() != Some(wanted) {
        return Err(BoardError::NotOwner {
            owner: held.owner.clone(),
            wanted: wanted.clone(),
        });
    }
    match fence.is_some() && held.fence.as_ref() != fence {
        true => Err(BoardError::Changed),
        false => Ok(()),
    }
}

pub(super) fn permit_settlement(held: Option<&Holding>, settlement: &Settlement) -> Result<()> {
    match &settlement.authority {
        Authority::Owner(owner) => permit_owner(held, owner, None),
        Authority::Claim(owner, fence) => permit_owner(held, owner, Some(fence)),
        Authority::Force(_) if planted!(OperatorDoesNotCompare) => Ok(()),
        Authority::Force(ExpectedState::Unclaimed) => match (held, &settlement.decision) {
            (Some(_), _) => Err(BoardError::Changed),
            (None, Decision::Abandon(_)) => Err(BoardError::NotClaimed),
            (None, _) => Ok(()),
        },
        Authority::Force(ExpectedState::Claimed { owner, fence }) => {
            let is_seen =
                |held: &&Holding| held.owner == *owner && (fence.is_none() || held.fence == *fence);
            held.filter(is_seen).ok_or(BoardError::Changed).map(drop)
        }
    }
}

impl Sidecar {
    pub(super) fn settle(&mut self, settlement: &Settlement) {
        let decision = &settlement.decision;
        if let Some(failure) = decision.failure() {
            self.add_failure(failure);
        }
        if !decision.counts_attempt() {
            self.count_ahead();
            self.attempts = self.attempts.saturating_sub(1);
        }
        let postponed = u32::from(decision.is_postponed());
        self.postponed = self.postponed.saturating_add(postponed);
        self.not_before = decision.not_before().or(self.not_before);
        if settlement.audit.is_some() {
            self.audit.clone_from(&settlement.audit);
        }
    }

    /// Returns the sidecar of a restarted job: attempts start from zero unless the revision keeps them.
    ///
    /// On the board, a job is refused that is not delayed and has no counts that this would reset.
    pub(super) fn restarted(self, revision: &Revision, now: DateTime<Utc>) -> Result<Self> {
        let keeps_attempts = revision.change != JobChange::Restart;
        let needs_restart = || {
            self.clone()
                .into_attempts()
                .needs_restart(now, keeps_attempts)
        };
        if revision.location == Location::Board && !needs_restart() {
            return Err(BoardError::NotDelayed);
        }
        let before = match keeps_attempts {
            true => self.clone(),
            false => Self::default(),
        };
        Ok(Self {
            attempts: before.attempts,
            ahead: before.ahead,
            postponed: before.postponed,
            first_claimed_on: before.first_claimed_on,
            failures: self.failures,
            created_on: self.created_on,
            audit: revision.audit.clone(),
            ..Self::default()
        })
    }

    pub(super) fn count_ahead(&mut self) {
        let attempt = u32::from(std::mem::take(&mut self.ahead));
        self.attempts = self.attempts.saturating_add(attempt);
    }

    pub(super) fn add_failure(&mut self, failure: &Failure) {
        self.count_ahead();
        failure.clone().add_to(&mut self.failures);
    }
}

/// Counts the claims won. One with an unknown result counts, so that never too many are won.
pub(super) fn won_at_most(answers: &[Result<Claimed>]) -> usize {
    let may_be_won =
        |answer: &&Result<Claimed>| matches!(answer, Ok(_) | Err(BoardError::Unknown { .. }));
    answers.iter().filter(may_be_won).count()
}
