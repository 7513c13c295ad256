//! Reconstructs the acts of a run from the logs of commands and conductors.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    judge::{self, Noted},
    worker::{Life, Way, Worker},
};
use crate::support::{Act, Answer, By, Env, History, How, Sight, What};

/// The precision of a conductor's times.
const CUT_OFF: Duration = Duration::from_millis(1);

/// The end of each attempt of a process, and the time of its report.
type Settled = HashMap<(String, u64), (How, f64)>;

/// Records the acts of the workers: each claim, each sign of life of its command, and its end.
pub(super) fn write_down(history: &History, env: &Env, workers: &[Worker], lease: Duration) {
    // In an hour, several processes have the same pid.
    let mut lives: HashMap<String, Vec<(Life, Settled)>> = HashMap::new();
    for life in workers.iter().flat_map(Worker::lives) {
        let settled = notes_of(&life);
        let of_pid = lives.entry(life.pid.to_string()).or_default();
        of_pid.push((life, settled));
    }
    let log = judge::log(env);
    let mut writer = Writer {
        history,
        lease,
        free_since: HashMap::new(),
    };
    for (at, noted) in log.iter().enumerate() {
        match noted.what.as_str() {
            "start" => {
                let is_its = |it: &&Noted| {
                    it.what == "end" && it.job == noted.job && it.fence == noted.fence
                };
                let end = log[at..].iter().find(is_its);
                let pid = noted.owner.rsplit(':').nth(1).unwrap_or_default();
                let started = history.at_wall(noted.at);
                let is_it =
                    |(life, _): &&(Life, Settled)| life.begun <= started && started <= life.ended;
                let by = lives.get(pid).into_iter().flatten().find(is_it);
                writer.attempt(noted, end, by);
            }
            // The holder of the lock was alive, at least until then.
            "double" => writer.runs(noted, noted.other.unwrap_or_default()),
            _ => {}
        }
    }
}

struct Writer<'a> {
    history: &'a History,
    lease: Duration,
    /// The earliest time of the next claim by an owner.
    free_since: HashMap<(String, String), Duration>,
}

impl Writer<'_> {
    fn attempt(&mut self, start: &Noted, end: Option<&Noted>, by: Option<&(Life, Settled)>) {
        let (history, fence) = (self.history, start.fence);
        let since = (start.owner.clone(), start.job.clone());
        let life = by.map(|(life, _)| life);
        let begun = self.free_since.get(&since).copied();
        let owner: Arc<str> = start.owner.as_str().into();
        let claim = What::Claim {
            owner,
            fence: Some(fence),
            term: Some(self.lease),
        };
        let started = history.at_wall(start.at);
        let begun = begun.or(life.map(|life| life.begun)).unwrap_or_default();
        self.add(start, claim, Answer::Done, (begun, started));
        self.runs(start, fence);
        let mut since_end = started;
        if let Some(end) = end {
            self.runs(end, fence);
            since_end = history.at_wall(end.at);
        }
        let settled = by.and_then(|(life, settled)| match life.way {
            Way::Conduct => settled
                .get(&(start.job.clone(), fence))
                .map(|(how, at)| (*how, history.at_wall(*at) + CUT_OFF)),
            // The process ends with its command, after the settlement.
            Way::Claim | Way::Run(_) => (life.code == 0).then_some((How::Consume, life.ended)),
        });
        if let Some((how, at)) = settled {
            let end = What::End(By::Claim(fence), how);
            self.free_since.insert(since, at);
            self.add(start, end, Answer::Done, (since_end, at));
        } else {
            let end = What::End(By::Claim(fence), How::Any);
            self.add(start, end, Answer::Unknown, (since_end, since_end));
        }
    }

    /// Records that the command of a claim was alive at this time.
    fn runs(&self, noted: &Noted, fence: u64) {
        let at = self.history.at_wall(noted.at);
        self.add(noted, What::Runs(fence), Answer::Done, (at, at));
    }

    fn add(&self, noted: &Noted, what: What, answer: Answer, (begun, ended): (Duration, Duration)) {
        self.history.add(Act {
            job: noted.job.as_str().into(),
            who: noted.owner.as_str().into(),
            what,
            answer,
            begun: begun.min(ended),
            ended,
        });
    }
}

/// Reads the ends of attempts from a conductor's log.
fn notes_of(life: &Life) -> Settled {
    let mut settled = Settled::new();
    let mut running: HashMap<String, u64> = HashMap::new();
    for note in life.log.lines() {
        let Ok(note) = serde_json::from_str::<Value>(note) else {
            continue;
        };
        let text = |key: &str| note[key].as_str().unwrap_or_default().to_owned();
        let job = text("uuid");
        let how = match text("event").as_str() {
            "running_start" => {
                running.insert(job, text("fence").parse().unwrap());
                continue;
            }
            "job_consumed" => How::Consume,
            "job_abandoned" | "job_postponed" => How::Abandon,
            "job_trashed" => How::Trash,
            // The next end belongs to another claim, which may be released before its command starts.
            "claim_lost" => {
                running.remove(&job);
                continue;
            }
            _ => continue,
        };
        let time = chrono::DateTime::parse_from_rfc3339(&text("time")).unwrap();
        let at = time.timestamp_micros() as f64 / 1e6;
        if let Some(fence) = running.remove(&job) {
            settled.insert((job, fence), (how, at));
        }
    }
    settled
}

/// Records the final state of the jobs, after all clients stopped.
pub(super) fn look(history: &History, env: &Env, jobs: impl IntoIterator<Item = String>) {
    let begun = history.now();
    let [board, trash] = env.everything();
    let has = |listed: &Value, job: &str| {
        let mut listed = listed.as_array().unwrap().iter();
        listed.any(|it| it["uuid"] == *job)
    };
    for job in jobs {
        let on_board = match has(&board, &job) {
            true => Sight::OnBoard,
            false => Sight::Gone,
        };
        let in_trash = match has(&trash, &job) {
            true => Sight::InTrash,
            false => Sight::NotInTrash,
        };
        for sight in [on_board, in_trash] {
            let who = ("in the end", job.as_str());
            history.note(who, What::Seen(sight), begun, Some(Answer::Done));
        }
    }
}
