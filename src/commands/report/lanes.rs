//! The timeline of a report: a lane per owner with its runs.

use std::{cmp::Reverse, collections::BTreeMap};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{
    guard,
    words::{Remainder, grouped},
};
use crate::{
    diagnosis::is_silent,
    job::{Conductor, Departure, Job, Owner},
};

const MOST_RUNS: usize = 200;

const MOST_ATTEMPTS: usize = 100;

const MOST_PERFORMERS: usize = 10_000;

const MOST_LANES: usize = 12;

#[derive(Debug, Default, Serialize)]
pub(super) struct Timeline {
    pub(super) from: Option<DateTime<Utc>>,
    /// The last end, or now while a job is running.
    pub(super) to: Option<DateTime<Utc>>,
    pub(super) performed: u64,
    pub(super) lanes: Vec<Lane>,
    pub(super) more: Remainder,
}

#[derive(Debug, Serialize)]
pub(super) struct Lane {
    /// `None`: the history does not have the owner.
    pub(super) owner: Option<Owner>,
    /// The registered conductor that claims under this name.
    pub(super) conductor: Option<String>,
    #[serde(flatten)]
    pub(super) sums: Sums,
    pub(super) runs: Vec<LaneRun>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Sums {
    pub(super) finished: u64,
    pub(super) failed: u64,
    /// The failed attempts that did not end the job.
    pub(super) attempts: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct LaneRun {
    pub(super) job: String,
    pub(super) name: String,
    /// `None`: a failed attempt, or the failure of a trashed job, records only its end.
    pub(super) from: Option<DateTime<Utc>>,
    /// `None`: still running.
    pub(super) to: Option<DateTime<Utc>>,
    pub(super) outcome: RunOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunOutcome {
    Finished,
    Failed,
    /// A failure that did not end the job.
    Attempt,
    Running,
}

impl RunOutcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Attempt => "attempt failed",
            Self::Running => "running",
        }
    }
}

impl Lane {
    pub(super) fn name(&self) -> String {
        match (&self.conductor, &self.owner) {
            (Some(conductor), _) => conductor.clone(),
            (None, Some(owner)) => owner.to_string(),
            (None, None) => "unknown".to_owned(),
        }
    }

    pub(super) fn count(&self, outcome: RunOutcome) -> u64 {
        self.runs.iter().filter(|it| it.outcome == outcome).count() as u64
    }
}

impl Timeline {
    pub(super) fn extent(&self) -> String {
        let ends = |it: &Lane| it.count(RunOutcome::Finished) + it.count(RunOutcome::Failed);
        let shown = self.lanes.iter().map(ends).sum::<u64>();
        let all = grouped(self.performed);
        match shown < self.performed {
            true => format!("latest {shown} of {all} ended jobs"),
            false => format!("all {shown} ended jobs"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<(Option<Owner>, LaneRun)>,
    attempts: Vec<(Option<Owner>, LaneRun)>,
    performers: BTreeMap<Option<Owner>, Sums>,
    performed: u64,
    has_dropped: bool,
}

impl Runs {
    /// Adds a job of the history; the latest comes first.
    pub(super) fn add_end(&mut self, job: &Job) {
        let Some((ended, from)) = job.ended.as_ref().and_then(|it| Some((it, it.claimed_on?)))
        else {
            return;
        };
        let has_failed = ended.departure == Departure::Failed;
        self.performed += 1;
        self.count(&ended.owner, |sums| match has_failed {
            true => sums.failed += 1,
            false => sums.finished += 1,
        });
        if self.runs.len() < MOST_RUNS {
            let outcome = if has_failed {
                RunOutcome::Failed
            } else {
                RunOutcome::Finished
            };
            let run = run(job, Some(from.min(ended.on)), ended.on, outcome);
            self.runs.push((ended.owner.clone(), run));
        }
    }

    fn count(&mut self, owner: &Option<Owner>, count: impl FnOnce(&mut Sums)) {
        if !self.performers.contains_key(owner) && self.performers.len() >= MOST_PERFORMERS {
            self.has_dropped = true;
            return;
        }
        count(self.performers.entry(owner.clone()).or_default());
    }

    /// Adds the recorded failures of a job, without the one that a run of the history has.
    pub(super) fn add_failures(&mut self, job: &Job) {
        let ended = job.ended.as_ref();
        let last = usize::from(ended.is_some_and(|it| it.departure == Departure::Failed));
        let fatal = match ended.map(|it| it.departure) {
            Some(Departure::Purged) => job.history.failures.last(),
            _ => job.fatal_failure(),
        };
        self.performed += u64::from(fatal.is_some());
        for failure in job.history.failures.iter().rev().skip(last) {
            let owner = Some(Owner::from_stored(failure.conductor.as_str()));
            let outcome = match fatal.is_some_and(|it| std::ptr::eq(it, failure)) {
                true => RunOutcome::Failed,
                false => RunOutcome::Attempt,
            };
            self.count(&owner, |sums| match outcome {
                RunOutcome::Failed => sums.failed += 1,
                _ => sums.attempts += 1,
            });
            let run = run(job, None, failure.time, outcome);
            self.attempts.push((owner, run));
        }
        if self.attempts.len() > 2 * MOST_ATTEMPTS {
            self.keep_last_attempts();
        }
    }

    fn keep_last_attempts(&mut self) {
        self.attempts.sort_by_key(|(_, it)| Reverse(it.to));
        self.attempts.truncate(MOST_ATTEMPTS);
    }

    pub(super) fn finish(mut self, conductors: &[Conductor], at: DateTime<Utc>) -> Timeline {
        self.keep_last_attempts();
        let ends = self.runs.iter().chain(&self.attempts);
        let last = ends.filter_map(|(_, run)| run.to).max();
        let before = self.runs.len();
        self.runs.extend(under_way(conductors).take(MOST_RUNS));
        let is_running = self.runs.len() > before;
        let from = self.from();
        self.attempts.retain(|(_, it)| it.to >= from);
        let mut lanes: BTreeMap<_, Vec<LaneRun>> = BTreeMap::new();
        for (owner, run) in self.runs.into_iter().chain(self.attempts) {
            self.performers.entry(owner.clone()).or_default();
            lanes.entry(owner).or_default().push(run);
        }
        let lanes = lanes.into_iter().map(|(owner, mut runs)| {
            let mut known = conductors.iter();
            let known = known.find(|it| Some(&it.owner) == owner.as_ref());
            runs.sort_by(|one, other| {
                let time = |run: &LaneRun| run.from.or(run.to);
                (time(one), &one.job).cmp(&(time(other), &other.job))
            });
            Lane {
                conductor: known.map(|it| it.name.clone()),
                sums: self.performers[&owner].clone(),
                owner,
                runs,
            }
        });
        let mut lanes: Vec<_> = lanes.collect();
        let attempts = |lane: &Lane| lane.count(RunOutcome::Attempt);
        lanes.sort_by_key(|it| Reverse((it.owner.is_some(), it.runs.len() as u64 - attempts(it))));
        lanes.truncate(MOST_LANES);
        Timeline {
            from,
            to: if is_running { Some(at) } else { last },
            performed: self.performed,
            more: Remainder {
                count: (self.performers.len() - lanes.len()) as u64,
                at_least: self.has_dropped,
            },
            lanes,
        }
    }

    /// Ignores a run that began long before the others, so that they stay visible.
    fn from(&self) -> Option<DateTime<Utc>> {
        let ended = self.runs.iter().filter_map(|(_, run)| run.to);
        let failed = self.attempts.iter().filter_map(|(_, it)| it.to);
        let last = ended.clone().chain(failed.clone()).max();
        let first_end = ended.min();
        let first = self.runs.iter().filter_map(|(_, run)| run.from).min();
        let (Some(first), Some(first_end), Some(last)) = (first, first_end, last) else {
            return first.or(failed.min());
        };
        let shown = (last - first_end).max(TimeDelta::seconds(60));
        let earliest = first_end.checked_sub_signed(shown).unwrap_or(first);
        Some(first.max(earliest))
    }
}

fn run(job: &Job, from: Option<DateTime<Utc>>, to: DateTime<Utc>, outcome: RunOutcome) -> LaneRun {
    LaneRun {
        job: guard::name(&job.reference()).into_owned(),
        name: job.name.clone(),
        from,
        to: Some(to),
        outcome,
    }
}

fn under_way(conductors: &[Conductor]) -> impl Iterator<Item = (Option<Owner>, LaneRun)> + '_ {
    let alive = conductors.iter().filter(|it| !is_silent(it));
    alive.flat_map(|conductor| {
        conductor.report.runs.iter().map(|run| {
            let run = LaneRun {
                job: run.uuid.clone(),
                name: run.name.clone(),
                from: Some(run.since),
                to: None,
                outcome: RunOutcome::Running,
            };
            (Some(conductor.owner.clone()), run)
        })
    })
}
