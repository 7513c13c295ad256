//! A process that takes jobs off a board and performs them, and what it tells of itself.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::{Value, json};

use super::{Owner, from_json};

/// How many of the jobs that it performs a conductor tells of.
pub(crate) const MOST_RUNS: usize = 32;

/// How long one may say nothing before it counts as silent; it says something every ten seconds.
const OVERDUE: Duration = Duration::from_secs(15);

const LONGEST_TOLD: usize = 64 * 1024;

pub(crate) const MOST_HANDLERS: usize = 200;

/// A process that takes jobs off a board and performs them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Conductor {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) since: DateTime<Utc>,
    pub(crate) owner: Owner,
    /// How long ago it last said that it is alive, as far as the board tells.
    #[serde(skip)]
    pub(crate) silence: Option<Duration>,
    #[serde(flatten, serialize_with = "shown")]
    pub(crate) told: Told,
}

/// Writes it under the keys that programs read; the registry keeps those of 0.2.0.
fn shown<S: Serializer>(told: &Told, serializer: S) -> Result<S::Ok, S::Error> {
    let Value::Object(stored) = serde_json::to_value(told).map_err(S::Error::custom)? else {
        return serializer.serialize_none();
    };
    let skipped = || {
        let all = told.passed_over.iter();
        all.map(|it| json!({"reason": it.reason, "jobs": it.jobs, "example": it.such_as, "job": it.job}))
    };
    serializer.collect_map(stored.into_iter().map(|(key, value)| match &*key {
        "takes" => ("accepts".to_owned(), value),
        "passed_over" => ("skipped".to_owned(), skipped().collect()),
        _ => (key, value),
    }))
}

impl Conductor {
    /// Whether it should have said by now that it is alive.
    pub(crate) fn is_overdue(&self) -> bool {
        self.silence.is_some_and(|silence| silence > OVERDUE)
    }

    /// Returns how many more jobs it could perform now; one that tells nothing performs one at a time.
    pub(crate) fn free(&self) -> usize {
        let Told {
            course,
            slots,
            running,
            ..
        } = self.told;
        match course {
            Course::Quiet | Course::Ending => 0,
            Course::Working | Course::Draining => {
                slots.unwrap_or(1).saturating_sub(running.unwrap_or(0))
            }
        }
    }
}

/// What a conductor tells of itself; of one that tells nothing all of it is as it is by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Told {
    pub(crate) version: Option<String>,
    /// Which process it is, for whoever is on the same machine.
    pub(crate) process: Option<String>,
    /// How many jobs it performs at once.
    pub(crate) slots: Option<usize>,
    /// How long its claims last from a renewal on, in seconds.
    pub(crate) lease: Option<f64>,
    pub(crate) course: Course,
    /// How many jobs it performs, of which `runs` has the first.
    pub(crate) running: Option<usize>,
    pub(crate) runs: Vec<Run>,
    pub(crate) takes: Option<Takes>,
    #[serde(flatten)]
    pub(crate) counters: Counters,
    /// What it leaves to others, by the reason, the most first.
    pub(crate) passed_over: Vec<LeftAlone>,
    pub(crate) unsettled: Vec<Unsettled>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Course {
    /// It takes jobs until somebody ends it.
    #[default]
    Working,
    /// It takes jobs until none is left.
    Draining,
    /// It takes no more until somebody says otherwise.
    Quiet,
    /// It takes no more.
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
pub(crate) struct Takes {
    /// All of these must hold.
    pub(crate) filters: Vec<String>,
    /// Patterns of the programs that jobs may name; `None` for any.
    pub(crate) programs: Option<Vec<String>>,
    /// The folders in which programs are looked for, where it matters.
    pub(crate) search: Vec<String>,
    /// Patterns of the variables that jobs may set; `None` for any.
    pub(crate) variables: Option<Vec<String>>,
    /// The programs that are run by the names of jobs, and why one of them is not; `None` without
    /// such a folder.
    pub(crate) handlers: Option<BTreeMap<String, Option<String>>>,
    pub(crate) more_handlers: usize,
    /// How often a job is tried that does not say so itself, and how often any.
    pub(crate) max_attempts: u32,
    pub(crate) max_attempts_max: Option<u32>,
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
pub(crate) struct LeftAlone {
    pub(crate) reason: String,
    pub(crate) jobs: u64,
    /// The name of one of them, and what refers to it.
    pub(crate) such_as: String,
    pub(crate) job: String,
}

/// A job whose settlement the board refuses, for a reason that has nothing to do with its claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unsettled {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Told {
    /// Reads what a conductor has stored of itself; what cannot be read says nothing.
    pub(crate) fn read(text: &[u8]) -> Self {
        if text.len() > LONGEST_TOLD {
            return Self::default();
        }
        // Earlier ones told nothing but the jobs that they could not settle.
        let earlier = |_| {
            from_json(text).map(|unsettled| Self {
                unsettled,
                ..Self::default()
            })
        };
        from_json(text).or_else(earlier).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn untrusted_conductors_tell_nothing_or_the_same_again() {
        let told = [
            r#"{"version":"0.2.0","slots":4,"lease":30.5,"course":"draining","running":1,"runs":[{"uuid":
                "u","name":"a","since":"2026-01-01T00:00:00Z","attempt":1}],"done":7,"failed":1}"#,
            r#"{"takes":{"filters":["name=a*"],"programs":null,"search":["/bin"],"variables":[],"handlers":
                {"a":null,"b":"it is no program"},"more_handlers":2,"max_attempts":3},"later":[[1]]}"#,
            r#"{"passed_over":[{"reason":"r","jobs":2,"such_as":"a","job":"@1"}],"unsettled":[]}"#,
            r#"[{"uuid":"u","name":"a","reason":"it is away"}]"#,
        ];
        Corpus::of(Bounds::STORED, told).hold(|input| {
            let told = Told::read(input);
            if told == Told::default() {
                return refused("it tells nothing");
            }
            let again = serde_json::to_vec(&told).map_err(|it| it.to_string())?;
            same("told again", &told, &Told::read(&again)).and(Ok(Answer::Read))
        });
    }
}
