//! The content of a report, the same for every format.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    guard::mask,
    lanes::Timeline,
    measure::{Bucket, Interval, Percentiles},
    words::More,
};
use crate::{
    diagnosis::{ByName, ByOwner, Departures, FailureGroup, Figures},
    job::{Pause, Remark},
    problem::{Evidence, Problem},
};

const MOST_EVIDENCE: usize = 8;

#[derive(Debug, Default, Serialize)]
pub(super) struct ReportFacts {
    pub(super) board: String,
    pub(super) server: String,
    pub(super) version: &'static str,
    pub(super) at: DateTime<Utc>,
    pub(super) sound: bool,
    pub(super) problems: Vec<Problem>,
    pub(super) more_problems: More,
    #[serde(skip)]
    pub(super) wrong: usize,
    pub(super) unseen: Vec<String>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// The running conductors; `None` if unreadable.
    pub(super) conductors: Option<usize>,
    pub(super) silent: u64,
    pub(super) pauses: Vec<Pause>,
    pub(super) more_pauses: More,
    pub(super) history: Option<Departures>,
    pub(super) remembered: Option<Departures>,
    /// The ages of unclaimed jobs; delayed ones are marked.
    pub(super) ages: Vec<Bucket>,
    /// The ages of claims; claims without expiry are marked.
    pub(super) held: Vec<Bucket>,
    /// The attempts of jobs on the board; unclaimed ones at their retry limit are marked.
    pub(super) attempts: Vec<Bucket>,
    pub(super) names: Vec<ByName>,
    pub(super) more_names: More,
    pub(super) owners: Vec<ByOwner>,
    pub(super) more_owners: More,
    pub(super) failures: Vec<FailureGroup>,
    pub(super) more_failures: More,
    pub(super) course: Vec<Interval>,
    pub(super) waited: Option<Percentiles>,
    pub(super) took: Option<Percentiles>,
    pub(super) timeline: Timeline,
}

impl ReportFacts {
    pub(super) fn verdict(&self) -> String {
        match self.wrong {
            0 => "No problems found.".to_owned(),
            1 => "1 problem found.".to_owned(),
            wrong => format!("{wrong} problems found."),
        }
    }

    pub(super) fn guarded(mut self) -> Self {
        for pause in &mut self.pauses {
            let Remark {
                by, action, reason, ..
            } = &mut pause.remark;
            let texts = [&mut pause.names, by]
                .into_iter()
                .chain(action)
                .chain(reason);
            texts.for_each(mask);
        }
        self.problems.iter_mut().for_each(guarded);
        self.unseen.iter_mut().for_each(mask);
        self
    }
}

fn guarded(problem: &mut Problem) {
    let more = More::than(&mut problem.evidence, MOST_EVIDENCE, false);
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
