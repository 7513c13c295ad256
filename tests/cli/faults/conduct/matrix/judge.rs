//! The log of the commands, and its verdict.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use serde_json::Value;

use super::history_from_logs;
use crate::support::{Env, History};

#[derive(Debug)]
pub(super) struct Noted {
    pub(super) what: String,
    pub(super) job: String,
    pub(super) fence: u64,
    /// The owner of the claim.
    pub(super) owner: String,
    /// The fence of another live command of the job.
    pub(super) other: Option<u64>,
    /// In seconds since 1970.
    pub(super) at: f64,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) jobs: BTreeSet<String>,
    pub(super) attempts: usize,
    pub(super) strikes: usize,
    /// The longest time without a start or an end of a job.
    pub(super) pause: Duration,
    /// Jobs that left the board without an end.
    pub(super) lost: BTreeSet<String>,
    /// Jobs that ran twice concurrently, or under an older claim.
    pub(super) doubled: BTreeSet<String>,
    /// Jobs that remain on the quiet board.
    pub(super) left: Vec<Value>,
    /// Processes of jobs that remain at the end.
    pub(super) survivors: usize,
    pub(super) acts: usize,
    /// Inconsistent answers.
    pub(super) wrong: Vec<String>,
    /// Jobs with too many possible orders to decide.
    pub(super) undecided: usize,
    pub(super) complaints: Vec<String>,
}

impl Report {
    /// The report of an unfinished run.
    pub(super) fn failed() -> Self {
        Self {
            complaints: vec!["the run itself failed, see above".to_owned()],
            ..Self::default()
        }
    }

    pub(super) fn is_good(&self) -> bool {
        self.lost.is_empty()
            && self.doubled.is_empty()
            && self.left.is_empty()
            && self.survivors == 0
            && self.wrong.is_empty()
            && self.complaints.is_empty()
    }

    /// Judges by the log, once the board is empty or quiet.
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
    /// Inspects the board once more, and judges the complete history.
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

/// Returns the number of ended jobs in the log.
pub(super) fn ended(env: &Env) -> usize {
    let ends = log(env).into_iter().filter(|noted| noted.what == "end");
    ends.map(|noted| noted.job).collect::<BTreeSet<_>>().len()
}

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
