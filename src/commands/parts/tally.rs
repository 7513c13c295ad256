//! Totals of one pass over a board, in memory bounded by its number of names.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};

use super::{
    liveness::{is_copy_of_move, is_dead, is_silent},
    under_claim::max_attempts,
};
use crate::{
    board::BoardError,
    duration,
    exit::chain,
    job::{Conductor, Departure, Entry, Holding, Job, Lease, Owner, State},
    output::short,
    retry::MAX_ATTEMPTS,
};

/// A claim without expiry that is older than this is a cause for worry.
pub(crate) const LONG: TimeDelta = TimeDelta::hours(1);

/// The number of owners with exact counts; beyond twice as many, the rarest are dropped.
const MOST_OWNERS: usize = 10_000;

#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) unclaimed: u64,
    pub(crate) backing_off: u64,
    pub(crate) claimed: u64,
    pub(crate) claim_never_expires: u64,
    /// Claims without expiry that are older than [`LONG`].
    #[serde(skip)]
    pub(crate) forgotten: u64,
    pub(crate) owner_dead: u64,
    pub(crate) malformed: u64,
    /// Jobs whose next attempt is the last, or that have no attempt left.
    pub(crate) poison: u64,
    /// The lowest number of attempts among them.
    pub(crate) poison_attempts: Option<u32>,
    /// Unclaimed jobs at their retry limit.
    pub(crate) retries_exhausted: u64,
    /// The lowest number of attempts among them.
    #[serde(skip)]
    pub(crate) exhausted_attempts: Option<u32>,
    /// The oldest job, claimed or not.
    #[serde(skip)]
    pub(crate) oldest: Option<Standing>,
    pub(crate) oldest_unclaimed: Option<Standing>,
    pub(crate) longest_held: Option<Standing>,
}

/// The job that has been in its state for the longest time.
#[derive(Debug, Serialize)]
pub(crate) struct Standing {
    pub(crate) uuid: String,
    /// A reference that works on the command line: a peer may have written any text for a uuid.
    #[serde(skip)]
    pub(crate) reference: String,
    pub(crate) name: String,
    pub(crate) owner: Option<Owner>,
    pub(crate) since: DateTime<Utc>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct ByName {
    pub(crate) name: String,
    pub(crate) jobs: u64,
    pub(crate) unclaimed: u64,
    pub(crate) claimed: u64,
    pub(crate) failed: u64,
    pub(crate) oldest: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct ByOwner {
    /// `None`: unreadable.
    pub(crate) owner: Option<Owner>,
    pub(crate) claims: u64,
    pub(crate) held_since: Option<DateTime<Utc>>,
    /// The earliest expiry, in seconds.
    #[serde(serialize_with = "seconds")]
    pub(crate) expires_in: Option<Duration>,
    pub(crate) claim_never_expires: u64,
    /// The registered conductor that claims under this name.
    pub(crate) conductor: Option<String>,
    pub(crate) is_silent: bool,
    pub(crate) is_dead: bool,
}

#[expect(clippy::ref_option, reason = "serde's derive passes a reference")]
fn seconds<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(serializer)
}

/// How far back departures from the board are counted.
const LATELY: TimeDelta = TimeDelta::hours(24);

#[derive(Debug, Default, Serialize)]
pub(crate) struct Departures {
    pub(crate) consumed: u64,
    pub(crate) failed: u64,
    pub(crate) purged: u64,
    /// Later than requested if the history does not reach back that far.
    pub(crate) since: DateTime<Utc>,
    #[serde(skip)]
    pub(crate) earliest: Option<DateTime<Utc>>,
}

impl Departures {
    pub(crate) fn lately(now: DateTime<Utc>) -> Self {
        Self {
            since: now - LATELY,
            ..Self::default()
        }
    }

    /// Ends the counting after the whole history was read. A full history may have dropped older jobs.
    pub(crate) fn end(&mut self, history: u32) {
        if self.count() >= u64::from(history) {
            self.since = self.earliest.unwrap_or(self.since);
        }
    }

    /// Returns `false` for a job that ended before the window, which ends the counting.
    pub(crate) fn add(&mut self, entry: &Entry) -> bool {
        let Some(ended) = entry.job().and_then(|job| job.ended.as_ref()) else {
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

    pub(crate) fn count(&self) -> u64 {
        self.consumed + self.failed + self.purged
    }
}

impl Standing {
    pub(crate) fn told(&self, now: DateTime<Utc>) -> String {
        let (age, uuid) = (duration::between(self.since, now), short(&self.reference));
        let owner = self.owner.as_ref().map(|owner| format!(" by {owner}"));
        format!("{age}  {uuid} {}{}", self.name, owner.unwrap_or_default())
    }
}

#[derive(Debug)]
pub(crate) struct Tally {
    now: DateTime<Utc>,
    pub(crate) figures: Figures,
    names: BTreeMap<String, ByName>,
    /// Beyond twice as many names, the rarest are dropped.
    most_names: usize,
    /// Whether names, and whether owners, were dropped.
    pub(crate) has_dropped: [bool; 2],
    owners: BTreeMap<Option<Owner>, ByOwner>,
}

impl Tally {
    pub(crate) fn new(now: DateTime<Utc>) -> Self {
        Self {
            now,
            figures: Figures::default(),
            names: BTreeMap::new(),
            most_names: usize::MAX / 2,
            has_dropped: [false; 2],
            owners: BTreeMap::new(),
        }
    }

    /// Counts this many names exactly; beyond twice as many, the rarest are dropped.
    pub(crate) fn with_names(self, most_names: usize) -> Self {
        Self { most_names, ..self }
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        let Entry::Job(job) = entry else {
            self.figures.malformed += 1;
            return;
        };
        self.add_to_name(job);
        note(&mut self.figures.oldest, job, job.created_on);
        match &job.holding {
            Some(holding) => self.add_claimed(job, holding),
            None => self.add_unclaimed(job),
        }
        self.add_attempts(job);
    }

    fn add_attempts(&mut self, job: &Job) {
        let (tried, most) = tried(job);
        let figures = &mut self.figures;
        let attempts = Some(job.history.attempts);
        if tried > 0 && tried >= most - 1 {
            figures.poison += 1;
            figures.poison_attempts = earlier(figures.poison_attempts, attempts);
        }
        if is_exhausted(job) {
            figures.retries_exhausted += 1;
            figures.exhausted_attempts = earlier(figures.exhausted_attempts, attempts);
        }
    }

    fn add_to_name(&mut self, job: &Job) {
        if !self.names.contains_key(&job.name) {
            self.names.insert(job.name.clone(), ByName::default());
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
        self.has_dropped[0] |= keep_most(&mut self.names, self.most_names, |of| of.jobs);
    }

    fn add_unclaimed(&mut self, job: &Job) {
        self.figures.unclaimed += 1;
        self.figures.backing_off += u64::from(job.history.is_held_back(self.now));
        note(&mut self.figures.oldest_unclaimed, job, job.created_on);
    }

    fn add_claimed(&mut self, job: &Job, holding: &Holding) {
        self.figures.claimed += 1;
        note(&mut self.figures.longest_held, job, job.held_since());
        let owned = self.owners.entry(holding.owner.clone()).or_default();
        owned.claims += 1;
        owned.held_since = earlier(owned.held_since, job.held_since());
        owned.expires_in = earlier(owned.expires_in, holding.expires_in);
        let never = holding.lease == Lease::None && !is_copy_of_move(holding);
        let never = u64::from(never);
        owned.claim_never_expires += never;
        self.figures.claim_never_expires += never;
        self.has_dropped[1] |= keep_most(&mut self.owners, MOST_OWNERS, |of| of.claims);
        let since = job.held_since().filter(|since| self.now - since > LONG);
        self.figures.forgotten += never * u64::from(since.is_some());
    }

    /// Returns the totals, and the counts per name and per owner, the largest first.
    pub(crate) fn finish(
        mut self,
        conductors: &[Conductor],
    ) -> (Figures, Vec<ByName>, Vec<ByOwner>) {
        let names = self.names.into_iter();
        let mut names: Vec<_> = names.map(|(name, of)| ByName { name, ..of }).collect();
        names.sort_by_key(|of| Reverse(of.jobs));
        let owners = self.owners.into_iter().map(|(owner, of)| {
            let mut known = conductors.iter();
            let conductor = known.find(|it| owner.as_ref() == Some(&it.owner));
            ByOwner {
                is_dead: (owner.as_ref())
                    .is_some_and(|it| is_dead(it, conductors, of.claim_never_expires > 0)),
                is_silent: conductor.is_some_and(is_silent),
                conductor: conductor.map(|it| it.name.clone()),
                owner,
                ..of
            }
        });
        let mut owners: Vec<_> = owners.collect();
        owners.sort_by_key(|of| Reverse(of.claims));
        let dead = owners.iter().filter(|of| of.is_dead);
        self.figures.owner_dead = dead.map(|of| of.claims).sum();
        (self.figures, names, owners)
    }
}

/// Drops the rarest beyond twice as many; returns whether it dropped any.
pub(super) fn keep_most<K: Ord, V>(
    all: &mut BTreeMap<K, V>,
    most: usize,
    count: impl Fn(&V) -> u64,
) -> bool {
    if all.len() <= 2 * most {
        return false;
    }
    let mut counts: Vec<_> = all.values().map(&count).collect();
    counts.sort_unstable_by_key(|count| Reverse(*count));
    let least = counts[most];
    all.retain(|_, of| count(of) > least);
    true
}

/// Returns 0 without a job, or if the clocks differ.
pub(crate) fn age(standing: Option<&Standing>, now: DateTime<Utc>) -> Duration {
    let age = standing.and_then(|job| (now - job.since).to_std().ok());
    age.unwrap_or_default()
}

/// Returns the failed attempts and the retry limit.
fn tried(job: &Job) -> (u32, u32) {
    // A running attempt has not failed.
    let under_way = u32::from(job.holding.is_some());
    let most = job.details.as_ref().and_then(max_attempts);
    let tried = job.history.attempts.saturating_sub(under_way);
    (tried, most.unwrap_or(MAX_ATTEMPTS))
}

/// Whether an unclaimed job is at its retry limit.
pub(crate) fn is_exhausted(job: &Job) -> bool {
    let (tried, most) = tried(job);
    job.holding.is_none() && tried >= most
}

/// Returns the smaller of two values; an unknown one does not count.
fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    [one, other].into_iter().flatten().min()
}

/// Turns a permanent error into a gap; a retryable one stays an error, for example an unreachable board.
pub(crate) fn apart<T>(
    seen: Result<T, BoardError>,
) -> Result<(Option<T>, Option<String>), BoardError> {
    match seen {
        Ok(seen) => Ok((Some(seen), None)),
        Err(error) if error.is_retryable() => Err(error),
        Err(error) => Ok((None, Some(chain(&error)))),
    }
}

/// Keeps the job that has been in its state the longest.
fn note(standing: &mut Option<Standing>, job: &Job, since: Option<DateTime<Utc>>) {
    let Some(since) = since else { return };
    if standing.as_ref().is_none_or(|known| since < known.since) {
        *standing = Some(Standing {
            uuid: job.uuid.clone(),
            reference: job.reference().into_owned(),
            name: job.name.clone(),
            owner: job.owner().cloned(),
            since,
        });
    }
}
