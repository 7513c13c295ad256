//! The status of a conductor: its parts write it; the log, the registry, the service manager and the metrics read it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, SubsecRound, Utc};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    StopCondition,
    contact::Contact,
    log::{Note, Reporter, Tag},
    meter::{CountedEnd, Measurements},
    policy::excerpt,
    skipped::SkippedJobs,
};
use crate::{
    job::{Aftermath, ConductorReport, Decision, Job, JobKey, MAX_RUNS, Run, Unsettled},
    process::clock,
};

/// The longest silence of a board that gets a request every ten seconds.
const SILENCE: Duration = Duration::from_secs(60);

const MAX_UNSETTLED: usize = 100;

const MAX_NAMED: usize = 5;

/// How many failing jobs an endless conductor remembers: other conductors may finish them.
const MAX_FAILING: usize = 1000;

#[derive(Debug)]
pub(crate) struct ConductorStatus {
    pub(super) reporter: Reporter,
    pub(super) contact: Arc<Contact>,
    pub(super) skipped: SkippedJobs,
    pub(super) registered: watch::Sender<bool>,
    most_failing: usize,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) measured: Measurements,
    begun: u64,
    pub(super) runs: BTreeMap<u64, Run>,
    pub(super) unsettled: Vec<Unsettled>,
    pub(super) left_unsettled: u64,
    /// Claims released without a run since the picker last looked.
    pub(super) unused_claims: u64,
    /// The claimable jobs, and whether the board has more of them.
    pub(super) queue: (usize, bool),
    /// Jobs that failed here or whose claim was lost, and that have not ended since.
    failing: HashMap<JobKey, Arc<Tag>>,
    /// The first ones that failed for good, and how often one of them did so again.
    trashed: Vec<Arc<Tag>>,
    trashed_again: u64,
}

impl Work {
    fn has_trashed(&self, tag: &Tag) -> bool {
        self.trashed.iter().any(|it| it.uuid == tag.uuid)
    }
}

/// Counts a job as running until dropped.
pub(super) struct RunEntry<'a>(&'a ConductorStatus, u64);

impl Drop for RunEntry<'_> {
    fn drop(&mut self) {
        self.0.work.lock().runs.remove(&self.1);
    }
}

pub(crate) struct WorkSummary {
    pub(crate) ran: u64,
    pub(crate) consumed: u64,
    pub(crate) abandoned: u64,
    pub(crate) trashed: u64,
    pub(crate) lost: u64,
    pub(crate) unsettled: u64,
    pub(crate) skipped: BTreeMap<String, u64>,
    /// How many jobs are in the trash or still failing, and the first few of them.
    pub(crate) failed: u64,
    pub(crate) failed_jobs: Vec<Arc<Tag>>,
    /// Whether a job failed, remains unsettled or needs another conductor.
    pub(crate) has_failures: bool,
}

impl ConductorStatus {
    pub(crate) fn new(reporter: &Reporter, until: StopCondition) -> Self {
        Self {
            contact: Arc::new(Contact::new(reporter)),
            skipped: SkippedJobs::new(reporter),
            registered: watch::Sender::new(false),
            most_failing: match until.is_of_work() {
                true => usize::MAX,
                false => MAX_FAILING,
            },
            work: Mutex::default(),
            reporter: reporter.clone(),
        }
    }

    pub(super) fn log(&self, note: Note) {
        self.reporter.report(note);
    }

    pub(super) fn work<T>(&self, access: impl FnOnce(&mut Work) -> T) -> T {
        access(&mut self.work.lock())
    }

    pub(super) fn begin(&self, tag: &Tag, attempt: u32) -> RunEntry<'_> {
        let run = Run {
            uuid: excerpt(&tag.uuid).into_owned(),
            name: excerpt(&tag.name).into_owned(),
            since: clock::wall().trunc_subsecs(6),
            attempt,
        };
        self.work(|work| {
            work.begun += 1;
            work.runs.insert(work.begun, run);
            RunEntry(self, work.begun)
        })
    }

    pub(super) fn claimed(&self, job: &Job) {
        let waited = (job.created_on).and_then(|posted| (clock::wall() - posted).to_std().ok());
        // Later claims wait for another attempt, counted or not.
        let is_first = job.attempts.count == 1 && job.attempts.postponed == 0;
        let waited = waited.filter(|_| is_first);
        self.work(|work| work.measured.claimed(waited));
    }

    pub(super) fn settled(&self, key: &JobKey, tag: &Arc<Tag>, decision: &Decision) {
        self.work(|work| {
            work.measured.ended(&tag.name, CountedEnd::from(decision));
            match decision {
                Decision::Abandon(Aftermath::Failed { .. }) => self.add_failing(work, key, tag),
                Decision::Abandon(_) => {}
                _ => _ = work.failing.remove(key),
            }
            match decision.is_trash() || matches!(decision, Decision::ConsumeFailed(_)) {
                true if work.has_trashed(tag) => work.trashed_again += 1,
                true if work.trashed.len() < MAX_FAILING => work.trashed.push(Arc::clone(tag)),
                _ => {}
            }
        });
    }

    fn add_failing(&self, work: &mut Work, key: &JobKey, tag: &Arc<Tag>) {
        if work.failing.len() < self.most_failing {
            work.failing.insert(key.clone(), Arc::clone(tag));
        }
    }

    /// Remembers a job whose claim was lost, until a conductor ends it.
    pub(super) fn remember_unfinished(&self, key: &JobKey, tag: &Arc<Tag>) {
        self.work(|work| self.add_failing(work, key, tag));
    }

    /// Forgets a job that has ended, here or elsewhere.
    pub(super) fn ended(&self, key: &JobKey) {
        self.work(|work| _ = work.failing.remove(key));
    }

    pub(crate) fn reached(&self) -> Option<DateTime<Utc>> {
        Some(clock::wall() - self.contact.last()?.elapsed())
    }

    pub(crate) fn ailment(&self) -> Option<String> {
        let unheard = || match self.contact.last() {
            Some(last) if last.elapsed() > SILENCE => Some("the board does not reply".to_owned()),
            Some(_) if *self.registered.borrow() => None,
            _ => Some("not registered yet".to_owned()),
        };
        self.contact.problem().or_else(unheard)
    }

    pub(crate) fn measured(&self) -> (Measurements, usize) {
        let (mut measured, running) = self.work(|work| (work.measured.clone(), work.runs.len()));
        measured.reconnects = self.contact.regained();
        (measured, running)
    }

    pub(super) fn publish_in(&self, entry: &mut ConductorReport) {
        entry.passed_over = self.skipped.published();
        self.work(|work| {
            entry.running = Some(work.runs.len());
            entry.runs = work.runs.values().take(MAX_RUNS).cloned().collect();
            entry.counters = work.measured.counters();
            let unsettled = work.unsettled.iter().take(MAX_UNSETTLED);
            entry.unsettled = unsettled.cloned().collect();
        });
    }

    /// Logs the present numbers, the running jobs and the skipped jobs.
    pub(super) fn log_all(&self) {
        let mut now = ConductorReport::default();
        self.publish_in(&mut now);
        let note = Note::new("state")
            .with("running", now.running)
            .with("done", now.counters.done)
            .with("failed", now.counters.failed)
            .with("postponed", now.counters.postponed)
            .with("lost", now.counters.lost);
        self.log(note.with("unsettled", now.unsettled.len()));
        for run in now.runs {
            let seconds = (clock::wall() - run.since).num_milliseconds();
            let tag = Tag {
                uuid: run.uuid,
                name: run.name,
            };
            let note = Note::new("running")
                .of(&tag.into())
                .with("attempt", run.attempt)
                .with("seconds", seconds as f64 / 1000.0);
            self.log(note);
        }
        self.skipped.log_all();
    }

    pub(crate) fn summary(&self) -> WorkSummary {
        use CountedEnd::{Consumed, ConsumedFailed, Failed, Interrupted, Lost, Postponed, Trashed};
        self.work(|work| {
            let count = |ends: &[CountedEnd]| work.measured.count(ends);
            // A job that was retried from the trash counts once.
            let failing = work.failing.values().filter(|tag| !work.has_trashed(tag));
            let mut failing: Vec<_> = failing.cloned().collect();
            let failed =
                count(&[Trashed, ConsumedFailed]) - work.trashed_again + failing.len() as u64;
            failing.sort_unstable_by(|one, other| {
                (&one.name, &one.uuid).cmp(&(&other.name, &other.uuid))
            });
            let failed_jobs = work.trashed.iter().cloned().chain(failing);
            WorkSummary {
                ran: work.measured.runs.count,
                consumed: count(&[Consumed, ConsumedFailed]),
                abandoned: count(&[Failed, Postponed, Interrupted]),
                trashed: count(&[Trashed]),
                lost: count(&[Lost]),
                unsettled: work.left_unsettled,
                skipped: self.skipped.counts(),
                failed,
                failed_jobs: failed_jobs.take(MAX_NAMED).collect(),
                has_failures: failed + work.left_unsettled > 0 || self.skipped.has_refused(),
            }
        })
    }
}
