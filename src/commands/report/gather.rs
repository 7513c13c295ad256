//! Collects a report in one pass over the records, in bounded memory.

use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use futures_util::TryStreamExt;

use super::{
    facts::ReportFacts,
    masking,
    measure::{CountedEvent, EventIntervals, Quantiles},
    words::Remainder,
};
use crate::{
    board::{Board, BoardError, Detail, Query},
    commands::parts::{notes::note_if_unused, problems::omit_refused},
    context::Context,
    diagnosis::{
        BOARD, Checkup, OutcomeCounts, Signatures, Snapshot, Surveyor, TRASH, examine, or_gap,
    },
    job::{Entry, Job, Location, Outcome},
    problem::{Group, Problem},
};

const COUNTED_NAMES: usize = 10_000;

const MAX_TABLE_ROWS: usize = 50;

const MAX_FAILURES: usize = 20;

pub(super) struct ReportData {
    facts: ReportFacts,
    events: EventIntervals,
    waited: Quantiles,
    took: Quantiles,
    failures: Signatures,
    lately: OutcomeCounts,
    /// Whether all recorded ends are within `lately`.
    all_are_late: bool,
    /// The unreadable records of the history and of the trash.
    unreadable: [u64; 2],
}

impl ReportData {
    pub(super) fn new(at: DateTime<Utc>) -> Self {
        Self {
            facts: ReportFacts {
                at,
                version: env!("CARGO_PKG_VERSION"),
                sound: true,
                ..ReportFacts::default()
            },
            events: EventIntervals::new(at),
            waited: Quantiles::default(),
            took: Quantiles::default(),
            failures: Signatures::default(),
            lately: OutcomeCounts::lately(at),
            all_are_late: true,
            unreadable: [0; 2],
        }
    }

    pub(super) fn add(&mut self, job: &Job) {
        if let Some(posted) = job.created_on {
            self.events.add(CountedEvent::Posted, posted);
        }
        self.failures.add(job);
        match job.location {
            Location::Board => {}
            Location::Trash => {
                if let Some(time) = job.trashed_on.filter(|_| job.fatal_failure().is_some()) {
                    self.events.add(CountedEvent::Failed, time);
                }
            }
            Location::History => self.add_ended(job),
        }
    }

    fn add_ended(&mut self, job: &Job) {
        let Some(ended) = &job.ended else { return };
        self.events.reach(ended.on);
        let (kind, on) = match ended.outcome {
            Outcome::Consumed => (CountedEvent::Finished, Some(ended.on)),
            Outcome::Failed => (CountedEvent::Failed, Some(ended.on)),
            // A purged job ended when it was trashed, if its record shows the time.
            Outcome::Purged => (
                CountedEvent::Failed,
                job.attempts.failures.last().map(|it| it.time),
            ),
            Outcome::Moved => return,
        };
        if let Some(on) = on {
            self.events.add(kind, on);
        }
        if ended.outcome != Outcome::Purged {
            self.waited.add(job.waited());
            self.took.add(job.took());
        }
    }

    pub(super) fn add_left(&mut self, entry: &Entry) {
        self.all_are_late = self.all_are_late && self.lately.add(entry);
        match entry {
            Entry::Job(job) => self.add(job),
            Entry::Malformed(_) => self.unreadable[0] += 1,
        }
    }

    async fn add_history(&mut self, board: &dyn Board, history: u32) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(Location::History, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            self.add_left(&masked(entry, TimeDelta::zero()));
        }
        if self.all_are_late {
            self.lately.end(history);
        }
        Ok(())
    }

    fn unread(&self) -> impl Iterator<Item = String> + use<> {
        let places = ["in the history", "in the trash"];
        let counts = self.unreadable.into_iter().zip(places);
        let counts = counts.filter(|(count, _)| *count > 0);
        counts.map(|(count, place)| format!("unreadable records {place}: {count}"))
    }

    pub(super) fn into_facts(self) -> ReportFacts {
        let has_dropped = self.failures.has_dropped;
        let mut failures = self.failures.finish();
        ReportFacts {
            history: Some(self.lately),
            more_failures: Remainder::than(&mut failures, MAX_FAILURES, has_dropped),
            failures,
            hour: self.events.last_hour(),
            intervals: self.events.intervals(),
            waited: self.waited.percentiles(),
            took: self.took.percentiles(),
            ..self.facts
        }
    }
}

/// Masks the names in a record, and shortens its claim by `later`.
pub(super) fn masked(mut entry: Entry, later: TimeDelta) -> Entry {
    if let Entry::Job(job) = &mut entry {
        masking::job(job);
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

/// Returns the snapshot as of that time, with names masked.
fn as_of(mut snapshot: Snapshot, at: DateTime<Utc>) -> Snapshot {
    let later = at - snapshot.now;
    let mut conductors: Vec<_> = snapshot.conductors().cloned().collect();
    for it in &mut conductors {
        masking::conductor(it);
        it.silence = it.silence.map(|silence| lengthened(silence, later));
    }
    snapshot.now = at;
    snapshot.with_conductors(conductors)
}

pub(super) async fn gather(
    ctx: &Context,
    board: &dyn Board,
    wanted: Option<DateTime<Utc>>,
) -> anyhow::Result<ReportFacts> {
    let trying = || ctx.trying("report on", "the board");
    let now = Utc::now().trunc_subsecs(6);
    let at = wanted.unwrap_or(now);
    let health = board.health().await.with_context(trying)?;
    note_if_unused(ctx, board, &health);
    let expiry = ctx.config.board.value.octavia_expiry();
    let snapshot = Snapshot::read(board, expiry, now).await;
    let snapshot = as_of(snapshot.with_context(trying)?, at);
    let mut unseen = Vec::new();
    let mut gathered = ReportData::new(at);
    let mut surveyor = Surveyor::new(snapshot).with_names(COUNTED_NAMES);
    let history = gathered.add_history(board, ctx.config.history.value).await;
    let history = or_gap(&mut unseen, "the history", history);
    let is_history_seen = history.with_context(trying)?.is_some();
    let read = ctx
        .out
        .progress("reading", Some(health.jobs + health.trashed));
    let trash = surveyor.read(board, TRASH, |entry| {
        read.add(1);
        let entry = masked(entry, TimeDelta::zero());
        match &entry {
            Entry::Job(job) => gathered.add(job),
            Entry::Malformed(_) => gathered.unreadable[1] += 1,
        }
        Some(entry)
    });
    or_gap(&mut unseen, "the trash", trash.await).with_context(trying)?;
    unseen.extend(gathered.unread());
    let jobs = surveyor.read(board, BOARD, |entry| {
        read.add(1);
        let entry = masked(entry, at - now);
        if let Entry::Job(job) = &entry {
            gathered.add(job);
        }
        Some(entry)
    });
    jobs.await.with_context(trying)?;
    drop(read);
    let survey = surveyor.finish(board).await.with_context(trying)?;
    let mut facts = ReportFacts {
        title: ctx.config.board.value.name.clone(),
        board: board.url().to_owned(),
        server: health.server.clone(),
        trashed: health.trashed,
        unseen,
        ..gathered.into_facts()
    };
    if !is_history_seen {
        facts.history = None;
    }
    // The databases of Octavia are not read.
    let groups: Vec<_> = (Group::ALL.iter().copied())
        .filter(|group| *group != Group::Octavia)
        .collect();
    let mut checkup = examine(&ctx.config, board, &groups, Some(survey), true).await?;
    let (problems, program) = (std::mem::take(&mut checkup.problems), ctx.program());
    let problems = problems.into_iter().map(|it| it.on(&program));
    let mut problems: Vec<_> = problems.collect();
    omit_refused(ctx, &mut problems);
    Ok(facts.diagnosed(checkup, problems).masked())
}

impl ReportFacts {
    pub(super) fn diagnosed(mut self, checkup: Checkup, mut problems: Vec<Problem>) -> Self {
        let gaps = checkup.unseen.into_iter().map(|(_, what)| what);
        self.unseen.extend(gaps);
        let wrong = problems.iter().filter(|it| it.is_wrong()).count();
        // The examination returns the survey that it was given.
        let mut survey = checkup.survey.unwrap_or_default();
        let [has_names, has_owners] = survey.has_dropped;
        let snapshot = &survey.snapshot;
        self.pauses = snapshot.pauses.all().cloned().collect();
        let absent = survey.absent();
        Self {
            sound: wrong == 0,
            wrong,
            more_problems: Remainder::than(&mut problems, MAX_TABLE_ROWS, false),
            problems,
            conductors: snapshot.sees_conductors.then(|| snapshot.alive().count()),
            silent: absent.values().sum(),
            absent,
            more_names: Remainder::than(&mut survey.names, MAX_TABLE_ROWS, has_names),
            names: survey.names,
            more_owners: Remainder::than(&mut survey.owners, MAX_TABLE_ROWS, has_owners),
            owners: survey.owners,
            figures: survey.figures,
            more_pauses: Remainder::than(&mut self.pauses, MAX_TABLE_ROWS, false),
            ..self
        }
    }
}
