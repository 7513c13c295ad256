//! What is to become of a job, and by whose right.

use chrono::{DateTime, Utc};

use super::{
    Departure, Edit, Entry, Failure, Fence, Identity, JobKey, MoveRecord, Owner, Remark, Shelf,
};

/// What a conductor knows of a job that it gives back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Aftermath {
    /// Nothing: a person gave it back.
    None,
    /// The attempt failed; it counts.
    Failed {
        failure: Failure,
        not_before: Option<DateTime<Utc>>,
    },
    /// The job asked to be tried later; the attempt does not count, the postponement does.
    Postponed { not_before: DateTime<Utc> },
    /// The conductor had to stop; the attempt does not count.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Abandon(Aftermath),
    Consume,
    /// Off the board although it failed, as that was wanted.
    GiveUp(Failure),
    Trash(Option<Failure>),
    /// To the trash, for what came of former attempts; the present claim was none.
    Spent(Failure),
}

impl Outcome {
    pub(crate) fn is_trash(&self) -> bool {
        matches!(self, Self::Trash(_) | Self::Spent(_))
    }

    /// Whether the job leaves the board for good.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Consume | Self::GiveUp(_))
    }

    /// Returns from when on the job may be tried again, if not at once.
    pub(crate) fn not_before(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Abandon(Aftermath::Failed { not_before, .. }) => *not_before,
            Self::Abandon(Aftermath::Postponed { not_before }) => Some(*not_before),
            _ => None,
        }
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Abandon(Aftermath::Failed { failure, .. })
            | Self::GiveUp(failure)
            | Self::Trash(Some(failure))
            | Self::Spent(failure) => Some(failure),
            Self::Abandon(_) | Self::Consume | Self::Trash(None) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The name of its owner: claims by hand.
    Owner(Owner),
    /// Exactly this claim of this owner: kept leases.
    Claim(Owner, Fence),
    /// None but an operator's word, as long as the board is as the operator saw it.
    Override(Witness),
}

/// What an operator saw of a job when deciding to override its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Witness {
    Unclaimed,
    Claimed {
        /// `None` for a claim whose owner cannot be read.
        owner: Option<Owner>,
        /// `None` if it does not matter which claim of that owner it is.
        fence: Option<Fence>,
    },
}

impl Witness {
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

/// A job that is to be tried as if for the first time: one from the trash, or one that nobody has.
///
/// Or one that nobody has, and that is to be another one from now on, whatever was tried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Restore {
    pub(crate) key: JobKey,
    pub(crate) shelf: Shelf,
    /// Whether it is still known how often it was tried.
    pub(crate) keeps_attempts: bool,
    pub(crate) remark: Option<Remark>,
    /// What becomes of its posting, if it is on the board; all that happened to it stays then.
    pub(crate) edit: Option<Edit>,
}

impl Restore {
    /// Brings a job back from the trash, as if it had never been tried.
    pub(crate) fn from_trash(key: JobKey, remark: Option<Remark>) -> Self {
        Self {
            key,
            shelf: Shelf::Trash,
            keeps_attempts: false,
            remark,
            edit: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Purge {
    pub(crate) key: JobKey,
    /// What is to be remembered of it; none, if it is not known.
    pub(crate) job: Option<Identity>,
    pub(crate) remark: Option<Remark>,
}

#[cfg(test)]
impl Purge {
    /// Removes a job of which nothing is to be remembered.
    pub(crate) fn of(key: JobKey) -> Self {
        Self {
            key,
            job: None,
            remark: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settlement {
    pub(crate) key: JobKey,
    pub(crate) outcome: Outcome,
    pub(crate) authority: Authority,
    /// What is to be remembered of the job if it ends by this; none, if it is not known.
    pub(crate) job: Option<Identity>,
    pub(crate) remark: Option<Remark>,
    /// Written in the same step that ends the job, so that a move knows later that it did.
    pub(crate) commit: Option<MoveRecord>,
}

impl Settlement {
    /// Settles a job by the claim that an owner has on it, as its command ended.
    pub(crate) fn of_command(
        key: &JobKey,
        job: impl FnOnce() -> Identity,
        outcome: &Outcome,
        (owner, fence): (&Owner, &Fence),
    ) -> Self {
        let given_up = (outcome.failure()).filter(|_| !matches!(outcome, Outcome::Abandon(_)));
        Self {
            job: outcome.is_end().then(job),
            remark: given_up.map(|failure| {
                let action = if outcome.is_trash() {
                    "trashed"
                } else {
                    "consumed"
                };
                Remark::now(action, &owner.text(), Some(&failure.reason))
            }),
            ..Self::of(
                key.clone(),
                outcome.clone(),
                Authority::Claim(owner.clone(), fence.clone()),
            )
        }
    }

    /// Returns how the job ends by this, and whether by the success of a command; none, if it stays
    /// on the board or in the trash.
    pub(crate) fn departure(&self) -> Option<(Departure, bool)> {
        match self.outcome {
            // Whoever has a job by hand settles it by the owner's name alone.
            Outcome::Consume => Some((
                Departure::Consumed,
                matches!(self.authority, Authority::Claim(..)),
            )),
            Outcome::GiveUp(_) => Some((Departure::Failed, false)),
            Outcome::Abandon(_) | Outcome::Trash(_) | Outcome::Spent(_) => None,
        }
    }

    /// Settles a job of which nothing is to be remembered.
    pub(crate) fn of(key: JobKey, outcome: Outcome, authority: Authority) -> Self {
        Self {
            key,
            outcome,
            authority,
            job: None,
            remark: None,
            commit: None,
        }
    }
}
