//! The skipped jobs of a conductor, counted by reason.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use parking_lot::Mutex;

use super::{
    admission::Rejection,
    log::{Note, Reporter},
    policy::excerpt,
};
use crate::job::{Job, JobKey, Rank, SkippedReason};

/// The most distinct reasons; postings may cause any number.
const MAX_REASONS: usize = 100;

const MAX_NAMES: usize = 20;

const MAX_PUBLISHED: usize = 20;

/// The most jobs from events to remember, so that each counts once.
const MAX_HEARD: usize = 10_000;

/// Reports each reason once, and again for each new name.
#[derive(Debug)]
pub(super) struct SkippedJobs {
    reporter: Reporter,
    state: Mutex<SkippedState>,
}

#[derive(Debug, Default)]
struct SkippedState {
    /// From the last listing of the board and later events.
    reasons: SkipReasons,
    heard: HashSet<JobKey>,
    reported: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Debug, Default)]
pub(super) struct SkipReasons(BTreeMap<String, SkipReason>);

#[derive(Debug, Default)]
struct SkipReason {
    jobs: u64,
    /// The reference and the name of the job that ranks first.
    job: String,
    name: String,
    rank: Option<Rank>,
    names: BTreeSet<String>,
    is_refusal: bool,
}

pub(super) struct SkippedJob<'a> {
    name: Cow<'a, str>,
    job: Cow<'a, str>,
    rank: Option<Rank>,
}

impl<'a> SkippedJob<'a> {
    pub(super) fn of(job: &'a Job) -> Self {
        Self {
            name: Cow::Borrowed(&job.name),
            job: job.reference(),
            rank: Some(job.rank()),
        }
    }

    pub(super) fn at(key: &'a JobKey) -> Self {
        Self {
            name: key.text(),
            job: format!("key:{key}").into(),
            rank: None,
        }
    }
}

impl SkipReasons {
    pub(super) fn add(&mut self, skipped: &SkippedJob<'_>, against: &Rejection) {
        let known = self.reason(against.to_string());
        known.jobs += 1;
        known.is_refusal |= against.is_refusal();
        if known.names.is_empty() || skipped.rank.is_some_and(|rank| known.rank > Some(rank)) {
            known.job = excerpt(&skipped.job).into_owned();
            known.name = excerpt(&skipped.name).into_owned();
            known.rank = skipped.rank;
        }
        if known.names.len() < MAX_NAMES && !known.names.contains(&*skipped.name) {
            known.names.insert(excerpt(&skipped.name).into_owned());
        }
    }

    fn reason(&mut self, mut text: String) -> &mut SkipReason {
        if self.0.len() >= MAX_REASONS && !self.0.contains_key(&text) {
            text = "other reasons, too many to list".to_owned();
        }
        self.0.entry(text).or_default()
    }
}

impl SkipReason {
    fn example(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Describes the reason with its new names, or with the first name if none is new.
    fn note(&self, text: &str, news: &[&String]) -> Note {
        let example = news.first().map_or(self.example(), |name| name.as_str());
        let names = (news.len() > 1).then(|| serde_json::json!(news));
        Note::new("skipped")
            .with("jobs", self.jobs)
            .with("example", example)
            .with("reason", text)
            .with_any("names", names)
    }
}

impl SkippedJobs {
    pub(super) fn new(reporter: &Reporter) -> Self {
        Self {
            reporter: reporter.clone(),
            state: Mutex::default(),
        }
    }

    pub(super) fn found_all(&self, reasons: SkipReasons) {
        let mut state = self.state.lock();
        state.reasons = reasons;
        state.heard.clear();
        state.report_new(&self.reporter);
    }

    pub(super) fn found_some(&self, reasons: SkipReasons) {
        let mut state = self.state.lock();
        for (text, found) in reasons.0 {
            let known = state.reasons.reason(text);
            known.jobs = known.jobs.max(found.jobs);
            known.is_refusal |= found.is_refusal;
            (known.job, known.name, known.rank) = (found.job, found.name, found.rank);
            let room = MAX_NAMES.saturating_sub(known.names.len());
            known.names.extend(found.names.into_iter().take(room));
        }
        state.report_new(&self.reporter);
    }

    pub(super) fn update(&self, key: &JobKey, skipped: &SkippedJob<'_>, against: &Rejection) {
        let mut state = self.state.lock();
        if state.heard.len() >= MAX_HEARD {
            // A job may then count twice, but each new reason is logged.
            state.heard.clear();
        }
        if state.heard.insert(key.clone()) {
            state.reasons.add(skipped, against);
            state.report_new(&self.reporter);
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let state = self.state.lock();
        let count = |(text, reason): (&String, &SkipReason)| (text.clone(), reason.jobs);
        state.reasons.0.iter().map(count).collect()
    }

    pub(super) fn log_all(&self) {
        for (text, reason) in &self.state.lock().reasons.0 {
            let names: Vec<_> = reason.names.iter().collect();
            self.reporter.report(reason.note(text, &names));
        }
    }

    pub(super) fn published(&self) -> Vec<SkippedReason> {
        let state = self.state.lock();
        let mut reasons: Vec<_> = state.reasons.0.iter().collect();
        reasons.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.jobs));
        let most = reasons.into_iter().take(MAX_PUBLISHED);
        let most = most.map(|(text, reason)| SkippedReason {
            reason: text.clone(),
            jobs: reason.jobs,
            such_as: reason.name.clone(),
            job: reason.job.clone(),
        });
        most.collect()
    }

    pub(super) fn has_refused(&self) -> bool {
        self.state.lock().reasons.0.values().any(|it| it.is_refusal)
    }
}

impl SkippedState {
    fn report_new(&mut self, reporter: &Reporter) {
        for (text, reason) in &self.reasons.0 {
            let is_known = self.reported.contains_key(text);
            if !is_known && self.reported.len() > MAX_REASONS {
                continue;
            }
            let reported = self.reported.entry(text.clone()).or_default();
            let room = MAX_NAMES.saturating_sub(reported.len());
            let news: Vec<_> = reason.names.difference(reported).take(room).collect();
            if !is_known || !news.is_empty() {
                reporter.report(reason.note(text, &news));
            }
            let news: Vec<_> = news.into_iter().cloned().collect();
            reported.extend(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conductor::policy::Forbidden, job::Priority};

    #[test]
    fn skip_reasons_use_little_memory() {
        let (reporter, mut log) = Reporter::new();
        let skipped = SkippedJobs::new(&reporter);
        let long = "x".repeat(1_000_000);
        for number in 0..MAX_REASONS * 3 {
            let mut reasons = SkipReasons::default();
            for against in [
                Rejection::Policy(Forbidden::NotAllowed(format!("{number}{long}"))),
                Rejection::Record(format!("{number}{long}")),
            ] {
                let skipped = SkippedJob {
                    name: Cow::Borrowed(&long),
                    job: long.as_str().into(),
                    rank: None,
                };
                reasons.add(&skipped, &against);
            }
            skipped.found_some(reasons);
        }
        let counts = skipped.counts();
        assert!(counts.len() <= MAX_REASONS + 1, "{}", counts.len());
        assert!(counts.keys().all(|reason| reason.len() < 400));
        assert!(skipped.has_refused());
        while let Ok(note) = log.try_recv() {
            assert!(format!("{note:?}").len() < 1500);
        }
    }

    #[test]
    fn reason_is_reported_again_for_each_new_name() {
        let (reporter, mut log) = Reporter::new();
        let skipped = SkippedJobs::new(&reporter);
        let mut look = |names: &[&str]| {
            let mut reasons = SkipReasons::default();
            for name in names {
                let skipped = SkippedJob {
                    name: Cow::Borrowed(name),
                    job: "j".into(),
                    rank: None,
                };
                let handled = name.starts_with('r');
                let against = match handled {
                    true => Rejection::Record("its handler is writable by all".to_owned()),
                    false => Rejection::Policy(Forbidden::NoCommand { has_handlers: true }),
                };
                reasons.add(&skipped, &against);
            }
            skipped.found_all(reasons);
            let notes = std::iter::from_fn(|| log.try_recv().ok());
            let example = notes.map(|note| match note {
                super::super::log::LogItem::Note(note) => note.facts[1].1.clone(),
                other => panic!("{other:?}"),
            });
            example.collect::<Vec<_>>()
        };
        assert_eq!(look(&["a", "a", "resize"]), ["resize", "a"]);
        assert_eq!(look(&["a", "resize"]), [""; 0]);
        assert_eq!(look(&["a", "b", "resize"]), ["b"]);
        assert_eq!(look(&["a", "b", "resize", "rotate"]), ["rotate"]);
        let all = skipped.published();
        let all: Vec<_> = all
            .iter()
            .map(|it| (it.jobs, it.such_as.as_str()))
            .collect();
        assert_eq!(all, [(2, "resize"), (2, "a")]);
    }

    #[test]
    fn reported_job_ranks_first_in_any_order() {
        let mut reasons = SkipReasons::default();
        for sequence in [7, 3, 5] {
            let skipped = SkippedJob {
                name: "a".into(),
                job: sequence.to_string().into(),
                rank: Some(Rank::new(Priority::Normal, Some(sequence))),
            };
            reasons.add(&skipped, &Rejection::Policy(Forbidden::NotHandled));
        }
        let (reporter, _log) = Reporter::new();
        let skipped = SkippedJobs::new(&reporter);
        skipped.found_all(reasons);
        assert_eq!(skipped.published()[0].job, "3");
    }

    #[test]
    fn number_of_reported_names_is_limited() {
        let (reporter, mut log) = Reporter::new();
        let skipped = SkippedJobs::new(&reporter);
        for number in 0..MAX_NAMES * 5 {
            let name = number.to_string();
            let key = JobKey::new(name.as_str());
            let against = Rejection::Policy(Forbidden::NotHandled);
            skipped.update(&key, &SkippedJob::at(&key), &against);
        }
        assert_eq!(
            std::iter::from_fn(|| log.try_recv().ok()).count(),
            MAX_NAMES
        );
    }
}
