//! The registry entry of a running conductor.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::{Value, json};

use super::Owner;

pub(crate) const MAX_RUNS: usize = 32;

/// A conductor is silent after this long. Its heartbeat comes every ten seconds.
const OVERDUE: Duration = Duration::from_secs(15);

pub(crate) const MAX_HANDLERS: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Conductor {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) since: DateTime<Utc>,
    pub(crate) owner: Owner,
    #[serde(skip)]
    pub(crate) silence: Option<Duration>,
    /// Its registration ended without notice, but it may still hold claims. Others may use its name.
    #[serde(skip)]
    pub(crate) has_left: bool,
    #[serde(flatten, serialize_with = "shown")]
    pub(crate) report: ConductorReport,
}

#[cfg(test)]
impl Conductor {
    pub(crate) fn named(name: &str) -> Self {
        let (host, owner) = ("host".to_owned(), Owner::new(name).unwrap());
        Self::of_this_process(name.to_owned(), host, owner, ConductorReport::default())
    }
}

impl Conductor {
    /// This process, under this name from now on.
    pub(crate) fn of_this_process(
        name: String,
        host: String,
        owner: Owner,
        report: ConductorReport,
    ) -> Self {
        Self {
            name,
            host,
            pid: std::process::id(),
            since: Utc::now().trunc_subsecs(6),
            owner,
            silence: None,
            has_left: false,
            report,
        }
    }
}

/// Serializes under the public JSON keys; the registry keeps the keys of 0.2.0.
fn shown<S: Serializer>(report: &ConductorReport, serializer: S) -> Result<S::Ok, S::Error> {
    let Value::Object(stored) = serde_json::to_value(report).map_err(S::Error::custom)? else {
        return serializer.serialize_none();
    };
    let skipped = || {
        let all = report.passed_over.iter();
        all.map(|it| json!({"reason": it.reason, "jobs": it.jobs, "example": it.such_as, "job": it.job}))
    };
    serializer.collect_map(stored.into_iter().map(|(key, value)| match &*key {
        "takes" => ("accepts".to_owned(), value),
        "passed_over" => ("skipped".to_owned(), skipped().collect()),
        _ => (key, value),
    }))
}

impl Conductor {
    pub(crate) fn is_overdue(&self) -> bool {
        self.silence.is_some_and(|silence| silence > OVERDUE)
    }

    /// Returns the number of free slots. A conductor that reports nothing counts as single-slot.
    pub(crate) fn free(&self) -> usize {
        let (slots, running) = (self.report.slots, self.report.running);
        match self.report.course {
            Course::Quiet | Course::Ending => 0,
            Course::Working | Course::Draining => {
                slots.unwrap_or(1).saturating_sub(running.unwrap_or(0))
            }
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConductorReport {
    pub(crate) version: Option<String>,
    pub(crate) process: Option<String>,
    pub(crate) slots: Option<usize>,
    /// Lease duration in seconds.
    pub(crate) lease: Option<f64>,
    pub(crate) course: Course,
    /// The number of running jobs; `runs` lists the first ones.
    pub(crate) running: Option<usize>,
    pub(crate) runs: Vec<Run>,
    pub(crate) takes: Option<PublishedPolicy>,
    #[serde(flatten)]
    pub(crate) counters: Counters,
    pub(crate) passed_over: Vec<SkippedReason>,
    pub(crate) unsettled: Vec<Unsettled>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Course {
    /// It claims jobs until it is stopped.
    #[default]
    Working,
    /// It claims jobs until none remains.
    Draining,
    /// It claims no jobs until an operator resumes it.
    Quiet,
    /// It claims no more jobs.
    Ending,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) since: DateTime<Utc>,
    pub(crate) attempt: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PublishedPolicy {
    pub(crate) filters: Vec<String>,
    /// Patterns of the programs that jobs may name; `None` for any.
    pub(crate) programs: Option<Vec<String>>,
    /// The directories that are searched for programs, if that matters.
    pub(crate) search: Vec<String>,
    /// Patterns of the variables that jobs may set; `None` for any.
    pub(crate) variables: Option<Vec<String>>,
    /// The handlers by job name, each with the reason if it cannot run; `None` without a handler directory.
    pub(crate) handlers: Option<BTreeMap<String, Option<String>>>,
    pub(crate) more_handlers: usize,
    /// What runs each job instead of the job's own command.
    pub(crate) command: Option<PublishedCommand>,
    /// The default retry limit, and the upper bound.
    pub(crate) max_attempts: u32,
    pub(crate) max_attempts_max: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PublishedCommand {
    /// Its absolute path; the arguments may be secret.
    pub(crate) program: String,
    /// Why it cannot run.
    pub(crate) problem: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Counters {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) postponed: u64,
    pub(crate) lost: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkippedReason {
    pub(crate) reason: String,
    pub(crate) jobs: u64,
    /// One example, and a reference to it.
    pub(crate) such_as: String,
    pub(crate) job: String,
}

/// A job that the board refuses to settle for a reason other than its claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unsettled {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) reason: String,
}
