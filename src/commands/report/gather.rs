//! Looking at a board for a report: once at each record, in memory that does not grow with their number.

use std::{borrow::Cow, cmp::Reverse};

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound as _, Utc};
use futures_util::TryStreamExt;

use super::{
    facts::{Facts, Trouble},
    guard,
    lanes::Runs,
    measure::{Bucket, Course, Kind, Quantiles, attempts, count, spans},
};
use crate::{
    board::{Board, BoardError, BoardExt as _, Detail, Query},
    commands::{
        doctor::{self, DoctorArgs, Look, Looking},
        explain::{Scene, Worst},
        parts::{
            liveness::is_silent,
            signature::Signatures,
            tally::{Departures, Tally, apart, is_exhausted},
        },
    },
    context::Context,
    job::{Conductor, Departure, Entry, Job, Lease, Origin, Shelf},
    output::Progress,
};

/// How many names are counted for sure, however many there are.
const COUNTED_NAMES: usize = 10_000;

/// How many names and owners are told.
const MOST: usize = 50;

/// How many kinds of failures are told.
const MOST_FAILURES: usize = 20;

/// After so many records the progress is told.
const STEP: u64 = 500;

/// What is counted besides what other commands count, too.
pub(super) struct Gathered {
    at: DateTime<Utc>,
    ages: Vec<Bucket>,
    held: Vec<Bucket>,
    attempts: Vec<Bucket>,
    course: Course,
    waited: Quantiles,
    took: Quantiles,
    failures: Signatures,
    runs: Runs,
    /// How many jobs in the trash have failed.
    lost: u64,
    lately: Departures,
    /// Whether nothing has ended before that.
    all_are_late: bool,
    remembered: Departures,
}

impl Gathered {
    pub(super) fn new(at: DateTime<Utc>) -> Self {
        Self {
            at,
            ages: spans(),
            held: spans(),
            attempts: attempts(),
            course: Course::new(at),
            waited: Quantiles::default(),
            took: Quantiles::default(),
            failures: Signatures::default(),
            runs: Runs::default(),
            lost: 0,
            lately: Departures::lately(at),
            all_are_late: true,
            remembered: Departures {
                since: DateTime::<Utc>::MIN_UTC,
                ..Departures::default()
            },
        }
    }

    /// Adds a job of any shelf.
    pub(super) fn add(&mut self, job: &Job) {
        let job = &*guard::job(job);
        if let Some(posted) = job.created_on {
            self.course.add(Kind::Posted, posted);
        }
        self.failures.add(job);
        self.runs.add_failures(job);
        match job.shelf {
            Shelf::Board => self.add_waiting(job),
            Shelf::Trash => {
                self.lost += u64::from(!job.history.failures.is_empty());
                if let Some(time) = job.trashed_on {
                    self.course.add(Kind::Failed, time);
                }
            }
            Shelf::Past => self.add_ended(job),
        }
    }

    fn add_waiting(&mut self, job: &Job) {
        let ago = |time: DateTime<Utc>| (self.at - time).num_seconds().max(0);
        match &job.holding {
            None => {
                let is_held_back = job.history.not_before.is_some_and(|time| time > self.at);
                if let Some(posted) = job.created_on {
                    count(&mut self.ages, ago(posted), is_held_back);
                }
            }
            Some(holding) => {
                if let Some(since) = job.held_since() {
                    count(&mut self.held, ago(since), holding.lease == Lease::None);
                }
            }
        }
        let under_way = u32::from(job.holding.is_some());
        let tried = job.history.attempts.saturating_sub(under_way);
        count(&mut self.attempts, tried.into(), is_exhausted(job));
    }

    fn add_ended(&mut self, job: &Job) {
        let Some(ended) = &job.ended else { return };
        let kind = match ended.departure {
            Departure::Consumed => Kind::Finished,
            Departure::Failed => Kind::Failed,
            // It came to its end when it was trashed.
            Departure::Purged => return,
        };
        self.course.add(kind, ended.on);
        self.course.reach(ended.on);
        self.waited.extend(job.waited());
        self.took.extend(job.took());
        self.runs.add_end(job);
    }

    /// Adds what has left the board; it comes latest first.
    pub(super) fn add_left(&mut self, entry: &Entry) {
        self.all_are_late = self.all_are_late && self.lately.add(entry);
        self.remembered.add(entry);
        if let Entry::Job(job) = entry {
            self.add(job);
        }
    }

    async fn add_past(&mut self, board: &dyn Board, history: u32) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(Shelf::Past, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            self.add_left(&entry);
        }
        if self.all_are_late {
            self.lately.end(history);
        }
        Ok(())
    }

    /// Says what there is to say of it, and nothing of what others count.
    pub(super) fn into_facts(mut self, conductors: &[Conductor]) -> Facts {
        self.remembered.since = self.remembered.earliest.unwrap_or(self.at);
        let (failures, more_failures) = capped(self.failures.finish(), MOST_FAILURES);
        let silent = conductors.iter().filter(|it| is_silent(it)).count();
        let unsettled = conductors.iter().map(|it| it.told.unsettled.len() as u64);
        Facts {
            at: self.at,
            version: env!("CARGO_PKG_VERSION"),
            sound: true,
            conductors: Some(conductors.len() - silent),
            silent: silent as u64,
            unsettled: unsettled.sum(),
            past: Some(self.lately),
            remembered: Some(self.remembered),
            ages: self.ages,
            held: self.held,
            attempts: self.attempts,
            failures,
            more_failures,
            course: self.course.intervals(),
            waited: self.waited.percentiles(),
            took: self.took.percentiles(),
            lost: self.lost,
            timeline: self.runs.finish(conductors, self.at),
            ..Facts::default()
        }
    }

    async fn add_trash(&mut self, board: &dyn Board, seen: &mut Seen) -> Result<(), BoardError> {
        let mut entries = board.entries(Query::all(Shelf::Trash, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            seen.one();
            if let Entry::Job(job) = &entry
                && !matches!(job.origin, Origin::Beside(_))
            {
                self.add(job);
            }
        }
        Ok(())
    }
}

/// How many records have been seen.
struct Seen {
    progress: Progress,
    count: u64,
}

impl Seen {
    fn one(&mut self) {
        self.count += 1;
        if self.count.is_multiple_of(STEP) {
            self.progress.add(STEP);
        }
    }
}

/// What is not seen, and why.
#[derive(Default)]
struct Unseen(Vec<String>);

impl Unseen {
    /// Takes what keeps a part from being seen.
    fn apart<T>(
        &mut self,
        what: &str,
        seen: Result<T, BoardError>,
    ) -> Result<Option<T>, BoardError> {
        let (seen, problem) = apart(seen)?;
        self.note(what, problem);
        Ok(seen)
    }

    fn note(&mut self, what: &str, problem: Option<String>) {
        let problem = problem.map(|problem| format!("{what}: {problem}"));
        self.0.extend(problem);
    }
}

/// Looks at the whole board, and says what there is to say of it at that time, or now.
pub(super) async fn gather(
    ctx: &Context,
    board: &dyn Board,
    wanted: Option<DateTime<Utc>>,
) -> anyhow::Result<Facts> {
    let at = wanted.unwrap_or_else(Utc::now).trunc_subsecs(6);
    let trying = || ctx.trying("report on", "the board");
    let health = board.health().await.with_context(trying)?;
    let mut unseen = Unseen::default();
    let conductors = unseen.apart("the conductors", board.conductors().await);
    let conductors = conductors.with_context(trying)?;
    let pauses = board.lasting_pauses(at).await.with_context(trying)?;
    unseen.note("what is paused", pauses.unseen().map(str::to_owned));
    let scene = Scene::of(ctx, board, at).await?;

    let mut gathered = Gathered::new(at);
    let past = gathered.add_past(board, ctx.config.history.value).await;
    let past = unseen.apart("what has left the board", past);
    let is_past_seen = past.with_context(trying)?.is_some();
    let tally = Tally::new(at).with_names(COUNTED_NAMES);
    let looking = Looking::new(board, conductors.as_deref(), health.trashed_beside, tally);
    let mut looking = looking.judged_at(wanted);
    let mut worst = Worst::default();
    let all = health.jobs + health.trashed;
    let mut seen = Seen {
        progress: ctx.out.progress("reading", Some(all)),
        count: 0,
    };
    let trash = gathered.add_trash(board, &mut seen).await;
    let trash = unseen.apart("the trash", trash);
    trash.with_context(trying)?;
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await.with_context(trying)? {
        seen.one();
        worst.add(&scene, &entry);
        add_entry(&entry, &mut gathered, &mut looking);
    }
    drop((entries, seen));

    let (explained, trouble) = worst.finish(board, &scene).await.with_context(trying)?;
    let trouble = trouble.into_iter();
    let look = looking.finish(board).await.with_context(trying)?;
    let diagnosis = doctor::examine(ctx, board, &DoctorArgs::default(), Some(&look)).await?;
    let not_seen = diagnosis.unseen.into_iter().map(|it| it.what);
    let mut findings = diagnosis.findings;
    // What is worst first, and otherwise in the order of `doctor`.
    findings.sort_by_key(|it| Reverse(it.severity));
    let facts = gathered.into_facts(conductors.as_deref().unwrap_or_default());
    let facts = Facts {
        board: board.name().to_owned(),
        server: health.server,
        sound: diagnosis.sound,
        findings,
        trouble: trouble.map(|(code, jobs)| Trouble { code, jobs }).collect(),
        explained,
        unseen: unseen.0.into_iter().chain(not_seen).collect(),
        trashed: health.trashed,
        conductors: facts.conductors.filter(|_| conductors.is_some()),
        pauses: pauses.all().cloned().collect(),
        past: facts.past.filter(|_| is_past_seen),
        remembered: facts.remembered.filter(|_| is_past_seen),
        ..facts
    };
    Ok(with_look(facts, look).guarded())
}

/// Adds a record of the board, its name as it is told.
fn add_entry(entry: &Entry, gathered: &mut Gathered, looking: &mut Looking) {
    let Entry::Job(job) = entry else {
        looking.add(entry);
        return;
    };
    gathered.add(job);
    match guard::job(job) {
        Cow::Borrowed(_) => looking.add(entry),
        Cow::Owned(told) => looking.add(&Entry::Job(told.into())),
    }
}

/// Adds what a look at the jobs has counted.
fn with_look(facts: Facts, look: Look) -> Facts {
    let (names, more_names) = capped(look.names, MOST);
    let (owners, more_owners) = capped(look.owners, MOST);
    Facts {
        figures: look.figures,
        names,
        more_names: (!look.has_more_names).then_some(more_names),
        owners,
        more_owners,
        ..facts
    }
}

/// Returns no more than so many, and how many are left out.
fn capped<T>(mut all: Vec<T>, most: usize) -> (Vec<T>, u64) {
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    (all, more as u64)
}
