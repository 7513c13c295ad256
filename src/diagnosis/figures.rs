//! The counts of a board.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};

use super::{
    Snapshot,
    causes::earlier,
    holder::{Death, Holder},
};
use crate::{
    duration,
    job::{ClaimEnd, Entry, Job, Outcome, Owner, brief},
    output::short,
    problem::Code,
};

#[derive(Debug, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) unclaimed: u64,
    pub(crate) claimed: u64,
    pub(crate) backing_off: u64,
    pub(crate) paused: u64,
    /// The jobs that wait for a free slot.
    #[serde(skip)]
    pub(crate) waiting: u64,
    pub(crate) jobs_with_problem: BTreeMap<Code, u64>,
    /// The jobs in the trash that came there in the last 24 hours.
    #[serde(skip)]
    pub(crate) trashed_lately: u64,
    #[serde(skip)]
    pub(crate) oldest: Option<Standing>,
    pub(crate) oldest_unclaimed: Option<Standing>,
    pub(crate) longest_held: Option<Standing>,
}

impl Figures {
    pub(crate) fn of(&self, code: Code) -> u64 {
        let jobs = self.jobs_with_problem.get(&code);
        jobs.copied().unwrap_or_default()
    }

    /// Returns the numbers of claimed jobs, of ready ones, and of those that back off or are paused.
    pub(crate) fn by_state(&self) -> [u64; 3] {
        // A paused job may be backing off, too.
        let delayed = (self.backing_off + self.paused).min(self.unclaimed);
        [self.claimed, self.unclaimed - delayed, delayed]
    }
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
    /// Whether the owner is gone or silent; a stopped one may go on.
    pub(crate) is_dead: bool,
    /// Why the owner does not run: `gone`, `stopped` or `silent`.
    #[serde(rename = "state")]
    pub(crate) absence: Option<&'static str>,
}

#[expect(clippy::ref_option, reason = "serde's derive passes a reference")]
fn seconds<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(serializer)
}

/// How far back outcomes are counted.
pub(super) const LATELY: TimeDelta = TimeDelta::hours(24);

#[derive(Debug, Default, Serialize)]
pub(crate) struct OutcomeCounts {
    pub(crate) consumed: u64,
    pub(crate) failed: u64,
    pub(crate) purged: u64,
    pub(crate) moved: u64,
    /// Later than requested if the history does not reach back that far.
    pub(crate) since: DateTime<Utc>,
    #[serde(skip)]
    pub(crate) earliest: Option<DateTime<Utc>>,
}

impl OutcomeCounts {
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
        *match ended.outcome {
            Outcome::Consumed => &mut self.consumed,
            Outcome::Failed => &mut self.failed,
            Outcome::Purged => &mut self.purged,
            Outcome::Moved => &mut self.moved,
        } += 1;
        true
    }

    pub(crate) fn count(&self) -> u64 {
        self.consumed + self.failed + self.purged + self.moved
    }
}

impl Standing {
    pub(crate) fn in_words(&self, now: DateTime<Utc>) -> String {
        let (age, uuid) = (duration::between(self.since, now), short(&self.reference));
        let owner = self.owner.as_ref().map(|owner| format!(" by {owner}"));
        format!("{age}  {uuid} {}{}", self.name, owner.unwrap_or_default())
    }
}

/// Returns the counts, the largest first.
pub(super) fn by_name(names: HashMap<String, ByName>) -> Vec<ByName> {
    let names = names.into_iter();
    let mut names: Vec<_> = names.map(|(name, of)| ByName { name, ..of }).collect();
    names.sort_by(|one, other| (other.jobs, &one.name).cmp(&(one.jobs, &other.name)));
    names
}

/// Returns the counts, the largest first.
pub(super) fn by_owner(
    owners: HashMap<Option<Owner>, ByOwner>,
    snapshot: &Snapshot,
) -> Vec<ByOwner> {
    let owners = owners.into_iter().map(|(owner, of)| {
        let lease = match of.claim_never_expires {
            0 => ClaimEnd::Timed,
            _ => ClaimEnd::Never,
        };
        let holder = owner
            .as_ref()
            .map(|owner| snapshot.holder(owner, lease, of.held_since));
        let death = match &holder {
            Some(Holder::Dead { death, .. }) => Some(*death),
            _ => None,
        };
        let conductor = match &holder {
            Some(Holder::Conductor(at)) => Some(snapshot.runners[*at].conductor.name.clone()),
            _ => None,
        };
        ByOwner {
            is_dead: death.is_some_and(|it| !matches!(it, Death::Stopped(_))),
            absence: death.map(Death::word),
            conductor,
            owner,
            ..of
        }
    });
    let mut owners: Vec<_> = owners.collect();
    owners.sort_by(|one, other| (other.claims, &one.owner).cmp(&(one.claims, &other.owner)));
    owners
}

/// Returns 0 without a job, or if the clocks differ.
pub(crate) fn age(standing: Option<&Standing>, now: DateTime<Utc>) -> Duration {
    let age = standing.and_then(|job| (now - job.since).to_std().ok());
    age.unwrap_or_default()
}

pub(super) fn note(standing: &mut Option<Standing>, job: &Job, since: Option<DateTime<Utc>>) {
    let Some(since) = since else { return };
    if standing.as_ref().is_none_or(|known| since < known.since) {
        *standing = Some(Standing {
            uuid: brief(&job.uuid).into_owned(),
            reference: job.reference().into_owned(),
            name: job.brief_name().into_owned(),
            owner: job.owner().cloned(),
            since,
        });
    }
}
