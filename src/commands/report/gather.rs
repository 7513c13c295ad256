//! Collects a report in one pass over the records, in bounded memory.

use std::{cmp::Reverse, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use futures_util::TryStreamExt;

use super::{
    facts::{Facts, Trouble},
    guard,
    lanes::Runs,
    measure::{Course, Kind, Quantiles, attempts, count, spans},
    words::More,
};
use crate::{
    board::{Board, BoardError, Detail, Health, Query},
    commands::{
        doctor::{self, Diagnosis, DoctorArgs, Look, Looking, Taken},
        explain::{Scene, Worst},
        parts::{
            liveness::is_silent,
            signature::Signatures,
            tally::{Departures, Tally, apart, is_exhausted},
        },
    },
    context::Context,
    job::{Conductor, Departure, Entry, Job, Lease, Origin, Pauses, Shelf},
    output::Progress,
};

/// The number of names with exact counts.
const COUNTED_NAMES: usize = 10_000;

/// The number of names, owners, pauses and findings in a report.
const MOST: usize = 50;

const MOST_FAILURES: usize = 20;

pub(super) struct Gathered {
    facts: Facts,
    course: Course,
    waited: Quantiles,
    took: Quantiles,
    failures: Signatures,
    runs: Runs,
    lately: Departures,
    /// Whether all recorded ends are within `lately`.
    all_are_late: bool,
    remembered: Departures,
    /// The unreadable records of the history and of the trash.
    unreadable: [u64; 2],
}

impl Gathered {
    pub(super) fn new(at: DateTime<Utc>) -> Self {
        Self {
            facts: Facts {
                at,
                version: env!("CARGO_PKG_VERSION"),
                sound: true,
                ages: spans(),
                held: spans(),
                attempts: attempts(),
                ..Facts::default()
            },
            course: Course::new(at),
            waited: Quantiles::default(),
            took: Quantiles::default(),
            failures: Signatures::default(),
            runs: Runs::default(),
            lately: Departures::lately(at),
            all_are_late: true,
            remembered: Departures {
                since: DateTime::<Utc>::MIN_UTC,
                ..Departures::default()
            },
            unreadable: [0; 2],
        }
    }

    /// Adds a job of any shelf, with its names masked.
    pub(super) fn add(&mut self, job: &Job) {
        if let Some(posted) = job.created_on {
            self.course.add(Kind::Posted, posted);
        }
        self.failures.add(job);
        self.runs.add_failures(job);
        match job.shelf {
            Shelf::Board => self.add_waiting(job),
            Shelf::Trash => {
                self.facts.lost += u64::from(!job.history.failures.is_empty());
                if let Some(time) = job.trashed_on {
                    self.course.add(Kind::Failed, time);
                }
            }
            Shelf::Past => self.add_ended(job),
        }
    }

    fn add_waiting(&mut self, job: &Job) {
        let facts = &mut self.facts;
        let ago = |time: DateTime<Utc>| (facts.at - time).num_seconds().max(0);
        match &job.holding {
            None => {
                let is_held_back = job.history.not_before.is_some_and(|time| time > facts.at);
                if let Some(ago) = job.created_on.map(ago) {
                    count(&mut facts.ages, ago, is_held_back);
                }
            }
            Some(holding) => {
                if let Some(ago) = job.held_since().map(ago) {
                    count(&mut facts.held, ago, holding.lease == Lease::None);
                }
            }
        }
        let under_way = u32::from(job.holding.is_some());
        let tried = job.history.attempts.saturating_sub(under_way);
        count(&mut facts.attempts, tried.into(), is_exhausted(job));
    }

    fn add_ended(&mut self, job: &Job) {
        let Some(ended) = &job.ended else { return };
        self.course.reach(ended.on);
        let (kind, on) = match ended.departure {
            Departure::Consumed => (Kind::Finished, Some(ended.on)),
            Departure::Failed => (Kind::Failed, Some(ended.on)),
            // A purged job ended when it was trashed, if its record shows the time.
            Departure::Purged => (Kind::Failed, job.history.failures.last().map(|it| it.time)),
        };
        if let Some(on) = on {
            self.course.add(kind, on);
        }
        if ended.departure != Departure::Purged {
            self.waited.add(job.waited());
            self.took.add(job.took());
            self.runs.add_end(job);
        }
    }

    /// Adds a job of the history; the latest comes first.
    pub(super) fn add_left(&mut self, entry: &Entry) {
        self.all_are_late = self.all_are_late && self.lately.add(entry);
        self.remembered.add(entry);
        match entry {
            Entry::Job(job) => self.add(job),
            Entry::Malformed(_) => self.unreadable[0] += 1,
        }
    }

    async fn add_past(&mut self, board: &dyn Board, history: u32) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(Shelf::Past, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            self.add_left(&guarded(entry, TimeDelta::zero()));
        }
        if self.all_are_late {
            self.lately.end(history);
        }
        Ok(())
    }

    async fn add_trash(&mut self, board: &dyn Board, read: &Progress) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(Shelf::Trash, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            read.add(1);
            match guarded(entry, TimeDelta::zero()) {
                Entry::Job(job) if matches!(job.origin, Origin::Beside(_)) => {}
                Entry::Job(job) => self.add(&job),
                Entry::Malformed(_) => self.unreadable[1] += 1,
            }
        }
        Ok(())
    }

    fn unread(&self) -> impl Iterator<Item = String> + use<> {
        let places = ["in the history", "in the trash"];
        let counts = self.unreadable.into_iter().zip(places);
        let counts = counts.filter(|(count, _)| *count > 0);
        counts.map(|(count, place)| format!("unreadable records {place}: {count}"))
    }

    pub(super) fn into_facts(mut self, conductors: &[Conductor]) -> Facts {
        self.remembered.since = self.remembered.earliest.unwrap_or(self.facts.at);
        let has_dropped = self.failures.has_dropped;
        let mut failures = self.failures.finish();
        let silent = conductors.iter().filter(|it| is_silent(it)).count();
        let unsettled = conductors.iter().map(|it| it.told.unsettled.len() as u64);
        Facts {
            conductors: Some(conductors.len() - silent),
            silent: silent as u64,
            unsettled: unsettled.sum(),
            history: Some(self.lately),
            remembered: Some(self.remembered),
            more_failures: More::than(&mut failures, MOST_FAILURES, has_dropped),
            failures,
            course: self.course.intervals(),
            waited: self.waited.percentiles(),
            took: self.took.percentiles(),
            timeline: self.runs.finish(conductors, self.facts.at),
            ..self.facts
        }
    }
}

/// Masks the names in a record, and shortens its claim by `later`.
pub(super) fn guarded(mut entry: Entry, later: TimeDelta) -> Entry {
    if let Entry::Job(job) = &mut entry {
        guard::job(job);
        let holding = job.holding.iter_mut();
        let left = holding.filter_map(|it| it.expires_in.as_mut());
        left.for_each(|left| *left = lengthened(*left, -later));
    }
    entry
}

fn lengthened(seen: Duration, by: TimeDelta) -> Duration {
    let span = TimeDelta::from_std(seen).ok();
    let span = span.and_then(|span| span.checked_add(&by));
    span.map_or(seen, |span| span.to_std().unwrap_or_default())
}

/// Returns a part of the board, or notes why it is unreadable.
fn seen<T>(
    unseen: &mut Vec<String>,
    what: &str,
    part: Result<T, BoardError>,
) -> Result<Option<T>, BoardError> {
    let (part, problem) = apart(part)?;
    unseen.extend(problem.map(|problem| format!("{what}: {problem}")));
    Ok(part)
}

struct Surroundings {
    health: Health,
    /// `None`: unreadable.
    conductors: Option<Vec<Conductor>>,
    pauses: Pauses,
    /// The reference time of the report, and its distance from now.
    at: DateTime<Utc>,
    later: TimeDelta,
    unseen: Vec<String>,
}

impl Surroundings {
    async fn look(board: &dyn Board, wanted: Option<DateTime<Utc>>) -> Result<Self, BoardError> {
        let now = Utc::now().trunc_subsecs(6);
        let at = wanted.unwrap_or(now);
        let (health, mut unseen) = (board.health().await?, Vec::new());
        let mut conductors = seen(&mut unseen, "the conductors", board.conductors().await)?;
        for it in conductors.iter_mut().flatten() {
            guard::conductor(it);
            it.silence = it.silence.map(|silence| lengthened(silence, at - now));
        }
        let pauses = seen(&mut unseen, "the pauses", board.pauses().await)?;
        Ok(Self {
            health,
            conductors,
            pauses: Pauses::new(pauses.unwrap_or_default(), at),
            at,
            later: at - now,
            unseen,
        })
    }

    fn scene(&self, ctx: &Context, board: &dyn Board) -> Scene {
        let conductors = self.conductors.clone().unwrap_or_default();
        let scene = Scene::new(ctx, board, self.at);
        scene.knowing(self.pauses.clone(), conductors, self.unseen.clone())
    }
}

/// Reads the whole board as of that time, or now.
pub(super) async fn gather(
    ctx: &Context,
    board: &dyn Board,
    wanted: Option<DateTime<Utc>>,
) -> anyhow::Result<Facts> {
    let trying = || ctx.trying("report on", "the board");
    let around = Surroundings::look(board, wanted).await;
    let mut around = around.with_context(trying)?;
    let scene = around.scene(ctx, board);
    let (unseen, health) = (&mut around.unseen, &around.health);
    let known = around.conductors.as_deref();

    let mut gathered = Gathered::new(around.at);
    let past = gathered.add_past(board, ctx.config.history.value).await;
    let past = seen(unseen, "the history", past);
    let is_past_seen = past.with_context(trying)?.is_some();
    let read = ctx
        .out
        .progress("reading", Some(health.jobs + health.trashed));
    let trash = gathered.add_trash(board, &read).await;
    seen(unseen, "the trash", trash).with_context(trying)?;
    unseen.extend(gathered.unread());
    let tally = Tally::new(around.at).with_names(COUNTED_NAMES);
    let looking = Looking::new(board, known, health.trashed_beside, tally);
    let mut looking = looking.judged_at(wanted);
    let mut worst = Worst::default();
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await.with_context(trying)? {
        read.add(1);
        worst.add(&scene, &entry);
        let entry = guarded(entry, around.later);
        if let Entry::Job(job) = &entry {
            gathered.add(job);
        }
        looking.add(&entry);
    }
    drop((entries, read));

    let (explained, trouble) = worst.finish(board, &scene).await.with_context(trying)?;
    let trouble = trouble.into_iter();
    let look = looking.finish(board).await.with_context(trying)?;
    let facts = Facts {
        board: board.name().to_owned(),
        stuck_jobs: trouble.map(|(code, jobs)| Trouble { code, jobs }).collect(),
        explained,
        ..gathered.into_facts(known.unwrap_or_default())
    };
    let facts = facts.around(&around, is_past_seen);
    let taken = Taken {
        look: &look,
        health: around.health,
        conductors: around.conductors,
    };
    let diagnosis = doctor::examine(ctx, board, &DoctorArgs::default(), Some(&taken)).await?;
    Ok(facts.diagnosed(diagnosis).looked(look).guarded())
}

impl Facts {
    /// Adds the facts that need no jobs, and drops unreadable ones.
    fn around(self, around: &Surroundings, is_past_seen: bool) -> Self {
        Self {
            server: around.health.server.clone(),
            trashed: around.health.trashed,
            conductors: self.conductors.filter(|_| around.conductors.is_some()),
            pauses: around.pauses.all().cloned().collect(),
            history: self.history.filter(|_| is_past_seen),
            remembered: self.remembered.filter(|_| is_past_seen),
            unseen: around.unseen.clone(),
            ..self
        }
    }

    /// Adds the findings of `doctor`, the worst first, and its gaps.
    fn diagnosed(mut self, diagnosis: Diagnosis) -> Self {
        // Printed once, not per job.
        for it in &mut self.explained {
            it.unseen.retain(|what| !self.unseen.contains(what));
        }
        self.unseen
            .extend(diagnosis.unseen.into_iter().map(|it| it.what));
        let mut findings = diagnosis.findings;
        findings.sort_by_key(|it| Reverse(it.severity));
        Self {
            sound: diagnosis.sound,
            wrong: findings.iter().filter(|it| it.is_wrong()).count(),
            more_findings: More::than(&mut findings, MOST, false),
            findings,
            ..self
        }
    }

    /// Adds the counts of the pass, cut to the limits of a report.
    fn looked(mut self, mut look: Look) -> Self {
        let [has_names, has_owners] = look.has_dropped;
        Self {
            figures: look.figures,
            more_names: More::than(&mut look.names, MOST, has_names),
            names: look.names,
            more_owners: More::than(&mut look.owners, MOST, has_owners),
            owners: look.owners,
            more_pauses: More::than(&mut self.pauses, MOST, false),
            ..self
        }
    }
}
