//! Who performed which jobs when: a lane for each of them.

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{guard, words::grouped};
use crate::{
    job::{Conductor, Departure, Job, Owner},
    output::rfc3339,
};

/// How many runs are kept, the last ones.
const MOST_RUNS: usize = 200;

/// How many failures are kept, the last ones.
const MOST_FAILURES: usize = 100;

/// Of no more who performed jobs it is counted how many.
const MOST_PERFORMERS: usize = 10_000;

/// How many lanes are shown.
const MOST_LANES: usize = 12;

/// The runs of a while.
#[derive(Debug, Default, Serialize)]
pub(super) struct Timeline {
    /// From when on; what began earlier is cut off there.
    pub(super) from: Option<DateTime<Utc>>,
    /// Up to when: the last end, or, while a job is running, now.
    pub(super) to: Option<DateTime<Utc>>,
    /// How many jobs are remembered that were performed; of these the last ones are shown.
    pub(super) performed: u64,
    pub(super) lanes: Vec<Lane>,
    /// How many more are remembered who performed jobs.
    pub(super) more: u64,
}

/// What one owner of claims performed.
#[derive(Debug, Serialize)]
pub(super) struct Lane {
    /// `None`: it is not remembered who.
    pub(super) owner: Option<Owner>,
    /// The conductor that claims under this name, if it is registered.
    pub(super) conductor: Option<String>,
    /// How many jobs are remembered that it performed, also those that are not shown.
    pub(super) performed: u64,
    pub(super) runs: Vec<Run>,
    /// Attempts that failed, of which only the end is known.
    pub(super) failures: Vec<Attempt>,
}

/// From a claim to its end.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Run {
    pub(super) job: String,
    pub(super) name: String,
    pub(super) from: DateTime<Utc>,
    /// `None`: it is under way.
    pub(super) to: Option<DateTime<Utc>>,
    pub(super) outcome: RunOutcome,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunOutcome {
    Finished,
    Failed,
    Running,
}

impl RunOutcome {
    pub(super) const ALL: [Self; 3] = [Self::Finished, Self::Failed, Self::Running];

    /// Returns the word for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Running => "running",
        }
    }
}

impl Lane {
    /// Returns how people call it.
    pub(super) fn name(&self) -> String {
        match (&self.conductor, &self.owner) {
            (Some(conductor), _) => conductor.clone(),
            (None, Some(owner)) => owner.to_string(),
            (None, None) => "not remembered by whom".to_owned(),
        }
    }
}

/// An attempt that failed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Attempt {
    pub(super) job: String,
    pub(super) name: String,
    pub(super) on: DateTime<Utc>,
}

/// Gathers the last runs, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<(Option<Owner>, Run)>,
    failures: Vec<(Owner, Attempt)>,
    /// How many jobs each performed, by its name as it is told.
    performers: BTreeMap<String, u64>,
    performed: u64,
}

impl Timeline {
    /// Says of how many jobs the ends are shown.
    pub(super) fn extent(&self) -> String {
        let runs = self.lanes.iter().flat_map(|it| &it.runs);
        let shown = runs.filter(|it| it.to.is_some()).count() as u64;
        match shown < self.performed {
            true => format!(
                "{shown} of {} jobs that ended, the last ones",
                grouped(self.performed)
            ),
            false => format!("all {shown} jobs that ended"),
        }
    }

    /// Returns a line for each run and each failed attempt, with who performed it.
    pub(super) fn lines(&self) -> Vec<Vec<String>> {
        let time = |time: Option<DateTime<Utc>>| time.map_or_else(String::new, rfc3339);
        let (performed, more) = (self.performed.to_string(), self.more.to_string());
        let mut lines = vec![vec![
            "timeline".to_owned(),
            time(self.from),
            time(self.to),
            performed,
            more,
        ]];
        for lane in &self.lanes {
            let (what, performed) = ("lane".to_owned(), lane.performed.to_string());
            lines.push(vec![what, lane.name(), performed]);
            lines.extend(lane.runs.iter().map(|it| {
                let (from, to) = (time(Some(it.from)), time(it.to));
                let outcome = it.outcome.name().to_owned();
                vec![
                    "run".to_owned(),
                    lane.name(),
                    it.job.clone(),
                    it.name.clone(),
                    from,
                    to,
                    outcome,
                ]
            }));
            lines.extend(lane.failures.iter().map(|it| {
                let on = time(Some(it.on));
                vec![
                    "attempt".to_owned(),
                    lane.name(),
                    it.job.clone(),
                    it.name.clone(),
                    on,
                ]
            }));
        }
        lines
    }
}

impl Runs {
    /// Adds how a job of the past came to its end; they come latest first.
    pub(super) fn add_end(&mut self, job: &Job) {
        let Some(ended) = job.ended.as_ref() else {
            return;
        };
        let outcome = match ended.departure {
            Departure::Consumed => RunOutcome::Finished,
            Departure::Failed => RunOutcome::Failed,
            Departure::Purged => return,
        };
        if ended.claimed_on.is_some() {
            self.performed += 1;
            let owner = called(ended.owner.as_ref());
            if self.performers.len() < MOST_PERFORMERS || self.performers.contains_key(&owner) {
                *self.performers.entry(owner).or_default() += 1;
            }
        }
        if let Some(from) = ended.claimed_on.filter(|_| self.runs.len() < MOST_RUNS) {
            let run = Run {
                job: job.reference().into_owned(),
                name: job.name.clone(),
                from: from.min(ended.on),
                to: Some(ended.on),
                outcome,
            };
            self.runs.push((ended.owner.clone(), run));
        }
    }

    /// Adds the failures that are remembered of a job, but for one by which it ended.
    pub(super) fn add_failures(&mut self, job: &Job) {
        let has_ended = |ended: &crate::job::End| ended.departure == Departure::Failed;
        let last = usize::from(job.ended.as_ref().is_some_and(has_ended));
        for failure in job.history.failures.iter().rev().skip(last) {
            let attempt = Attempt {
                job: job.reference().into_owned(),
                name: job.name.clone(),
                on: failure.time,
            };
            let owner = Owner::from_stored(failure.conductor.as_str());
            self.failures.push((owner, attempt));
        }
        if self.failures.len() > 2 * MOST_FAILURES {
            self.keep_last_failures();
        }
    }

    fn keep_last_failures(&mut self) {
        self.failures.sort_by_key(|(_, it)| Reverse(it.on));
        self.failures.truncate(MOST_FAILURES);
    }

    /// Sorts them into lanes; what conductors are doing now belongs to it.
    pub(super) fn finish(mut self, conductors: &[Conductor], at: DateTime<Utc>) -> Timeline {
        let last = self.runs.iter().filter_map(|(_, run)| run.to);
        let last = last.chain(self.failures.iter().map(|(_, it)| it.on)).max();
        let under_way = conductors.iter().flat_map(|conductor| {
            conductor.told.runs.iter().map(|run| {
                let run = Run {
                    job: run.uuid.clone(),
                    name: run.name.clone(),
                    from: run.since,
                    to: None,
                    outcome: RunOutcome::Running,
                };
                (Some(conductor.owner.clone()), run)
            })
        });
        let before = self.runs.len();
        self.runs.extend(under_way.take(MOST_RUNS));
        let to = if self.runs.len() > before {
            Some(at)
        } else {
            last
        };
        self.keep_last_failures();
        let from = self.from();
        let mut lanes: BTreeMap<Option<Owner>, Lane> = BTreeMap::new();
        let lane = |owner: Option<Owner>| Lane {
            conductor: (conductors
                .iter()
                .find(|it| Some(&it.owner) == owner.as_ref()))
            .map(|it| it.name.clone()),
            performed: 0,
            owner,
            runs: Vec::new(),
            failures: Vec::new(),
        };
        for (owner, run) in self.runs {
            let of = lanes.entry(owner.clone()).or_insert_with(|| lane(owner));
            of.runs.push(run);
        }
        let seen = |it: &Attempt| from.is_none_or(|from| it.on >= from);
        for (owner, attempt) in self.failures.into_iter().filter(|(_, it)| seen(it)) {
            let owner = Some(owner);
            let of = lanes.entry(owner.clone()).or_insert_with(|| lane(owner));
            of.failures.push(attempt);
        }
        let mut lanes: Vec<_> = lanes.into_values().collect();
        lanes.sort_by_key(|lane| Reverse((lane.owner.is_some(), lane.runs.len())));
        for lane in &mut lanes {
            let of = self.performers.entry(called(lane.owner.as_ref()));
            lane.performed = *of.or_default();
            lane.runs
                .sort_by(|one, other| (one.from, &one.job).cmp(&(other.from, &other.job)));
            lane.failures
                .sort_by(|one, other| (one.on, &one.job).cmp(&(other.on, &other.job)));
        }
        lanes.truncate(MOST_LANES);
        Timeline {
            from,
            to,
            performed: self.performed,
            more: self.performers.len().saturating_sub(lanes.len()) as u64,
            lanes,
        }
    }

    /// Returns from when on runs are shown: one that began long before all others ended does not make these
    /// invisible.
    fn from(&self) -> Option<DateTime<Utc>> {
        let ended = self.runs.iter().filter_map(|(_, run)| run.to);
        let failed = self.failures.iter().map(|(_, it)| it.on);
        let last = ended.clone().chain(failed.clone()).max();
        let first_end = ended.min();
        let first = self.runs.iter().map(|(_, run)| run.from).min();
        let (Some(first), Some(first_end), Some(last)) = (first, first_end, last) else {
            return first.or(failed.min());
        };
        let shown = (last - first_end).max(TimeDelta::seconds(60));
        let earliest = first_end.checked_sub_signed(shown).unwrap_or(first);
        Some(first.max(earliest))
    }
}

/// Returns the name of an owner as it is told.
fn called(owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |it| guard::name(&it.text()).into_owned())
}
