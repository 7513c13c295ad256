//! Metrics of a board for Prometheus, from one pass.

use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use super::{
    liveness::is_silent,
    tally::{ByName, Figures, Tally, age, apart, is_exhausted},
};
use crate::{
    board::{Board, BoardError, BoardExt as _, Detail, Health, Query},
    job::{Conductor, Job, Pauses, Shelf},
    output::{Exposition, Kind, timestamp},
};

/// The number of names with their own metrics.
const MOST_NAMES: usize = 50;

pub(crate) const OTHERS: &str = "__other__";

/// Age limits of the claimable jobs, in seconds.
const AGES: [u32; 4] = [60, 600, 3600, 86400];

struct Seen {
    health: Health,
    figures: Figures,
    claimable: Claimable,
    names: Vec<ByName>,
    /// `None`: unreadable.
    conductors: Option<Vec<Conductor>>,
    now: DateTime<Utc>,
}

/// Unclaimed jobs, by whether they are claimable now.
#[derive(Default)]
struct Claimable {
    jobs: u64,
    /// The number of them older than each of [`AGES`].
    older: [u64; AGES.len()],
    /// The number that is claimable but for a pause.
    paused: u64,
}

impl Claimable {
    fn add(&mut self, job: &Job, pauses: &Pauses, now: DateTime<Utc>) {
        let is_free = job.holding.is_none() && job.may_be_offered();
        if !is_free || job.history.is_held_back(now) || is_exhausted(job) {
            return;
        }
        if pauses.of(&job.name, now).is_some() {
            self.paused += 1;
            return;
        }
        self.jobs += 1;
        let age = job.created_on.map_or(0, |it| (now - it).num_seconds());
        for (count, least) in self.older.iter_mut().zip(AGES) {
            *count += u64::from(age > i64::from(least));
        }
    }
}

/// Reads a board and adds its metrics; sets `jobboard_up` to 0 if the board cannot be read.
pub(crate) async fn scrape(
    board: &dyn Board,
    by_name: bool,
    exposition: &mut Exposition,
) -> Result<(), BoardError> {
    let start = Instant::now();
    let seen = look(board).await;
    let help = "1 if the board could be read, otherwise 0.";
    exposition.gauge("jobboard_up", help, f64::from(u8::from(seen.is_ok())));
    let help = "Time it took to read the board.";
    let took = start.elapsed().as_secs_f64();
    exposition.gauge("jobboard_scrape_duration_seconds", help, took);
    let help = "Time at which the board was read.";
    let name = "jobboard_scrape_timestamp_seconds";
    exposition.gauge(name, help, timestamp(Utc::now()));
    seen?.add_to(exposition, by_name);
    Ok(())
}

async fn look(board: &dyn Board) -> Result<Seen, BoardError> {
    let health = board.health().await?;
    let (conductors, _) = apart(board.conductors().await)?;
    let now = Utc::now();
    let pauses = board.lasting_pauses(now).await?;
    let mut claimable = Claimable::default();
    let mut tally = Tally::new(now).with_names(MOST_NAMES);
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await? {
        tally.add(&entry);
        if let Some(job) = entry.job() {
            claimable.add(job, &pauses, now);
        }
    }
    let (figures, names, _) = tally.finish(conductors.as_deref().unwrap_or_default());
    Ok(Seen {
        health,
        figures,
        claimable,
        names,
        conductors,
        now,
    })
}

impl Seen {
    fn add_to(&self, exposition: &mut Exposition, by_name: bool) {
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("server", &self.health.server),
        ];
        let help = "Version of jobboard and of the server; always 1.";
        let info = exposition.family(Kind::Gauge, "jobboard_info", help);
        info.add(&labels, 1.0);
        self.add_jobs(exposition, by_name);
        self.add_unclaimed(exposition);
        self.add_claims(exposition);
        self.add_conductors(exposition);
    }

    fn add_jobs(&self, exposition: &mut Exposition, by_name: bool) {
        let help = "Jobs on the board and in the trash, and unreadable records, by state.";
        let jobs = exposition.family(Kind::Gauge, "jobboard_jobs", help);
        let Figures {
            unclaimed, claimed, ..
        } = self.figures;
        let mut rest = [("unclaimed", unclaimed), ("claimed", claimed)];
        for named in self.names.iter().take(MOST_NAMES).filter(|_| by_name) {
            for ((state, rest), count) in rest.iter_mut().zip([named.unclaimed, named.claimed]) {
                let labels = [("state", *state), ("name", &named.name)];
                jobs.add(&labels, count as f64);
                *rest -= count;
            }
        }
        for (state, rest) in rest {
            let labels = [("state", state), ("name", OTHERS)];
            let labels = if by_name { &labels[..] } else { &labels[..1] };
            jobs.add(labels, rest as f64);
        }
        jobs.add(&[("state", "trashed")], self.health.trashed as f64);
        let malformed = self.figures.malformed;
        jobs.add(&[("state", "malformed")], malformed as f64);
    }

    fn add_unclaimed(&self, exposition: &mut Exposition) {
        let Figures {
            backing_off,
            retries_exhausted,
            ..
        } = self.figures;
        let Claimable {
            jobs,
            older: aged,
            paused,
        } = self.claimable;
        for (name, help, value) in [
            (
                "jobboard_jobs_claimable",
                "Unclaimed jobs that can be claimed now.",
                jobs,
            ),
            (
                "jobboard_jobs_paused",
                "Unclaimed jobs with a paused name.",
                paused,
            ),
            (
                "jobboard_jobs_backing_off",
                "Unclaimed jobs that are backing off.",
                backing_off,
            ),
            (
                "jobboard_jobs_retries_exhausted",
                "Unclaimed jobs that reached their retry limit.",
                retries_exhausted,
            ),
        ] {
            exposition.gauge(name, help, value as f64);
        }
        let help = "Claimable jobs older than the given number of seconds.";
        let older = exposition.family(Kind::Gauge, "jobboard_jobs_older_than", help);
        for (age, count) in AGES.iter().zip(aged) {
            older.add(&[("seconds", &age.to_string())], count as f64);
        }
        let help = "Age of the oldest unclaimed job; 0 without one.";
        let oldest = age(self.figures.oldest_unclaimed.as_ref(), self.now).as_secs_f64();
        exposition.gauge("jobboard_oldest_unclaimed_seconds", help, oldest);
    }

    fn add_claims(&self, exposition: &mut Exposition) {
        let help = "Age of the oldest claim; 0 without one.";
        let longest = age(self.figures.longest_held.as_ref(), self.now).as_secs_f64();
        exposition.gauge("jobboard_longest_claim_seconds", help, longest);
        let help = "Claims without an expiry.";
        let never = self.figures.claim_never_expires as f64;
        exposition.gauge("jobboard_jobs_claim_never_expires", help, never);
        if self.conductors.is_some() {
            let help = "Claims of processes that no longer exist.";
            let owner_dead = self.figures.owner_dead as f64;
            exposition.gauge("jobboard_jobs_owner_dead", help, owner_dead);
        }
    }

    fn add_conductors(&self, exposition: &mut Exposition) {
        let help = "1 if the registry of conductors could be read, otherwise 0; the metrics of \
            conductors are then missing.";
        let is_seen = f64::from(u8::from(self.conductors.is_some()));
        exposition.gauge("jobboard_conductors_seen", help, is_seen);
        let Some(conductors) = &self.conductors else {
            return;
        };
        let (silent, alive): (Vec<_>, Vec<_>) = conductors.iter().partition(|it| is_silent(it));
        let help = "Registered conductors by state: alive or silent.";
        let family = exposition.family(Kind::Gauge, "jobboard_conductors", help);
        family.add(&[("state", "alive")], alive.len() as f64);
        family.add(&[("state", "silent")], silent.len() as f64);
        let slots = alive.iter().filter(|it| it.told.slots.is_some());
        let free: usize = slots.map(|it| it.free()).sum();
        let help = "Free slots of all live conductors.";
        exposition.gauge("jobboard_slots_free", help, free as f64);
        let unsettled: usize = conductors.iter().map(|it| it.told.unsettled.len()).sum();
        let help = "Finished jobs that a conductor could not record.";
        exposition.gauge("jobboard_jobs_unsettled", help, unsettled as f64);
    }
}
