//! What the commands wrote down, and what follows from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use serde_json::Value;

use super::history_from_logs;
use crate::support::{env::Env, history::History};

/// A line that a command wrote.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) what: String,
    pub(super) job: String,
    pub(super) fence: u64,
    /// Who had claimed the job.
    pub(super) owner: String,
    /// The fence of the claim whose command is alive, too.
    pub(super) other: Option<u64>,
    /// In seconds since 1970.
    pub(super) at: f64,
}

/// What a run has shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) jobs: BTreeSet<String>,
    pub(super) attempts: usize,
    pub(super) strikes: usize,
    /// The longest that no job began and none ended.
    pub(super) pause: Duration,
    /// Jobs that are gone, or in the trash, and never came to their end.
    pub(super) lost: BTreeSet<String>,
    /// Jobs that were run by two at a time, or under a claim that is not newer than the one before.
    pub(super) doubled: BTreeSet<String>,
    /// Jobs that are still on the board when all is calm.
    pub(super) left: Vec<Value>,
    /// Processes of jobs that are still there when all is settled.
    pub(super) survivors: usize,
    /// How much was written down of what was done.
    pub(super) acts: usize,
    /// What of it cannot be true.
    pub(super) wrong: Vec<String>,
    /// Jobs of which too much can be true to tell.
    pub(super) undecided: usize,
    /// Other problems.
    pub(super) complaints: Vec<String>,
}

impl Report {
    /// The report on a run that did not come to its end.
    pub(super) fn failed() -> Self {
        Self {
            complaints: vec!["the run itself failed, as is said above".to_owned()],
            ..Self::default()
        }
    }

    /// Says whether all is as it has to be.
    pub(super) fn is_good(&self) -> bool {
        self.lost.is_empty()
            && self.doubled.is_empty()
            && self.left.is_empty()
            && self.survivors == 0
            && self.wrong.is_empty()
            && self.complaints.is_empty()
    }

    /// Judges by the log, once the board is empty or nothing happens on it any more.
    pub(super) fn judge(env: &Env, posted: &[String], left: Vec<Value>) -> Self {
        let mut jobs: BTreeSet<String> = posted.iter().cloned().collect();
        let (mut ended, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        let mut fences: BTreeMap<String, u64> = BTreeMap::new();
        let (mut attempts, mut pause, mut last) = (0, 0.0_f64, None);
        for noted in log(env) {
            pause = pause.max(noted.at - last.unwrap_or(noted.at));
            last = Some(noted.at);
            jobs.insert(noted.job.clone());
            match noted.what.as_str() {
                "start" => {
                    attempts += 1;
                    let before = fences.insert(noted.job.clone(), noted.fence);
                    if before.is_some_and(|before| before >= noted.fence) {
                        doubled.insert(noted.job);
                    }
                }
                "end" => {
                    ended.insert(noted.job);
                }
                _ => {
                    doubled.insert(noted.job);
                }
            }
        }
        let stays = |job: &String| left.iter().any(|left| left["uuid"] == **job);
        let lost = jobs.difference(&ended).filter(|job| !stays(job));
        let lost = lost.cloned().collect();
        Self {
            jobs,
            attempts,
            pause: Duration::from_secs_f64(pause.max(0.0)),
            lost,
            doubled,
            left,
            ..Self::default()
        }
    }
}

impl Report {
    /// Looks at the board once more, and judges all that was written down by then.
    pub(super) fn with(self, env: &Env, history: &History) -> Self {
        history_from_logs::look(history, env, self.jobs.iter().cloned());
        let mut complaints = self.complaints;
        if history.is_off() {
            complaints.push("the clock on the wall was set meanwhile".to_owned());
        }
        let (wrong, undecided) = history.judged();
        Self {
            acts: history.len(),
            wrong: wrong.iter().map(ToString::to_string).collect(),
            undecided,
            complaints,
            ..self
        }
    }
}

/// Returns how many jobs have ended, of those that have a line.
pub(super) fn ended(env: &Env) -> usize {
    let ends = log(env).into_iter().filter(|noted| noted.what == "end");
    ends.map(|noted| noted.job).collect::<BTreeSet<_>>().len()
}

/// Returns what commands have written down.
pub(super) fn log(env: &Env) -> Vec<Noted> {
    let text = fs::read_to_string(env.file("log")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let [what, job, fence, owner, other, at] = words[..] else {
                return None;
            };
            Some(Noted {
                what: what.to_owned(),
                job: job.to_owned(),
                fence: fence.parse().unwrap(),
                owner: owner.to_owned(),
                other: other.parse().ok(),
                at: at.parse().unwrap(),
            })
        })
        .collect()
}
