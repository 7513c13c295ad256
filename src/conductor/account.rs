//! A conductor's report on its work.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, SubsecRound, Utc};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    meter::{End, Measured},
    outage::Contact,
    policy::excerpt,
    progress::{Note, Tag},
    shared::Shared,
};
use crate::{
    job::{Counters, Job, MOST_RUNS, Run, Told, Unsettled},
    lease::Renewal,
};

/// The longest silence of a board that gets a request every ten seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// The most unsettled jobs in the registry entry.
const MOST_UNSETTLED: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Account {
    state: Mutex<State>,
    pub(super) contact: Arc<Contact>,
    pub(super) registered: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    measured: Measured,
    begun: u64,
    runs: BTreeMap<u64, Run>,
    counters: Counters,
    unsettled: Vec<Unsettled>,
    /// The claimable jobs, and whether the board has more of them.
    to_do: (usize, bool),
}

/// Counts a job as running until dropped.
pub(super) struct Running<'a>(&'a Account, u64);

impl Account {
    pub(super) fn begin(&self, tag: &Tag, attempt: u32) -> Running<'_> {
        let mut state = self.state.lock();
        state.begun += 1;
        let begun = state.begun;
        state.runs.insert(
            begun,
            Run {
                uuid: excerpt(&tag.uuid).into_owned(),
                name: excerpt(&tag.name).into_owned(),
                since: Utc::now().trunc_subsecs(6),
                attempt,
            },
        );
        Running(self, begun)
    }

    pub(super) fn claimed(&self, job: &Job) {
        let waited = (job.created_on).and_then(|posted| (Utc::now() - posted).to_std().ok());
        // Later claims wait for another attempt, counted or not.
        let is_first = job.history.attempts == 1 && job.history.postponed == 0;
        let waited = waited.filter(|_| is_first);
        self.state.lock().measured.claimed(waited);
    }

    pub(super) fn renewed(&self, renewal: Renewal) {
        self.state.lock().measured.renewed(renewal);
    }

    pub(super) fn ran(&self, took: Duration) {
        self.state.lock().measured.runs.add(took);
    }

    pub(super) fn ended(&self, name: &str, end: End) {
        let mut state = self.state.lock();
        state.measured.ended(name, end);
        *match end {
            End::Consumed => &mut state.counters.done,
            End::Postponed => &mut state.counters.postponed,
            End::Lost => &mut state.counters.lost,
            End::Failed | End::Trashed | End::GivenUp => &mut state.counters.failed,
            End::Interrupted => return,
        } += 1;
    }

    pub(crate) fn reached(&self) -> Option<DateTime<Utc>> {
        Some(Utc::now() - self.contact.last()?.elapsed())
    }

    pub(crate) fn ailment(&self) -> Option<String> {
        let unheard = || match self.contact.last() {
            Some(last) if last.elapsed() > SILENCE => Some("the board does not reply".to_owned()),
            Some(_) if *self.registered.borrow() => None,
            _ => Some("not registered yet".to_owned()),
        };
        self.contact.trouble().or_else(unheard)
    }

    /// Returns the metrics so far, and the number of running jobs.
    pub(crate) fn measured(&self) -> (Measured, usize) {
        let state = self.state.lock();
        let reconnects = self.contact.regained();
        let measured = state.measured.clone();
        (
            Measured {
                reconnects,
                ..measured
            },
            state.runs.len(),
        )
    }

    pub(super) fn set_unsettled(&self, jobs: Vec<Unsettled>) {
        self.state.lock().unsettled = jobs;
    }

    pub(super) fn set_to_do(&self, to_do: (usize, bool)) {
        self.state.lock().to_do = to_do;
    }

    pub(super) fn work(&self) -> (usize, (usize, bool)) {
        let state = self.state.lock();
        (state.runs.len(), state.to_do)
    }

    pub(super) fn add_to(&self, told: &mut Told) {
        let state = self.state.lock();
        told.running = Some(state.runs.len());
        told.runs = state.runs.values().take(MOST_RUNS).cloned().collect();
        told.counters = state.counters;
        let unsettled = state.unsettled.iter().take(MOST_UNSETTLED);
        told.unsettled = unsettled
            .map(|job| Unsettled {
                uuid: excerpt(&job.uuid).into_owned(),
                name: excerpt(&job.name).into_owned(),
                reason: excerpt(&job.reason).into_owned(),
            })
            .collect();
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state.lock().runs.remove(&self.1);
    }
}

pub(super) fn tell_state(shared: &Shared) {
    let mut told = Told::default();
    shared.account.add_to(&mut told);
    let Counters {
        done,
        failed,
        postponed,
        lost,
    } = told.counters;
    let note = Note::new("state")
        .with("running", told.running)
        .with("done", done)
        .with("failed", failed)
        .with("postponed", postponed)
        .with("lost", lost);
    shared
        .reporter
        .tell(note.with("unsettled", told.unsettled.len()));
    for run in told.runs {
        let seconds = (Utc::now() - run.since).num_milliseconds();
        let tag = Tag {
            uuid: run.uuid,
            name: run.name,
        };
        let note = Note::new("running")
            .of(&tag.into())
            .with("attempt", run.attempt)
            .with("seconds", seconds as f64 / 1000.0);
        shared.reporter.tell(note);
    }
    shared.passed_over.tell_all(&shared.reporter);
}
