//! The content of a report, the same for every format.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    masking::mask,
    measure::{Interval, KINDS, Percentiles},
    words::{Remainder, jobs_grouped},
};
use crate::{
    commands::parts::problems::unchecked,
    diagnosis::{ByName, ByOwner, FailureGroup, Figures, OutcomeCounts},
    job::{AuditEntry, Pause},
    problem::{Code, Evidence, Problem},
};

const MAX_EVIDENCE: usize = 8;

const MAX_CODES: usize = 4;

#[derive(Debug, Default, Serialize)]
pub(super) struct ReportFacts {
    /// The name of the board in the configuration.
    #[serde(skip)]
    pub(super) title: Option<String>,
    pub(super) board: String,
    pub(super) server: String,
    pub(super) version: &'static str,
    pub(super) at: DateTime<Utc>,
    /// Whether no problem is worse than a note.
    pub(super) sound: bool,
    pub(super) problems: Vec<Problem>,
    pub(super) more_problems: Remainder,
    /// The number of problems that are worse than a note.
    #[serde(skip)]
    pub(super) wrong: usize,
    /// The parts that could not be read, and why.
    pub(super) unseen: Vec<String>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// The running conductors; `None` if unreadable.
    pub(super) conductors: Option<usize>,
    pub(super) silent: u64,
    /// Absent conductors by state: `gone`, `stopped` or `silent`.
    pub(super) absent: BTreeMap<&'static str, u64>,
    pub(super) pauses: Vec<Pause>,
    pub(super) more_pauses: Remainder,
    /// The jobs that left the board in the last day; `None` if unreadable.
    pub(super) history: Option<OutcomeCounts>,
    pub(super) names: Vec<ByName>,
    pub(super) more_names: Remainder,
    pub(super) owners: Vec<ByOwner>,
    pub(super) more_owners: Remainder,
    pub(super) failures: Vec<FailureGroup>,
    pub(super) more_failures: Remainder,
    /// The jobs posted, finished and failed in each of the last sixty minutes.
    #[serde(skip)]
    pub(super) hour: [Vec<u64>; KINDS.len()],
    pub(super) intervals: Vec<Interval>,
    pub(super) waited: Option<Percentiles>,
    pub(super) took: Option<Percentiles>,
}

impl ReportFacts {
    /// Returns the state of the board in one sentence: its problems by code.
    pub(super) fn verdict(&self) -> String {
        let problems = match self.wrong {
            0 => return format!("No problems found{}.", unchecked(self.unseen.len())),
            1 => "1 problem",
            wrong => &format!("{wrong} problems"),
        };
        let mut codes = Vec::<(Code, usize, u64)>::new();
        for it in self.problems.iter().filter(|it| it.is_wrong()) {
            match codes.iter_mut().find(|(code, ..)| *code == it.code) {
                Some((_, problems, jobs)) => (*problems, *jobs) = (*problems + 1, *jobs + it.jobs),
                None => codes.push((it.code, 1, it.jobs)),
            }
        }
        codes.truncate(MAX_CODES);
        // So that the counts add up to the number of problems.
        let more = self.wrong - codes.iter().map(|(_, problems, _)| problems).sum::<usize>();
        let codes = codes.into_iter().map(|(code, problems, jobs)| {
            let causes = (problems > 1).then(|| format!("{problems} causes"));
            let jobs = (jobs > 0).then(|| jobs_grouped(jobs));
            let counts: Vec<_> = causes.into_iter().chain(jobs).collect();
            match counts.is_empty() {
                true => code.to_string(),
                false => format!("{code} ({})", counts.join(", ")),
            }
        });
        let mut codes: Vec<_> = codes.collect();
        codes.extend((more > 0).then(|| format!("and {more} more")));
        format!("{problems}: {}.", codes.join(", "))
    }

    pub(super) fn problem_of(&self, failed: &FailureGroup) -> Option<&Problem> {
        let mut problems = self.problems.iter();
        problems.find(|it| is_of_failures(it) && it.summary == failed.signature)
    }

    pub(super) fn other_problems(&self) -> impl Iterator<Item = &Problem> {
        let is_failure = |it: &&Problem| {
            let mut failures = self.failures.iter();
            is_of_failures(it) && failures.any(|of| of.signature == it.summary)
        };
        self.problems.iter().filter(move |it| !is_failure(it))
    }

    pub(super) fn masked(mut self) -> Self {
        for pause in &mut self.pauses {
            let AuditEntry {
                by, action, reason, ..
            } = &mut pause.audit;
            let texts = [&mut pause.names, by]
                .into_iter()
                .chain(action)
                .chain(reason);
            texts.for_each(mask);
        }
        self.problems.iter_mut().for_each(masked);
        self.unseen.iter_mut().for_each(mask);
        self
    }
}

fn is_of_failures(problem: &Problem) -> bool {
    matches!(problem.code, Code::Failed | Code::RetriesExhausted)
}

fn masked(problem: &mut Problem) {
    let more = Remainder::than(&mut problem.evidence, MAX_EVIDENCE, false);
    if more.count > 0 {
        problem.evidence.push(Evidence {
            what: "and more".to_owned(),
            value: more.to_string(),
            at: None,
        });
    }
    let evidence = problem.evidence.iter_mut();
    evidence
        .flat_map(|it| [&mut it.what, &mut it.value])
        .for_each(mask);
    let examples = problem.examples.iter_mut();
    examples
        .flat_map(|it| [&mut it.job, &mut it.name])
        .for_each(mask);
    if let Some(fix) = &mut problem.fix {
        fix.command.iter_mut().for_each(|it| it.each_word(mask));
        fix.text.iter_mut().for_each(mask);
    }
    mask(&mut problem.summary);
}
