//! Metrics of a board for Prometheus, from one pass.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use crate::{
    board::{Board, BoardError, Detail, Health, Query},
    diagnosis::{Snapshot, Survey, Surveyor, age},
    job::{Job, Location},
    output::{Exposition, timestamp},
    problem::{Code, CodeCount, Group},
};

/// Age limits of the claimable jobs, in seconds.
const AGES: [u32; 4] = [60, 600, 3600, 86400];

#[derive(Default)]
struct Claimable {
    jobs: u64,
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
    expiry: Option<Duration>,
    exposition: &mut Exposition,
) -> Result<(), BoardError> {
    let start = Instant::now();
    let seen = look(board, expiry).await;
    exposition.value("jobboard_up", f64::from(seen.is_ok()));
    exposition.value(
        "jobboard_scrape_duration_seconds",
        start.elapsed().as_secs_f64(),
    );
    exposition.value("jobboard_scrape_timestamp_seconds", timestamp(Utc::now()));
    let (health, survey, claimable) = seen?;
    add(&health, &survey, &claimable, exposition);
    Ok(())
}

async fn look(
    board: &dyn Board,
    expiry: Option<Duration>,
) -> Result<(Health, Survey, Claimable), BoardError> {
    let health = board.health().await?;
    let now = Utc::now();
    let snapshot = Snapshot::read(board, expiry, now).await?;
    // No name is printed.
    let mut surveyor = Surveyor::new(snapshot).with_names(1);
    let mut claimable = Claimable::default();
    let mut entries = board.entries(Query::all(Location::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await? {
        let judged = surveyor.add(&entry);
        if let Some(job) = entry.job().filter(|job| judged.is_claimable(job, now)) {
            claimable.add(job, now);
        }
    }
    drop(entries);
    let survey = surveyor.finish(board).await?;
    Ok((health, survey, claimable))
}

fn add(health: &Health, survey: &Survey, claimable: &Claimable, exposition: &mut Exposition) {
    let (figures, snapshot) = (&survey.figures, &survey.snapshot);
    let version = ("version", env!("CARGO_PKG_VERSION"));
    let info = exposition.family("jobboard_info");
    info.add(&[version, ("server", &health.server)], 1.0);
    let jobs = exposition.family("jobboard_jobs");
    let malformed = figures.of(Code::UnreadableRecord);
    jobs.add(&[("state", "unclaimed")], figures.unclaimed as f64);
    jobs.add(&[("state", "claimed")], figures.claimed as f64);
    jobs.add(&[("state", "trashed")], health.trashed as f64);
    jobs.add(&[("state", "malformed")], malformed as f64);
    exposition.value("jobboard_jobs_claimable", claimable.jobs as f64);
    exposition.value("jobboard_jobs_paused", figures.paused as f64);
    exposition.value("jobboard_jobs_backing_off", figures.backing_off as f64);
    let older = exposition.family("jobboard_jobs_older_than");
    for (age, count) in AGES.iter().zip(claimable.older) {
        older.add(&[("seconds", &age.to_string())], count as f64);
    }
    let age = |job: &Option<_>| age(job.as_ref(), snapshot.now).as_secs_f64();
    let [oldest, longest] = [&figures.oldest_unclaimed, &figures.longest_held].map(age);
    exposition.value("jobboard_oldest_unclaimed_seconds", oldest);
    exposition.value("jobboard_longest_claim_seconds", longest);
    // The trash is not read.
    let codes = Code::ALL
        .iter()
        .filter(|it| it.is_problem() && it.group() == Group::Jobs);
    let family = exposition.family("jobboard_jobs_with_problem");
    for code in codes.filter(|code| **code != Code::Failed) {
        family.add(&[("code", code.name())], figures.of(*code) as f64);
    }
    let family = exposition.family("jobboard_problems");
    for of in CodeCount::of(survey.problems().iter().chain(&health.problem)) {
        family.add(&[("code", of.code.name())], of.problems as f64);
    }
    let is_seen = f64::from(snapshot.sees_conductors);
    exposition.value("jobboard_conductors_seen", is_seen);
    if snapshot.sees_conductors {
        let family = exposition.family("jobboard_conductors");
        family.add(&[("state", "alive")], snapshot.alive().count() as f64);
        family.add(&[("state", "silent")], survey.silent() as f64);
        exposition.value("jobboard_slots_free", snapshot.free_slots() as f64);
    }
}
