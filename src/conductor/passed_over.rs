//! The jobs that a conductor leaves alone: why, and how many for each reason.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use parking_lot::Mutex;

use super::{
    policy::{Unfit, excerpt},
    progress::{Note, Reporter},
};
use crate::job::JobKey;

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

/// Why a job is left to others.
#[derive(Debug)]
pub(super) enum Against {
    Policy(Unfit),
    /// What is kept beside it cannot be read, or not all of it.
    Record(String),
}

impl Against {
    /// Whether the job is one to be conducted, though not here, or not as it is.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Policy(unfit) => unfit.is_refusal(),
            Self::Record(_) => true,
        }
    }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(unfit) => unfit.fmt(f),
            Self::Record(problem) => f.write_str(&excerpt(problem)),
        }
    }
}

impl Reasons {
    /// Counts a job, by its name.
    pub(super) fn add(&mut self, name: &str, against: &Against) {
        let known = self.reason(against.to_string(), name);
        known.jobs += 1;
        known.is_refusal |= against.is_refusal();
    }

    /// Returns what is known of a reason, or of all those for which there is no room.
    fn reason(&mut self, mut text: String, such_as: &str) -> &mut Reason {
        if self.0.len() >= MOST_REASONS && !self.0.contains_key(&text) {
            text = "other reasons, too many to be told apart".to_owned();
        }
        self.0.entry(text).or_insert_with(|| Reason {
            jobs: 0,
            such_as: excerpt(such_as).into_owned(),
            is_refusal: false,
        })
    }
}

impl PassedOver {
    /// Takes what a look at the whole board has found.
    pub(super) fn found_all(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.0.lock();
        state.reasons = reasons;
        state.heard.clear();
        state.tell_new(reporter);
    }

    /// Takes what a look at the board has found that did not come to its end.
    pub(super) fn found_some(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.0.lock();
        for (text, found) in reasons.0 {
            let known = state.reasons.reason(text, &found.such_as);
            known.jobs = known.jobs.max(found.jobs);
            known.is_refusal |= found.is_refusal;
        }
        state.tell_new(reporter);
    }

    /// Takes a job that came since the last look.
    pub(super) fn heard(&self, key: &JobKey, name: &str, against: &Against, reporter: &Reporter) {
        let mut state = self.0.lock();
        let has_room = state.heard.len() < MOST_HEARD;
        if has_room && state.heard.insert(key.clone()) {
            state.reasons.add(name, against);
            state.tell_new(reporter);
        }
    }

    /// Returns how many jobs are left alone for each reason.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let state = self.0.lock();
        let count = |(text, reason): (&String, &Reason)| (text.clone(), reason.jobs);
        state.reasons.0.iter().map(count).collect()
    }

    /// Whether some of them were to be conducted, but not here, or not as they are.
    pub(super) fn has_refused(&self) -> bool {
        self.0.lock().reasons.0.values().any(|it| it.is_refusal)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_written_takes_little_room_however_many_looks_there_are() {
        let passed_over = PassedOver::default();
        let (reporter, mut told) = Reporter::new();
        let long = "x".repeat(1_000_000);
        for number in 0..MOST_REASONS * 3 {
            let mut reasons = Reasons::default();
            for against in [
                Against::Policy(Unfit::NotAllowed(format!("{number}{long}"))),
                Against::Record(format!("{number}{long}")),
            ] {
                reasons.add(&long, &against);
            }
            passed_over.found_some(reasons, &reporter);
        }
        let counts = passed_over.counts();
        assert!(counts.len() <= MOST_REASONS + 1, "{}", counts.len());
        assert!(counts.keys().all(|reason| reason.len() < 400));
        assert!(passed_over.has_refused());
        while let Ok(note) = told.try_recv() {
            assert!(format!("{note:?}").len() < 1500);
        }
    }
}
