//! The effects that the session runs, and the actions on the marked jobs, after confirmation.
//!
//! The actions are like the verbs: the dashboard shows the jobs and asks, and the board acts only on unchanged jobs.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::row::RowPlace;
use crate::{
    board::{Board, BoardError, JobRef},
    commands::{
        bulk::{
            action::{Action, Force},
            task::Executor,
        },
        retry,
    },
    exit::chain,
    glob,
    job::{AuditEntry, Entry, JobKey, Location, Origin, Owner, Pause, Pauses},
    output::{count_jobs, short},
    problem::Repair,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Abandon,
    /// Abandon, and end the wait of the conductors.
    Release,
    Trash,
    Retry,
    Consume,
    Pause,
    Resume,
}

impl Operation {
    pub(super) fn problem(self, location: Location, is_claimed: bool) -> Option<&'static str> {
        match (self, location) {
            (Self::Abandon | Self::Release, Location::Board) if !is_claimed => {
                Some("the job is not claimed")
            }
            (Self::Abandon | Self::Release | Self::Trash | Self::Consume, Location::Trash) => {
                Some("the job is in the trash; press R to retry it")
            }
            _ => None,
        }
    }

    pub(super) fn of(repair: Repair) -> Self {
        match repair {
            Repair::Abandon { now: true } => Self::Release,
            Repair::Abandon { now: false } => Self::Abandon,
            Repair::Trash { .. } => Self::Trash,
            Repair::Retry { .. } => Self::Retry,
        }
    }

    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Abandon | Self::Release => ("abandon", "abandoned"),
            Self::Trash => ("trash", "trashed"),
            Self::Retry => ("retry", "retried"),
            Self::Consume => ("consume", "consumed"),
            Self::Pause => ("pause", "paused"),
            Self::Resume => ("resume", "resumed"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum DashEffect {
    Quit,
    Suspend,
    Redraw,
    Read,
    /// Read without the usual delay: the view does not match the request.
    ReadNow,
    ReadHistory,
    ReadSnapshot,
    Ping,
    Find(Vec<RowPlace>),
    Open(JobRef),
    Explain(JobRef),
    Prepare(Operation, Vec<RowPlace>),
    Perform(DashTask),
}

#[derive(Debug)]
pub(super) struct Dialog {
    pub(super) operation: Operation,
    pub(super) places: Vec<RowPlace>,
    pub(super) jobs: Vec<(Entry, bool)>,
    names: Vec<String>,
    /// The note about chosen jobs that the operation does not fit.
    pub(super) left_out: Option<String>,
    pub(super) typed: String,
    pub(super) stage: TaskStage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskStage {
    /// The lookup is running; keys confirm nothing.
    Looking,
    Asking,
    Acting,
    Done(String, Vec<String>),
}

impl Dialog {
    pub(super) fn new(operation: Operation, places: Vec<RowPlace>) -> Self {
        Self {
            operation,
            places,
            jobs: Vec::new(),
            names: Vec::new(),
            left_out: None,
            typed: String::new(),
            stage: TaskStage::Looking,
        }
    }

    pub(super) fn ask(&mut self, jobs: Vec<Entry>, pauses: &Pauses, now: DateTime<Utc>) {
        let names = jobs.iter().filter_map(Entry::job).map(|job| &job.name);
        let names: BTreeSet<_> = match self.operation {
            Operation::Resume => names
                .filter_map(|name| Some(pauses.of(name, now)?.names.clone()))
                .collect(),
            _ => names.map(|name| glob::literal(name)).collect(),
        };
        self.names = names.into_iter().collect();
        self.jobs = jobs.into_iter().map(|entry| (entry, false)).collect();
        self.stage = TaskStage::Asking;
    }

    pub(super) fn question(&self) -> String {
        let jobs = match self.stage {
            TaskStage::Looking => self.places.len(),
            TaskStage::Asking | TaskStage::Acting | TaskStage::Done(..) => self.jobs.len(),
        };
        let (jobs, names) = (count_jobs(jobs as u64), self.names.join(", "));
        match self.operation {
            Operation::Pause | Operation::Resume if self.names.is_empty() => {
                format!("{} the names of {jobs}?", self.operation.words().0)
            }
            Operation::Pause => format!("pause all jobs named {names}?"),
            Operation::Resume => format!("resume jobs named {names}?"),
            Operation::Retry => format!("retry {jobs}?"),
            operation => format!("{} {jobs} by force?", operation.words().0),
        }
    }

    pub(super) fn task(&self) -> Option<DashTask> {
        let unchanged = self.jobs.iter().filter(|(_, has_changed)| !has_changed);
        let jobs: Vec<_> = unchanged.map(|(entry, _)| entry.clone()).collect();
        (!jobs.is_empty()).then(|| DashTask {
            operation: self.operation,
            jobs,
            names: self.names.clone(),
        })
    }

    pub(super) fn end(&mut self, mut stage: TaskStage) {
        if let TaskStage::Done(_, problems) = &mut stage {
            let changed = self.jobs.iter().filter(|(_, has_changed)| *has_changed);
            let as_problem = |(entry, _): &_| problem(entry, &chain(&BoardError::Changed));
            problems.extend(changed.map(as_problem));
        }
        self.stage = stage;
    }

    pub(super) fn note_change(&mut self, key: &JobKey) {
        let is_of_names = matches!(self.operation, Operation::Pause | Operation::Resume);
        if self.stage == TaskStage::Asking && !is_of_names {
            let jobs = self.jobs.iter_mut();
            for (_, has_changed) in jobs.filter(|(entry, _)| entry.key() == key) {
                *has_changed = true;
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct DashTask {
    operation: Operation,
    jobs: Vec<Entry>,
    names: Vec<String>,
}

pub(super) async fn perform(board: &dyn Board, task: &DashTask, who: &Owner) -> TaskStage {
    let (force, failed) = (Force::Any, false);
    let action = match task.operation {
        Operation::Pause | Operation::Resume => return pause(board, task, who).await,
        Operation::Abandon => Action::Abandon { force, now: false },
        Operation::Release => Action::Abandon { force, now: true },
        Operation::Trash => Action::Trash { force, failed },
        Operation::Retry => Action::Retry {
            keep_attempts: false,
        },
        Operation::Consume => Action::Consume { force, failed },
    };
    let mut notes = Vec::new();
    let mut fit = Vec::new();
    for entry in &task.jobs {
        match why_not_retried(entry).filter(|_| task.operation == Operation::Retry) {
            Some(why) => notes.push(problem(entry, &why)),
            None => fit.push(entry),
        }
    }
    let executor = Executor::new(board, &action, who.clone(), None).await;
    let answers = match executor.act(&fit).await {
        Ok(answers) => answers,
        Err(error) => {
            let text = "the outcome is unknown; check the jobs".to_owned();
            return TaskStage::Done(text, vec![chain(&error)]);
        }
    };
    let mut done = 0;
    for (entry, answer) in fit.into_iter().zip(answers) {
        match answer {
            Ok(effect) => {
                done += 1;
                notes.extend(effect.note);
            }
            Err(error) => notes.push(problem(entry, &chain(error.as_ref()))),
        }
    }
    let (_, past) = task.operation.words();
    TaskStage::Done(format!("{past} {}", count_jobs(done)), notes)
}

fn why_not_retried(entry: &Entry) -> Option<String> {
    match entry.origin() {
        Origin::Here => retry::judge(entry, Utc::now(), false, false)
            .err()
            .map(|error| chain(&error)),
        _ => Some("the board of this job is unknown; use `jobboard retry UUID`".to_owned()),
    }
}

async fn pause(board: &dyn Board, task: &DashTask, who: &Owner) -> TaskStage {
    let (_, past) = task.operation.words();
    let audit = AuditEntry::now(past, &who.text(), None);
    let (mut done, mut notes) = (Vec::new(), Vec::new());
    for names in &task.names {
        let answer = match task.operation {
            Operation::Resume => board.resume(names, &audit).await.map(drop),
            _ => {
                let pause = Pause::new(names.clone(), None, audit.clone());
                board.pause(&pause).await
            }
        };
        match answer {
            Ok(()) => done.push(names.as_str()),
            Err(error) => notes.push(format!("{names}: {}", chain(&error))),
        }
    }
    if done.is_empty() {
        return TaskStage::Done(format!("nothing {past}"), notes);
    }
    if task.operation == Operation::Pause {
        notes.push("press P or run `jobboard resume` to resume".to_owned());
        if board.capabilities().has_peers() {
            notes.push("Python services ignore pauses".to_owned());
        }
    }
    TaskStage::Done(format!("{past} {}", done.join(", ")), notes)
}

fn problem(entry: &Entry, what: &str) -> String {
    match entry {
        Entry::Job(job) => format!("{} {}: {what}", short(&job.reference()), job.name),
        Entry::Malformed(_) => what.to_owned(),
    }
}
