//! What the commands wrote down, and what follows from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use serde_json::Value;

use crate::support::env::Env;

/// A line that a command wrote.
#[derive(Debug)]
struct Noted {
    what: String,
    job: String,
    fence: u64,
    at: f64,
}

/// What a run has shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) jobs: usize,
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
    /// What else is wrong.
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
        Self {
            jobs: jobs.len(),
            attempts,
            pause: Duration::from_secs_f64(pause.max(0.0)),
            lost: lost.cloned().collect(),
            doubled,
            left,
            ..Self::default()
        }
    }
}

/// Returns how many jobs have ended, of those that have a line.
pub(super) fn ended(env: &Env) -> usize {
    let ends = log(env).into_iter().filter(|noted| noted.what == "end");
    ends.map(|noted| noted.job).collect::<BTreeSet<_>>().len()
}

fn log(env: &Env) -> Vec<Noted> {
    let text = fs::read_to_string(env.file("log")).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let [what, job, fence, _attempt, _pid, at] = words[..] else {
                return None;
            };
            Some(Noted {
                what: what.to_owned(),
                job: job.to_owned(),
                fence: fence.parse().unwrap(),
                at: at.parse().unwrap(),
            })
        })
        .collect()
}
