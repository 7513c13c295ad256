//! How a claim ends, and which authority ends it.

use chrono::{DateTime, Utc};

use super::{
    AuditEntry, Edit, Entry, Failure, Fence, Identity, Job, JobKey, Location, MoveRecord, Outcome,
    Owner,
};

/// The result of an attempt, recorded on a job when it is released.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Aftermath {
    /// Nothing: a person released the job.
    None,
    Failed {
        failure: Failure,
        not_before: Option<DateTime<Utc>>,
    },
    /// The command asked for a later retry. The postponement counts, the attempt does not.
    Postponed { not_before: DateTime<Utc> },
    /// The conductor had to stop; the attempt does not count.
    Interrupted,
}

impl Aftermath {
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            not_before: None,
        }
    }

    fn not_before(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Failed { not_before, .. } => *not_before,
            Self::Postponed { not_before } => Some(*not_before),
            Self::None | Self::Interrupted => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Decision {
    Abandon(Aftermath),
    Consume,
    /// Consumed with the outcome `failed`.
    ConsumeFailed(Failure),
    Trash(Aftermath),
    /// To the trash because of earlier attempts; the present claim is not one.
    Spent(Failure),
}

impl Decision {
    pub(crate) fn is_trash(&self) -> bool {
        matches!(self, Self::Trash(_) | Self::Spent(_))
    }

    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Abandon(_) => "abandon",
            Self::Consume | Self::ConsumeFailed(_) => "consume",
            Self::Trash(_) | Self::Spent(_) => "trash",
        }
    }

    /// Whether the job leaves the board for the history.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Consume | Self::ConsumeFailed(_))
    }

    /// Returns the time of the next attempt, or `None` for immediately.
    pub(crate) fn not_before(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Abandon(aftermath) | Self::Trash(aftermath) => aftermath.not_before(),
            Self::Consume | Self::ConsumeFailed(_) | Self::Spent(_) => None,
        }
    }

    /// Whether the attempt, counted when it was claimed, stays counted.
    pub(crate) fn counts_attempt(&self) -> bool {
        match self {
            Self::Abandon(aftermath) | Self::Trash(aftermath) => match aftermath {
                Aftermath::None | Aftermath::Failed { .. } => true,
                Aftermath::Postponed { .. } | Aftermath::Interrupted => false,
            },
            Self::Consume | Self::ConsumeFailed(_) => true,
            Self::Spent(_) => false,
        }
    }

    pub(crate) fn is_postponed(&self) -> bool {
        let (Self::Abandon(aftermath) | Self::Trash(aftermath)) = self else {
            return false;
        };
        matches!(aftermath, Aftermath::Postponed { .. })
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Abandon(Aftermath::Failed { failure, .. })
            | Self::Trash(Aftermath::Failed { failure, .. })
            | Self::ConsumeFailed(failure)
            | Self::Spent(failure) => Some(failure),
            Self::Abandon(_) | Self::Trash(_) | Self::Consume => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The owner's name: claims by hand.
    Owner(Owner),
    /// Exactly this claim of this owner: leases.
    Claim(Owner, Fence),
    /// An operator's decision, valid only while the board is as the operator saw it.
    Force(ExpectedState),
}

/// The state of a job that an operator saw before a forced settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExpectedState {
    Unclaimed,
    Claimed {
        /// `None` for a claim with an unreadable owner.
        owner: Option<Owner>,
        /// `None` to accept any claim of that owner.
        fence: Option<Fence>,
    },
}

impl ExpectedState {
    pub(crate) fn of(entry: &Entry) -> Self {
        match entry.holding() {
            None => Self::Unclaimed,
            Some(holding) => Self::Claimed {
                owner: holding.owner.clone(),
                fence: holding.fence.clone(),
            },
        }
    }
}

/// A restart or an edit of an unclaimed job of the board or of a trashed job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Revision {
    pub(crate) key: JobKey,
    pub(crate) location: Location,
    pub(crate) change: JobChange,
    pub(crate) audit: Option<AuditEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JobChange {
    /// Puts the job on the board without a delay; its attempts start from zero.
    Restart,
    /// As `Restart`, but keeps the attempts.
    Continue,
    /// Changes the posting of the job, which keeps its place, attempts and failures.
    Edit(Edit),
}

impl Revision {
    pub(crate) fn from_trash(key: JobKey, audit: Option<AuditEntry>) -> Self {
        Self {
            key,
            location: Location::Trash,
            change: JobChange::Restart,
            audit,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Purge {
    pub(crate) key: JobKey,
    pub(crate) job: Option<Identity>,
    pub(crate) audit: Option<AuditEntry>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settlement {
    pub(crate) key: JobKey,
    pub(crate) decision: Decision,
    pub(crate) authority: Authority,
    /// The job's fields for the history if it ends by this, if known.
    pub(crate) job: Option<Identity>,
    pub(crate) audit: Option<AuditEntry>,
    /// Written in the same step that ends the job: proves to a move that it did.
    pub(crate) commit: Option<MoveRecord>,
}

impl Settlement {
    /// Settles a job under its owner's claim after the command ended.
    pub(crate) fn of_command(job: &Job, decision: &Decision, owner: &Owner, fence: &Fence) -> Self {
        let final_failure =
            (decision.failure()).filter(|_| !matches!(decision, Decision::Abandon(_)));
        Self {
            job: decision.is_end().then(|| Identity::from(job)),
            audit: final_failure.map(|failure| {
                let action = match decision.is_trash() {
                    true => "trashed",
                    false => "consumed",
                };
                AuditEntry::now(action, &owner.text(), Some(&failure.reason))
            }),
            ..Self::of(
                job.key.clone(),
                decision.clone(),
                match planted!(SettlesWithoutFence) {
                    true => Authority::Owner(owner.clone()),
                    false => Authority::Claim(owner.clone(), fence.clone()),
                },
            )
        }
    }

    /// Returns how the job ends and whether a command succeeded, or `None` if it stays on the board or in the trash.
    pub(crate) fn outcome(&self) -> Option<(Outcome, bool)> {
        let action = self.audit.as_ref().and_then(|it| it.action.as_deref());
        match self.decision {
            Decision::Consume if action == Some(AuditEntry::MOVED) => Some((Outcome::Moved, false)),
            // The owner of a claim by hand settles by name alone.
            Decision::Consume => Some((
                Outcome::Consumed,
                matches!(self.authority, Authority::Claim(..)),
            )),
            Decision::ConsumeFailed(_) => Some((Outcome::Failed, false)),
            Decision::Abandon(_) | Decision::Trash(_) | Decision::Spent(_) => None,
        }
    }

    pub(crate) fn of(key: JobKey, decision: Decision, authority: Authority) -> Self {
        Self {
            key,
            decision,
            authority,
            job: None,
            audit: None,
            commit: None,
        }
    }
}

#[cfg(test)]
mod testing {
    use super::{JobKey, Purge};

    impl Purge {
        pub(crate) fn of(key: JobKey) -> Self {
            Self {
                key,
                job: None,
                audit: None,
            }
        }
    }
}
