//! What one look at a board comes to, in no more memory than it has names and owners.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

use crate::{
    commands::parts::under_claim::max_attempts,
    job::{Conductor, Departure, Entry, Holding, Job, Lease, Owner, State},
    retry::MAX_ATTEMPTS,
};

/// How many jobs there are of each kind.
#[derive(Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) unclaimed: u64,
    /// How many of the unclaimed wait for a time that has not come.
    pub(super) held_back: u64,
    pub(super) claimed: u64,
    /// How many of the claimed stay so until somebody ends it.
    pub(super) never_lapsing: u64,
    pub(super) malformed: u64,
    /// How many failed so often that their next attempt is the last, or that there is none.
    pub(super) poison: u64,
    /// How often those were tried at least.
    pub(super) poison_attempts: Option<u32>,
    pub(super) oldest_unclaimed: Option<Standing>,
    pub(super) longest_held: Option<Standing>,
}

/// A job that has been as it is for longer than all others.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    pub(super) uuid: String,
    pub(super) name: String,
    pub(super) owner: Option<Owner>,
    pub(super) since: DateTime<Utc>,
}

/// The jobs of one name.
#[derive(Debug, Default, Serialize)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) jobs: u64,
    pub(super) unclaimed: u64,
    pub(super) claimed: u64,
    /// How many of them have failed before.
    pub(super) failed: u64,
    /// When the oldest was posted.
    pub(super) oldest: Option<DateTime<Utc>>,
}

/// The claims of one owner.
#[derive(Debug, Default, Serialize)]
pub(super) struct Owned {
    /// `None`: it cannot be read.
    pub(super) owner: Option<Owner>,
    pub(super) claims: u64,
    pub(super) held_since: Option<DateTime<Utc>>,
    /// When the first of them lapses, in seconds.
    #[serde(serialize_with = "seconds")]
    pub(super) expires_in: Option<Duration>,
    pub(super) never_lapsing: u64,
    /// The conductor that claims under this name, if it is alive.
    pub(super) conductor: Option<String>,
}

#[expect(clippy::ref_option, reason = "so it is called by what derives")]
fn seconds<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(serializer)
}

/// What has left the board of late.
#[derive(Debug, Default, Serialize)]
pub(super) struct Ended {
    pub(super) consumed: u64,
    pub(super) failed: u64,
    pub(super) purged: u64,
    /// From when on; later than asked for where no more is remembered.
    pub(super) since: DateTime<Utc>,
    #[serde(skip)]
    pub(super) earliest: Option<DateTime<Utc>>,
}

impl Ended {
    /// Counts a job; one that ended earlier ends the counting.
    pub(super) fn add(&mut self, entry: &Entry) -> bool {
        let Some(ended) = entry.job().and_then(|job| job.ended) else {
            return true;
        };
        if ended.on < self.since {
            return false;
        }
        self.earliest = earlier(self.earliest, Some(ended.on));
        *match ended.departure {
            Departure::Consumed => &mut self.consumed,
            Departure::Failed => &mut self.failed,
            Departure::Purged => &mut self.purged,
        } += 1;
        true
    }

    pub(super) fn count(&self) -> u64 {
        self.consumed + self.failed + self.purged
    }
}

/// Counts the records of a board as they come.
#[derive(Debug)]
pub(super) struct Tally {
    now: DateTime<Utc>,
    pub(super) figures: Figures,
    names: BTreeMap<String, Named>,
    owners: BTreeMap<Option<Owner>, Owned>,
}

impl Tally {
    pub(super) fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            figures: Figures::default(),
            names: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        let Entry::Job(job) = entry else {
            self.figures.malformed += 1;
            return;
        };
        self.add_to_name(job);
        match &job.holding {
            Some(holding) => self.add_claimed(job, holding),
            None => self.add_unclaimed(job),
        }
        // An attempt that is under way has not failed.
        let under_way = u32::from(job.holding.is_some());
        let tried = job.history.attempts.saturating_sub(under_way);
        let own = job.details.as_ref().and_then(max_attempts);
        if tried > 0 && tried >= own.unwrap_or(MAX_ATTEMPTS) - 1 {
            let figures = &mut self.figures;
            figures.poison += 1;
            let least = figures.poison_attempts.get_or_insert(job.history.attempts);
            *least = job.history.attempts.min(*least);
        }
    }

    fn add_to_name(&mut self, job: &Job) {
        if !self.names.contains_key(&job.name) {
            self.names.insert(job.name.clone(), Named::default());
        }
        let Some(named) = self.names.get_mut(&job.name) else {
            return;
        };
        named.jobs += 1;
        *match job.state() {
            State::Claimed => &mut named.claimed,
            _ => &mut named.unclaimed,
        } += 1;
        named.failed += u64::from(!job.history.failures.is_empty());
        named.oldest = earlier(named.oldest, job.created_on);
    }

    fn add_unclaimed(&mut self, job: &Job) {
        self.figures.unclaimed += 1;
        let is_held_back = job.history.not_before.is_some_and(|time| time > self.now);
        self.figures.held_back += u64::from(is_held_back);
        note(&mut self.figures.oldest_unclaimed, job, job.created_on);
    }

    fn add_claimed(&mut self, job: &Job, holding: &Holding) {
        self.figures.claimed += 1;
        note(&mut self.figures.longest_held, job, job.held_since());
        let owned = self.owners.entry(holding.owner.clone()).or_default();
        owned.claims += 1;
        owned.held_since = earlier(owned.held_since, job.held_since());
        owned.expires_in = [owned.expires_in, holding.expires_in]
            .into_iter()
            .flatten()
            .min();
        let never = u64::from(holding.lease == Lease::None);
        owned.never_lapsing += never;
        self.figures.never_lapsing += never;
    }

    /// Returns the figures, and what there is of each name and each owner, the most first.
    pub(super) fn finish(self, conductors: &[Conductor]) -> (Figures, Vec<Named>, Vec<Owned>) {
        let names = self.names.into_iter();
        let mut names: Vec<_> = names.map(|(name, named)| Named { name, ..named }).collect();
        names.sort_by_key(|named| Reverse(named.jobs));
        let alive = |owner: &Option<Owner>| {
            let mut conductors = conductors.iter();
            let found = conductors.find(|conductor| owner.as_ref() == Some(&conductor.owner));
            found.map(|conductor| conductor.name.clone())
        };
        let owners = self.owners.into_iter().map(|(owner, owned)| Owned {
            conductor: alive(&owner),
            owner,
            ..owned
        });
        let mut owners: Vec<_> = owners.collect();
        owners.sort_by_key(|owned| Reverse(owned.claims));
        (self.figures, names, owners)
    }
}

/// Returns the earlier of two times, of which each may not be known.
fn earlier(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    [one, other].into_iter().flatten().min()
}

/// Keeps a job that has been so for longer than the one that is known.
fn note(standing: &mut Option<Standing>, job: &Job, since: Option<DateTime<Utc>>) {
    let Some(since) = since else { return };
    if standing.as_ref().is_none_or(|known| since < known.since) {
        *standing = Some(Standing {
            uuid: job.uuid.clone(),
            name: job.name.clone(),
            owner: job.owner().cloned(),
            since,
        });
    }
}
