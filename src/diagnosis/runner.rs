//! Asks each conductor's published settings whether it would take a job, with the code that conductors use.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    board::filter::{Filter, Filters},
    conductor::{
        admission::{Rejection, admit},
        policy::ExecutionPolicy,
    },
    duration,
    job::{Conductor, Course, Entry, Job, Run},
    output::count_jobs,
    process::group::{has_ended, is_stopped},
    retry::retry_limit,
};

pub(crate) fn is_silent(conductor: &Conductor) -> bool {
    has_died(conductor) || conductor.is_overdue()
}

/// Whether a conductor's process has ended. `false` if this machine cannot tell.
pub(crate) fn has_died(conductor: &Conductor) -> bool {
    let process = conductor.report.process.as_deref();
    has_ended(&conductor.host, conductor.pid, process) == Some(true)
}

/// Whether a conductor's process is stopped. `false` if this machine cannot tell.
fn has_stopped(conductor: &Conductor) -> bool {
    let process = conductor.report.process.as_deref();
    is_stopped(&conductor.host, conductor.pid, process)
}

/// What this machine knows about the process of a silent owner; the least certain state comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Death {
    Certain,
    /// The process with this pid is only stopped, for example by SIGSTOP.
    Stopped(u32),
    Unproven,
}

impl Death {
    /// The word that all commands use for such a conductor or owner.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Certain => "gone",
            Self::Stopped(_) => "stopped",
            Self::Unproven => "silent",
        }
    }

    /// Describes the state of the process, if this machine knows it.
    pub(super) fn proof(self) -> Option<&'static str> {
        match self {
            Self::Certain => Some("process gone"),
            Self::Stopped(_) => Some("stopped (SIGSTOP)"),
            Self::Unproven => None,
        }
    }
}

/// Returns the state of a silent conductor's process.
pub(super) fn death(conductor: &Conductor) -> Death {
    match conductor.report.process {
        // The same machine, boot and pid namespace: a bare pid may be that of another process.
        Some(_) if has_died(conductor) => Death::Certain,
        Some(_) if has_stopped(conductor) => Death::Stopped(conductor.pid),
        _ => Death::Unproven,
    }
}

/// Why a conductor does not run; `None` if it does.
pub(crate) fn absence(conductor: &Conductor) -> Option<Death> {
    is_silent(conductor).then(|| death(conductor))
}

/// A conductor, and the settings that decide which jobs it runs.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) conductor: Conductor,
    pub(crate) is_silent: bool,
    /// `Err`: the reason why it is unknown.
    decides_by: Result<(ExecutionPolicy, Filters), String>,
}

pub(crate) enum RunnerAnswer {
    Accepts {
        /// Whether the conductor would only trash the job because of its retry limit.
        is_spent: bool,
    },
    /// It has no command for the job, its filters exclude the job, or it claims no more.
    Skips(String),
    Refuses {
        reason: String,
        remedy: String,
    },
    Unknown(String),
}

impl RunnerAnswer {
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Accepts { .. } => None,
            Self::Skips(reason) | Self::Refuses { reason, .. } | Self::Unknown(reason) => {
                Some(reason)
            }
        }
    }
}

/// Loads are shown for this many conductors.
const MAX_NAMED_CONDUCTORS: usize = 3;

/// The limit for the patterns of all conductors together: about ten thousand.
const MAX_PATTERNS: usize = 1 << 20;

/// The cost of a pattern besides its length.
const PATTERN_COST: usize = 100;

/// Reads the smallest settings first: a hostile client can publish thousands of patterns.
pub(super) fn runners(conductors: Vec<Conductor>) -> Vec<Runner> {
    let mut sizes: Vec<_> = conductors.iter().map(size).enumerate().collect();
    sizes.sort_by_key(|(_, size)| *size);
    let (mut left, mut is_read) = (MAX_PATTERNS, vec![false; conductors.len()]);
    for (at, size) in sizes {
        is_read[at] = size <= left;
        left = left.saturating_sub(size);
    }
    let all = conductors.into_iter().zip(is_read);
    all.map(|(conductor, is_read)| Runner::new(conductor, is_read))
        .collect()
}

fn size(conductor: &Conductor) -> usize {
    let Some(takes) = &conductor.report.takes else {
        return 0;
    };
    let lists = [&takes.programs, &takes.variables];
    let lists = lists.into_iter().flatten().chain([&takes.filters]);
    lists.flatten().map(|it| it.len() + PATTERN_COST).sum()
}

impl Runner {
    fn new(conductor: Conductor, is_read: bool) -> Self {
        Self {
            is_silent: is_silent(&conductor),
            decides_by: match is_read {
                true => decides_by(&conductor),
                false => Err("the conductor publishes too many patterns".to_owned()),
            },
            conductor,
        }
    }

    /// Returns its running attempt at a job. A busy conductor publishes only some of its attempts.
    pub(crate) fn runs(&self, job: &Job) -> Option<&Run> {
        let reference = job.reference();
        let mut runs = self.conductor.report.runs.iter();
        runs.find(|run| run.uuid == reference)
    }

    /// Returns its load in words: `night-1 runs 4 jobs in 4 slots, the longest for 2m`.
    fn load(&self, now: DateTime<Utc>) -> String {
        let (name, report) = (&self.conductor.name, &self.conductor.report);
        let jobs = count_jobs(report.running.unwrap_or_default() as u64);
        let slots = match report.slots.unwrap_or(1) {
            1 => "1 slot".to_owned(),
            slots => format!("{slots} slots"),
        };
        let since = report.runs.iter().map(|run| run.since).min();
        let longest = since.map(|since| duration::between(since, now));
        let longest = longest.map(|age| format!(", the longest for {age}"));
        format!(
            "{name} runs {jobs} in {slots}{}",
            longest.unwrap_or_default()
        )
    }

    pub(crate) fn lease(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.conductor.report.lease?).ok()
    }

    pub(crate) fn answer(&self, entry: &Entry, job: &Job, now: DateTime<Utc>) -> RunnerAnswer {
        let why_none = match self.conductor.report.course {
            Course::Working | Course::Draining => None,
            Course::Quiet => Some("the conductor is quiet and claims nothing until SIGUSR1"),
            Course::Ending => Some("the conductor is stopping and claims nothing more"),
        };
        if let Some(reason) = why_none {
            return RunnerAnswer::Skips(reason.to_owned());
        }
        let (policy, filters) = match &self.decides_by {
            Ok(decides_by) => decides_by,
            // TaskFlow conductors run jobs that have a logbook.
            Err(_) if job.book.is_some() => return RunnerAnswer::Accepts { is_spent: false },
            Err(unknown) => return RunnerAnswer::Unknown(unknown.clone()),
        };
        if !filters.matches(entry, now) {
            return RunnerAnswer::Skips(format!("the conductor accepts only {filters}"));
        }
        match admit(policy, job) {
            Ok(()) => RunnerAnswer::Accepts {
                is_spent: self.is_spent(policy, job),
            },
            Err(against) => {
                let reason = against.to_string();
                match against {
                    Rejection::Policy(it) if it.is_refusal() => RunnerAnswer::Refuses {
                        reason,
                        remedy: it.remedy(),
                    },
                    Rejection::Policy(_) => RunnerAnswer::Skips(reason),
                    Rejection::Record(_) | Rejection::Pause(_) => RunnerAnswer::Unknown(reason),
                }
            }
        }
    }

    fn is_spent(&self, policy: &ExecutionPolicy, job: &Job) -> bool {
        self.conductor.report.takes.as_ref().is_some_and(|takes| {
            let own = policy.plan(job).ok();
            let own = own.and_then(|plan| plan.limits.max_attempts);
            let most = retry_limit(own, takes.max_attempts, takes.max_attempts_max);
            job.attempts.count >= most
        })
    }
}

/// Describes the load of these conductors, and counts those beyond the first few.
pub(super) fn loads(runners: &[&Runner], now: DateTime<Utc>) -> String {
    let named = runners
        .iter()
        .take(MAX_NAMED_CONDUCTORS)
        .map(|it| it.load(now));
    let named = named.collect::<Vec<_>>().join("; ");
    match runners.len().saturating_sub(MAX_NAMED_CONDUCTORS) {
        0 => named,
        more => format!("{named}; and {more} more conductors"),
    }
}

fn decides_by(conductor: &Conductor) -> Result<(ExecutionPolicy, Filters), String> {
    let Some(takes) = &conductor.report.takes else {
        return Err("the conductor does not publish its execution policy".to_owned());
    };
    let policy = ExecutionPolicy::of(takes);
    let filters = takes.filters.iter().map(|text| text.parse::<Filter>());
    let filters: Result<Vec<_>, _> = filters.collect();
    // It may come from a newer version.
    let filters = filters.map_err(|error| error.to_string())?;
    Ok((policy, Filters::new(filters)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        diagnosis::tests::conductor,
        job::{ConductorReport, PublishedPolicy},
    };

    #[test]
    fn settings_are_read_up_to_a_total_size_the_smallest_first() {
        let greedy = |patterns: usize| Conductor {
            report: ConductorReport {
                takes: Some(PublishedPolicy {
                    programs: Some(vec!["/*a*b".to_owned(); patterns]),
                    ..PublishedPolicy::default()
                }),
                ..ConductorReport::default()
            },
            ..conductor()
        };
        let many = [9_000, 1, 9_000, 2].map(greedy);
        let read = runners(many.into());
        let read: Vec<_> = read.iter().map(|it| it.decides_by.is_ok()).collect();
        assert_eq!(read, [true, true, false, true]);
    }
}
