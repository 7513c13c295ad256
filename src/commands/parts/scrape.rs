//! Metrics of a board for Prometheus, from one pass.

use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use crate::{
    board::{Board, BoardError, Detail, Health, Query},
    config::Expiry,
    diagnosis::{Cause, Judged, Snapshot, Survey, Surveyor, age},
    job::{Job, Shelf},
    output::{Exposition, Kind, timestamp},
    problem::{Code, Group},
};

/// The number of names with their own metrics.
const MOST_NAMES: usize = 50;

pub(crate) const OTHERS: &str = "__other__";

/// Age limits of the claimable jobs, in seconds.
const AGES: [u32; 4] = [60, 600, 3600, 86400];

struct Seen {
    health: Health,
    survey: Survey,
    claimable: Claimable,
}

/// The jobs that can be claimed now.
#[derive(Default)]
struct Claimable {
    jobs: u64,
    /// The number of them older than each of [`AGES`].
    older: [u64; AGES.len()],
}

impl Claimable {
    fn add(&mut self, job: &Job, now: DateTime<Utc>) {
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
    expiry: Option<Expiry>,
    by_name: bool,
    exposition: &mut Exposition,
) -> Result<(), BoardError> {
    let start = Instant::now();
    let seen = look(board, expiry).await;
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

async fn look(board: &dyn Board, expiry: Option<Expiry>) -> Result<Seen, BoardError> {
    let health = board.health().await?;
    let now = Utc::now();
    let snapshot = Snapshot::read(board, expiry, now).await?;
    let mut surveyor = Surveyor::new(snapshot).with_names(MOST_NAMES);
    let mut claimable = Claimable::default();
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await? {
        let judged = surveyor.add(&entry);
        if let Some(job) = entry.job().filter(|job| is_claimable(job, &judged, now)) {
            claimable.add(job, now);
        }
    }
    drop(entries);
    let survey = surveyor.finish(board).await?;
    Ok(Seen {
        health,
        survey,
        claimable,
    })
}

/// Whether a client could claim the job now, if one accepts it.
fn is_claimable(job: &Job, judged: &Judged, now: DateTime<Utc>) -> bool {
    let prevents = |cause: &Cause| matches!(cause.code, Code::Paused | Code::Exhausted);
    let is_free = job.holding.is_none() && job.may_be_offered();
    is_free && !job.history.is_held_back(now) && !judged.causes().any(prevents)
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
        self.add_problems(exposition);
        self.add_conductors(exposition);
    }

    fn add_jobs(&self, exposition: &mut Exposition, by_name: bool) {
        let help = "Jobs on the board and in the trash, and unreadable records, by state.";
        let jobs = exposition.family(Kind::Gauge, "jobboard_jobs", help);
        let figures = &self.survey.figures;
        let mut rest = [
            ("unclaimed", figures.unclaimed),
            ("claimed", figures.claimed),
        ];
        for named in self
            .survey
            .names
            .iter()
            .take(MOST_NAMES)
            .filter(|_| by_name)
        {
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
        let malformed = figures.of(Code::UnreadableRecord);
        jobs.add(&[("state", "malformed")], malformed as f64);
    }

    fn add_unclaimed(&self, exposition: &mut Exposition) {
        let figures = &self.survey.figures;
        for (name, help, value) in [
            (
                "jobboard_jobs_claimable",
                "Unclaimed jobs that can be claimed now.",
                self.claimable.jobs,
            ),
            (
                "jobboard_jobs_paused",
                "Unclaimed jobs with a paused name.",
                figures.paused,
            ),
            (
                "jobboard_jobs_backing_off",
                "Unclaimed jobs that are backing off.",
                figures.backing_off,
            ),
        ] {
            exposition.gauge(name, help, value as f64);
        }
        let help = "Claimable jobs older than the given number of seconds.";
        let older = exposition.family(Kind::Gauge, "jobboard_jobs_older_than", help);
        for (age, count) in AGES.iter().zip(self.claimable.older) {
            older.add(&[("seconds", &age.to_string())], count as f64);
        }
        let now = self.survey.snapshot.now;
        let help = "Age of the oldest unclaimed job; 0 without one.";
        let oldest = age(figures.oldest_unclaimed.as_ref(), now).as_secs_f64();
        exposition.gauge("jobboard_oldest_unclaimed_seconds", help, oldest);
        let help = "Age of the oldest claim; 0 without one.";
        let longest = age(figures.longest_held.as_ref(), now).as_secs_f64();
        exposition.gauge("jobboard_longest_claim_seconds", help, longest);
    }

    /// Counts the jobs of each problem, under the codes of `doctor`. The trash is not read.
    fn add_problems(&self, exposition: &mut Exposition) {
        let help = "Jobs on the board with this problem, as `jobboard doctor` names it.";
        let family = exposition.family(Kind::Gauge, "jobboard_jobs_with_problem", help);
        let codes = Code::ALL
            .iter()
            .filter(|it| it.is_problem() && it.group() == Group::Jobs);
        for code in codes.filter(|code| **code != Code::Failed) {
            let count = self.survey.figures.of(*code);
            family.add(&[("code", code.name())], count as f64);
        }
    }

    fn add_conductors(&self, exposition: &mut Exposition) {
        let help = "1 if the registry of conductors could be read, otherwise 0; the metrics of \
            conductors are then missing.";
        let snapshot = &self.survey.snapshot;
        let is_seen = f64::from(u8::from(snapshot.sees_conductors));
        exposition.gauge("jobboard_conductors_seen", help, is_seen);
        if !snapshot.sees_conductors {
            return;
        }
        let help = "Registered conductors by state: alive or silent.";
        let family = exposition.family(Kind::Gauge, "jobboard_conductors", help);
        family.add(&[("state", "alive")], snapshot.alive().count() as f64);
        family.add(&[("state", "silent")], self.survey.silent() as f64);
        let slots = snapshot.alive().filter(|it| it.told.slots.is_some());
        let free: usize = slots.map(|it| it.free()).sum();
        let help = "Free slots of all live conductors.";
        exposition.gauge("jobboard_slots_free", help, free as f64);
    }
}
