//! The skipped jobs of a conductor, counted by reason.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use parking_lot::Mutex;

use super::{
    judgement::Against,
    policy::excerpt,
    progress::{Note, Reporter},
};
use crate::job::{Job, JobKey, LeftAlone, Rank};

/// The most distinct reasons; postings may cause any number.
const MOST_REASONS: usize = 100;

const MOST_NAMES: usize = 20;

const MOST_TOLD: usize = 20;

/// The most jobs from events to remember, so that each counts once.
const MOST_HEARD: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct PassedOver(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// From the last listing of the board and later events.
    reasons: Reasons,
    /// Those from events.
    heard: HashSet<JobKey>,
    /// The reported names for each reason.
    told: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Default)]
pub(super) struct Reasons(BTreeMap<String, Reason>);

#[derive(Debug, Default)]
struct Reason {
    jobs: u64,
    job: String,
    rank: Option<Rank>,
    names: BTreeSet<String>,
    is_refusal: bool,
}

pub(super) struct Such<'a> {
    name: Cow<'a, str>,
    job: Cow<'a, str>,
    rank: Option<Rank>,
}

impl<'a> Such<'a> {
    pub(super) fn of(job: &'a Job) -> Self {
        Self {
            name: Cow::Borrowed(&job.name),
            job: job.reference(),
            rank: Some(job.rank()),
        }
    }

    /// Makes one with only a key.
    pub(super) fn at(key: &'a JobKey) -> Self {
        Self {
            name: key.text(),
            job: format!("key:{key}").into(),
            rank: None,
        }
    }
}

impl Reasons {
    pub(super) fn add(&mut self, such: &Such<'_>, against: &Against) {
        let known = self.reason(against.to_string());
        known.jobs += 1;
        known.is_refusal |= against.is_refusal();
        if known.names.is_empty() || such.rank.is_some_and(|rank| known.rank > Some(rank)) {
            known.job = excerpt(&such.job).into_owned();
            known.rank = such.rank;
        }
        if known.names.len() < MOST_NAMES && !known.names.contains(&*such.name) {
            known.names.insert(excerpt(&such.name).into_owned());
        }
    }

    fn reason(&mut self, mut text: String) -> &mut Reason {
        if self.0.len() >= MOST_REASONS && !self.0.contains_key(&text) {
            text = "other reasons, too many to list".to_owned();
        }
        self.0.entry(text).or_default()
    }
}

impl Reason {
    fn such_as(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Describes the reason with its new names, or with the first name if none is new.
    fn note(&self, text: &str, news: &[&String]) -> Note {
        let such_as = news.first().map_or(self.such_as(), |name| name.as_str());
        let note = Note::new("skipped")
            .with("jobs", self.jobs)
            .with("example", such_as)
            .with("reason", text);
        match news.len() {
            0 | 1 => note,
            _ => note.with("names", serde_json::json!(news)),
        }
    }
}

impl PassedOver {
    pub(super) fn found_all(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.0.lock();
        state.reasons = reasons;
        state.heard.clear();
        state.tell_new(reporter);
    }

    pub(super) fn found_some(&self, reasons: Reasons, reporter: &Reporter) {
        let mut state = self.0.lock();
        for (text, found) in reasons.0 {
            let known = state.reasons.reason(text);
            known.jobs = known.jobs.max(found.jobs);
            known.is_refusal |= found.is_refusal;
            (known.job, known.rank) = (found.job, found.rank);
            let room = MOST_NAMES.saturating_sub(known.names.len());
            known.names.extend(found.names.into_iter().take(room));
        }
        state.tell_new(reporter);
    }

    pub(super) fn heard(
        &self,
        key: &JobKey,
        such: &Such<'_>,
        against: &Against,
        reporter: &Reporter,
    ) {
        let mut state = self.0.lock();
        let has_room = state.heard.len() < MOST_HEARD;
        if has_room && state.heard.insert(key.clone()) {
            state.reasons.add(such, against);
            state.tell_new(reporter);
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let state = self.0.lock();
        let count = |(text, reason): (&String, &Reason)| (text.clone(), reason.jobs);
        state.reasons.0.iter().map(count).collect()
    }

    pub(super) fn tell_all(&self, reporter: &Reporter) {
        for (text, reason) in &self.0.lock().reasons.0 {
            reporter.tell(reason.note(text, &reason.names.iter().collect::<Vec<_>>()));
        }
    }

    /// Returns the counts for the registry, highest first.
    pub(super) fn told(&self) -> Vec<LeftAlone> {
        let state = self.0.lock();
        let mut reasons: Vec<_> = state.reasons.0.iter().collect();
        reasons.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.jobs));
        let told = reasons.into_iter().take(MOST_TOLD);
        let told = told.map(|(text, reason)| LeftAlone {
            reason: text.clone(),
            jobs: reason.jobs,
            such_as: reason.such_as().to_owned(),
            job: reason.job.clone(),
        });
        told.collect()
    }

    /// Whether some of them need another conductor or a change.
    pub(super) fn has_refused(&self) -> bool {
        self.0.lock().reasons.0.values().any(|it| it.is_refusal)
    }
}

impl State {
    /// Reports each reason once, and again for each new name.
    fn tell_new(&mut self, reporter: &Reporter) {
        for (text, reason) in &self.reasons.0 {
            let is_known = self.told.contains_key(text);
            if !is_known && self.told.len() > MOST_REASONS {
                continue;
            }
            let told = self.told.entry(text.clone()).or_default();
            let room = MOST_NAMES.saturating_sub(told.len());
            let news: Vec<_> = reason.names.difference(told).take(room).collect();
            if !is_known || !news.is_empty() {
                reporter.tell(reason.note(text, &news));
            }
            let news: Vec<_> = news.into_iter().cloned().collect();
            told.extend(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conductor::policy::Unfit, job::Priority};

    #[test]
    fn skip_reasons_use_little_memory() {
        let passed_over = PassedOver::default();
        let (reporter, mut told) = Reporter::new();
        let long = "x".repeat(1_000_000);
        for number in 0..MOST_REASONS * 3 {
            let mut reasons = Reasons::default();
            for against in [
                Against::Policy(Unfit::NotAllowed(format!("{number}{long}"))),
                Against::Record(format!("{number}{long}")),
            ] {
                let such = Such {
                    name: Cow::Borrowed(&long),
                    job: long.as_str().into(),
                    rank: None,
                };
                reasons.add(&such, &against);
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

    #[test]
    fn reason_is_reported_again_for_each_new_name() {
        let passed_over = PassedOver::default();
        let (reporter, mut told) = Reporter::new();
        let mut look = |names: &[&str]| {
            let mut reasons = Reasons::default();
            for name in names {
                let such = Such {
                    name: Cow::Borrowed(name),
                    job: "j".into(),
                    rank: None,
                };
                let handled = name.starts_with('r');
                let against = match handled {
                    true => Against::Record("its handler is writable by all".to_owned()),
                    false => Against::Policy(Unfit::NoCommand { has_handlers: true }),
                };
                reasons.add(&such, &against);
            }
            passed_over.found_all(reasons, &reporter);
            let notes = std::iter::from_fn(|| told.try_recv().ok());
            let such_as = notes.map(|note| match note {
                super::super::progress::Progress::Note(note) => note.facts[1].1.clone(),
                other => panic!("{other:?}"),
            });
            such_as.collect::<Vec<_>>()
        };
        assert_eq!(look(&["a", "a", "resize"]), ["resize", "a"]);
        assert_eq!(look(&["a", "resize"]), [""; 0]);
        assert_eq!(look(&["a", "b", "resize"]), ["b"]);
        assert_eq!(look(&["a", "b", "resize", "rotate"]), ["rotate"]);
        let all = passed_over.told();
        let all: Vec<_> = all
            .iter()
            .map(|it| (it.jobs, it.such_as.as_str()))
            .collect();
        assert_eq!(all, [(2, "resize"), (2, "a")]);
    }

    #[test]
    fn reported_job_ranks_first_in_any_order() {
        let mut reasons = Reasons::default();
        for sequence in [7, 3, 5] {
            let such = Such {
                name: "a".into(),
                job: sequence.to_string().into(),
                rank: Some(Rank::new(Priority::Normal, Some(sequence))),
            };
            reasons.add(&such, &Against::Policy(Unfit::NotHandled));
        }
        let (passed_over, (reporter, _told)) = (PassedOver::default(), Reporter::new());
        passed_over.found_all(reasons, &reporter);
        assert_eq!(passed_over.told()[0].job, "3");
    }

    #[test]
    fn number_of_reported_names_is_limited() {
        let passed_over = PassedOver::default();
        let (reporter, mut told) = Reporter::new();
        for number in 0..MOST_NAMES * 5 {
            let name = number.to_string();
            let key = JobKey::new(name.as_str());
            let against = Against::Policy(Unfit::NotHandled);
            passed_over.heard(&key, &Such::at(&key), &against, &reporter);
        }
        assert_eq!(
            std::iter::from_fn(|| told.try_recv().ok()).count(),
            MOST_NAMES
        );
    }
}
