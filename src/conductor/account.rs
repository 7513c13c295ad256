//! What a conductor can say of its work at any moment.

use std::collections::BTreeMap;

use chrono::{SubsecRound, Utc};
use parking_lot::Mutex;

use super::{
    policy::excerpt,
    progress::{Note, Tag},
    shared::Shared,
};
use crate::job::{Counters, MOST_RUNS, Run, Told, Unsettled};

/// How many jobs that cannot be settled the registry is told of.
const MOST_UNSETTLED: usize = 100;

/// What a conductor can say of its work.
#[derive(Debug, Default)]
pub(super) struct Account(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    begun: u64,
    /// What is being performed, in the order in which it was begun.
    runs: BTreeMap<u64, Run>,
    counters: Counters,
    unsettled: Vec<Unsettled>,
    /// How many jobs there are to be claimed, and whether the board has more than are known.
    to_do: (usize, bool),
}

/// A job that counts as being performed, until this is dropped.
pub(super) struct Running<'a>(&'a Account, u64);

impl Account {
    /// Notes that a job is being performed.
    pub(super) fn begin(&self, tag: &Tag, attempt: u32) -> Running<'_> {
        let mut state = self.0.lock();
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

    /// Counts how something came to its end.
    pub(super) fn count(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut self.0.lock().counters);
    }

    /// Sets which jobs are performed and cannot be settled.
    pub(super) fn set_unsettled(&self, jobs: Vec<Unsettled>) {
        self.0.lock().unsettled = jobs;
    }

    /// Sets how many jobs there are to be claimed, and whether the board has more.
    pub(super) fn set_to_do(&self, to_do: (usize, bool)) {
        self.0.lock().to_do = to_do;
    }

    /// Returns how many jobs are performed, and how many are to be claimed.
    pub(super) fn work(&self) -> (usize, (usize, bool)) {
        let state = self.0.lock();
        (state.runs.len(), state.to_do)
    }

    /// Adds to what a conductor tells of itself what it does now.
    pub(super) fn add_to(&self, told: &mut Told) {
        let state = self.0.lock();
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
        self.0.0.lock().runs.remove(&self.1);
    }
}

/// Tells what the conductor does, and what it leaves alone.
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
