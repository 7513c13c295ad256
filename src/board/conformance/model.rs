//! An in-memory model of a board, to compare the real ones with.

use proptest::{
    prelude::*,
    sample::{select, subsequence},
};

use super::WHO;
use crate::{board::EventKind, job::Priority};

/// Few jobs, so that the acts collide.
pub(crate) const JOBS: usize = 3;

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Post(usize, Priority),
    /// Whether it counts as an attempt, and whether it is a lease.
    Claim {
        jobs: Vec<usize>,
        who: usize,
        is_attempt: bool,
        is_lease: bool,
    },
    /// An actor claims a job until a time, which passes.
    Lapse(usize, usize),
    Renew {
        job: usize,
        who: usize,
        back: usize,
    },
    Settle(usize, Ending, ModelAuthority),
    Restore {
        job: usize,
        keeps_attempts: bool,
    },
    Retry {
        job: usize,
        keeps_attempts: bool,
    },
    Purge(usize),
    Restart(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Abandon,
    Failed { is_delayed: bool },
    Postponed,
    Interrupted,
    Consume,
    ConsumeFailed,
    Trash { has_failed: bool },
    Spent,
}

/// The authority of a settlement; claims are numbered from the last one backwards.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ModelAuthority {
    Owner(usize),
    Claim { who: usize, back: usize },
    ForceUnclaimed,
    ForceClaimed { who: usize, back: Option<usize> },
}

/// Generates any act; everyday acts are more frequent.
pub(crate) fn act() -> impl Strategy<Value = Act> {
    let job = || 0..JOBS;
    let who = || 0..WHO.len();
    let back = || prop_oneof![3 => Just(0), 1 => Just(1)];
    let claim = (
        subsequence((0..JOBS).collect::<Vec<_>>(), 1..=JOBS),
        who(),
        any::<bool>(),
        any::<bool>(),
    );
    let ending = prop_oneof![
        2 => Just(Ending::Abandon),
        1 => any::<bool>().prop_map(|is_delayed| Ending::Failed { is_delayed }),
        1 => Just(Ending::Postponed),
        1 => Just(Ending::Interrupted),
        2 => Just(Ending::Consume),
        1 => Just(Ending::ConsumeFailed),
        1 => any::<bool>().prop_map(|has_failed| Ending::Trash { has_failed }),
        1 => Just(Ending::Spent),
    ];
    let authority = prop_oneof![
        3 => who().prop_map(ModelAuthority::Owner),
        3 => (who(), back()).prop_map(|(who, back)| ModelAuthority::Claim { who, back }),
        1 => Just(ModelAuthority::ForceUnclaimed),
        1 => (who(), prop::option::of(back())).prop_map(|(who, back)| ModelAuthority::ForceClaimed { who, back }),
    ];
    let restore = (job(), any::<bool>());
    prop_oneof![
        4 => (job(), select(Priority::ALL)).prop_map(|(job, priority)| Act::Post(job, priority)),
        6 => claim.prop_map(|(jobs, who, is_attempt, is_lease)| Act::Claim { jobs, who, is_attempt, is_lease }),
        1 => (job(), who()).prop_map(|(job, who)| Act::Lapse(job, who)),
        1 => (job(), who(), back()).prop_map(|(job, who, back)| Act::Renew { job, who, back }),
        8 => (job(), ending, authority).prop_map(|(job, ending, authority)| Act::Settle(job, ending, authority)),
        2 => restore.clone().prop_map(|(job, keeps_attempts)| Act::Restore { job, keeps_attempts }),
        1 => restore.prop_map(|(job, keeps_attempts)| Act::Retry { job, keeps_attempts }),
        1 => job().prop_map(Act::Purge),
        1 => who().prop_map(Act::Restart),
    ]
}

pub(crate) type ModelEvent = (EventKind, Option<usize>);

pub(crate) type Answer = String;

fn ok() -> Answer {
    "ok".to_owned()
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Known {
    pub(crate) number: usize,
    pub(crate) priority: Priority,
    /// Its owner, and the number of claims won by then.
    pub(crate) claim: Option<(usize, usize)>,
    pub(crate) attempts: u32,
    pub(crate) postponed: u32,
    pub(crate) failures: usize,
    pub(crate) is_delayed: bool,
}

impl Known {
    fn new(number: usize, priority: Priority) -> Self {
        Self {
            number,
            priority,
            claim: None,
            attempts: 0,
            postponed: 0,
            failures: 0,
            is_delayed: false,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) board: Option<Known>,
    pub(crate) trash: Option<Known>,
    /// Whether both share one sidecar, so that posting the one discards the other's.
    pub(crate) shares_record: bool,
    pub(crate) posts: usize,
    pub(crate) claims: usize,
    /// Whether the last claim is a lease, which may end with a session.
    pub(crate) is_lease: bool,
    pub(crate) events: Vec<ModelEvent>,
}

impl Model {
    fn record(&mut self, kind: EventKind, who: Option<usize>) -> Answer {
        self.events.push((kind, who));
        ok()
    }

    pub(crate) fn post(&mut self, priority: Priority) -> Answer {
        if self.board.is_some() {
            return "exists".to_owned();
        }
        self.posts += 1;
        self.board = Some(Known::new(self.posts, priority));
        if let Some(namesake) = self.trash.as_mut().filter(|_| self.shares_record) {
            *namesake = Known::new(namesake.number, namesake.priority);
        }
        self.record(EventKind::Posted, None)
    }

    pub(crate) fn claim(&mut self, who: usize, is_attempt: bool) -> Answer {
        match &mut self.board {
            None => "no such job".to_owned(),
            Some(Known {
                claim: Some((owner, _)),
                ..
            }) => format!("claimed by {}", WHO[*owner]),
            Some(job) if is_attempt && job.is_delayed => "delayed".to_owned(),
            Some(job) => {
                self.claims += 1;
                job.claim = Some((who, self.claims));
                job.attempts += u32::from(is_attempt);
                self.record(EventKind::Claimed, Some(who))
            }
        }
    }

    pub(crate) fn expire(&mut self, who: usize) {
        self.board.as_mut().unwrap().claim = None;
        self.record(EventKind::Expired, Some(who));
    }

    /// Ends the lease of an actor's session; false if it had none.
    pub(crate) fn leave(&mut self, who: usize) -> bool {
        let job = self.board.as_mut().filter(|_| self.is_lease);
        let Some(job) = job.filter(|job| job.claim.is_some_and(|(owner, _)| owner == who)) else {
            return false;
        };
        job.claim = None;
        self.record(EventKind::Abandoned, Some(who));
        true
    }

    pub(crate) fn renew(&self, who: usize, back: Option<usize>) -> Answer {
        let Some(job) = &self.board else {
            return "no such job".to_owned();
        };
        match job.claim {
            None => "not claimed".to_owned(),
            Some((owner, _)) if owner != who => format!("belongs to {}", WHO[owner]),
            Some((_, claim)) if back.is_some_and(|back| claim != self.claim_before(back)) => {
                "changed".to_owned()
            }
            Some(_) => ok(),
        }
    }

    pub(crate) fn claim_before(&self, back: usize) -> usize {
        self.claims.wrapping_sub(back)
    }

    pub(crate) fn settle(&mut self, ending: Ending, authority: ModelAuthority) -> Answer {
        let refusal = match authority {
            ModelAuthority::Owner(who) => self.renew(who, None),
            ModelAuthority::Claim { who, back } => self.renew(who, Some(back)),
            ModelAuthority::ForceUnclaimed | ModelAuthority::ForceClaimed { .. } => {
                self.is_as_seen(ending, authority)
            }
        };
        if refusal != ok() {
            return refusal;
        }
        let mut job = self.board.take().unwrap();
        let who = job.claim.take().map(|claim| claim.0);
        if matches!(
            ending,
            Ending::Postponed | Ending::Interrupted | Ending::Spent
        ) {
            job.attempts = job.attempts.saturating_sub(1);
        }
        let has_failed = matches!(
            ending,
            Ending::Failed { .. } | Ending::Spent | Ending::Trash { has_failed: true }
        );
        // The last three are kept.
        job.failures = (job.failures + usize::from(has_failed)).min(3);
        job.postponed += u32::from(ending == Ending::Postponed);
        job.is_delayed |= matches!(
            ending,
            Ending::Postponed | Ending::Failed { is_delayed: true }
        );
        match ending {
            Ending::Consume | Ending::ConsumeFailed => self.record(EventKind::Consumed, who),
            Ending::Trash { .. } | Ending::Spent => {
                let namesake = self.trash.replace(job);
                self.record(EventKind::Trashed, who);
                namesake.map_or_else(ok, |_| "ok, in the place of another".to_owned())
            }
            _ => {
                self.board = Some(job);
                self.record(EventKind::Abandoned, who)
            }
        }
    }

    fn is_as_seen(&self, ending: Ending, authority: ModelAuthority) -> Answer {
        let is_given_back = matches!(
            ending,
            Ending::Abandon | Ending::Failed { .. } | Ending::Postponed | Ending::Interrupted
        );
        let Some(job) = &self.board else {
            return "no such job".to_owned();
        };
        let is_so = match (authority, job.claim) {
            (ModelAuthority::ForceUnclaimed, None) if is_given_back => {
                return "not claimed".to_owned();
            }
            (ModelAuthority::ForceUnclaimed, claim) => claim.is_none(),
            (ModelAuthority::ForceClaimed { who, back }, Some((owner, claim))) => {
                who == owner && back.is_none_or(|back| claim == self.claim_before(back))
            }
            _ => false,
        };
        if is_so { ok() } else { "changed".to_owned() }
    }

    pub(crate) fn restore(&mut self, keeps_attempts: bool) -> Answer {
        if self.trash.is_none() {
            return "no such job".to_owned();
        }
        if self.board.is_some() {
            return "exists".to_owned();
        }
        self.board = self.trash.take();
        self.untried(keeps_attempts)
    }

    pub(crate) fn retry(&mut self, keeps_attempts: bool) -> Answer {
        match &self.board {
            None => "no such job".to_owned(),
            Some(Known {
                claim: Some((owner, _)),
                ..
            }) => format!("claimed by {}", WHO[*owner]),
            Some(job) => {
                let is_counted = job.attempts + job.postponed > 0;
                if !job.is_delayed && (keeps_attempts || !is_counted) {
                    return "not delayed".to_owned();
                }
                self.untried(keeps_attempts)
            }
        }
    }

    fn untried(&mut self, keeps_attempts: bool) -> Answer {
        let job = self.board.as_mut().unwrap();
        job.is_delayed = false;
        if !keeps_attempts {
            (job.attempts, job.postponed) = (0, 0);
        }
        self.record(EventKind::Restored, None)
    }

    pub(crate) fn purge(&mut self) -> Answer {
        match self.trash.take() {
            None => "no such job".to_owned(),
            Some(_) => self.record(EventKind::Purged, None),
        }
    }
}
