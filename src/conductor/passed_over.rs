//! The jobs that a conductor leaves alone: why, and how many for each reason.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    policy::Unfit,
    progress::{Note, Reporter},
};
use crate::job::{Job, JobKey};

/// How many reasons are told apart; postings may give any number.
const MOST_REASONS: usize = 100;

/// How many jobs that came one by one are remembered, so that none of them counts twice.
const MOST_HEARD: usize = 10_000;

/// The jobs that are left alone, as far as a conductor knows.
#[derive(Debug, Default)]
pub(super) struct PassedOver(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// As of the last look at the whole board, and with those that came since.
    reasons: Reasons,
    /// Those that came since.
    heard: HashSet<JobKey>,
    told: HashSet<String>,
}

/// How many jobs are left alone for which reason.
#[derive(Debug, Default)]
pub(super) struct Reasons(BTreeMap<String, Reason>);

#[derive(Debug)]
struct Reason {
    jobs: u64,
    such_as: String,
    is_refusal: bool,
}

impl Reasons {
    /// Counts a job.
    pub(super) fn add(&mut self, job: &Job, unfit: &Unfit) {
        let mut reason = unfit.to_string();
        if self.0.len() >= MOST_REASONS && !self.0.contains_key(&reason) {
            reason = "other reasons, too many to be told apart".to_owned();
        }
        let known = self.0.entry(reason).or_insert_with(|| Reason {
            jobs: 0,
            such_as: job.name.clone(),
            is_refusal: false,
        });
        known.jobs += 1;
        known.is_refusal |= unfit.is_refusal();
    }
}

impl PassedOver {
    /// Takes what a look at the whole board has found.
    pub(super) fn found_all(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.lock();
        state.reasons = reasons;
        state.heard.clear();
        state.tell_new(reporter);
    }

    /// Takes what a look at the board has found that did not come to its end.
    pub(super) fn found_some(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.lock();
        for (text, found) in reasons.0 {
            let known = state.reasons.0.remove(&text);
            let jobs = known.map_or(0, |known| known.jobs).max(found.jobs);
            state.reasons.0.insert(text, Reason { jobs, ..found });
        }
        state.tell_new(reporter);
    }

    /// Takes a job that came since the last look.
    pub(super) fn heard(&self, job: &Job, unfit: &Unfit, reporter: &Reporter) {
        let mut state = self.lock();
        let has_room = state.heard.len() < MOST_HEARD;
        if has_room && state.heard.insert(job.key.clone()) {
            state.reasons.add(job, unfit);
            state.tell_new(reporter);
        }
    }

    /// Returns how many jobs are left alone for each reason.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let state = self.lock();
        let count = |(text, reason): (&String, &Reason)| (text.clone(), reason.jobs);
        state.reasons.0.iter().map(count).collect()
    }

    /// Whether some of them were to be conducted, but not here, or not as they are.
    pub(super) fn has_refused(&self) -> bool {
        self.lock().reasons.0.values().any(|it| it.is_refusal)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Tells each reason once.
    fn tell_new(&mut self, reporter: &Reporter) {
        for (text, reason) in &self.reasons.0 {
            if !self.told.contains(text) && self.told.len() <= MOST_REASONS {
                self.told.insert(text.clone());
                let note = Note::new("passed_over")
                    .with("jobs", reason.jobs)
                    .with("such_as", reason.such_as.as_str());
                reporter.tell(note.with("reason", text.as_str()));
            }
        }
    }
}
