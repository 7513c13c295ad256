//! Doing something to the jobs that are marked, once somebody has agreed to it.
//!
//! As the verbs do: what is on the board is shown, somebody is asked, and the board acts only if it
//! is still so.

use chrono::Utc;

use super::picture::Place;
use crate::{
    board::{self, Board, BoardError},
    commands::{
        parts::{select, settle::by_force},
        retry,
    },
    exit::chain,
    glob,
    job::{Aftermath, Entry, JobKey, Origin, Outcome, Owner, Pause, Remark, Shelf},
    output::short,
};

/// What can be done to jobs from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Abandon,
    Trash,
    Retry,
    Consume,
    /// Have conductors leave all jobs of their names alone.
    Pause,
}

impl Deed {
    /// Returns where jobs are to which it can be done.
    pub(super) fn shelves(self) -> &'static [Shelf] {
        match self {
            Self::Abandon | Self::Trash | Self::Consume => &[Shelf::Board],
            Self::Retry | Self::Pause => &[Shelf::Board, Shelf::Trash],
        }
    }

    /// Returns what it is called, before and after it is done.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Abandon => ("abandon", "abandoned"),
            Self::Trash => ("trash", "trashed"),
            Self::Retry => ("retry", "retried"),
            Self::Consume => ("consume", "consumed"),
            Self::Pause => ("pause", "paused"),
        }
    }
}

/// What somebody is asked before anything is done.
#[derive(Debug)]
pub(super) struct Dialog {
    pub(super) deed: Deed,
    /// What was chosen.
    pub(super) places: Vec<Place>,
    /// The jobs as they were found when it was asked, and whether something has happened to each since.
    pub(super) jobs: Vec<(Entry, bool)>,
    /// How many of those that were marked are gone.
    pub(super) gone: usize,
    pub(super) typed: String,
    pub(super) stage: Stage,
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The jobs are looked at; what is typed meanwhile agrees to nothing.
    Looking,
    Asking,
    Acting,
    /// What came of it, and what went wrong.
    Done(String, Vec<String>),
}

impl Dialog {
    /// Begins with what was chosen, before it has been looked at.
    pub(super) fn of(deed: Deed, places: Vec<Place>) -> Self {
        Self {
            deed,
            places,
            jobs: Vec::new(),
            gone: 0,
            typed: String::new(),
            stage: Stage::Looking,
        }
    }

    /// Returns what somebody is asked.
    pub(super) fn question(&self) -> String {
        let jobs = match self.stage {
            Stage::Looking => self.places.len(),
            _ => self.jobs.len(),
        };
        let jobs = select::count(jobs as u64);
        match self.deed {
            Deed::Pause if self.stage == Stage::Looking => format!("pause the names of {jobs}?"),
            Deed::Retry => format!("retry {jobs}?"),
            Deed::Pause => format!("leave all jobs named {} alone?", self.names().join(", ")),
            deed => format!("{} {jobs} by force?", deed.words().0),
        }
    }

    /// Returns the names of the jobs, each once.
    fn names(&self) -> Vec<String> {
        let jobs = self.unchanged().filter_map(Entry::job);
        let mut names: Vec<_> = jobs.map(|job| job.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the jobs to which nothing has happened since they were found.
    fn unchanged(&self) -> impl Iterator<Item = &Entry> {
        let unchanged = self.jobs.iter().filter(|(_, has_changed)| !has_changed);
        unchanged.map(|(entry, _)| entry)
    }

    /// Returns what it will be done to, as it is to be done; none, if all of them have changed.
    pub(super) fn task(&self) -> Option<Task> {
        let jobs: Vec<_> = self.unchanged().cloned().collect();
        (!jobs.is_empty()).then(|| Task {
            deed: self.deed,
            jobs,
            names: self.names(),
        })
    }

    /// Takes what came of it, and adds what was not acted on.
    pub(super) fn end(&mut self, mut stage: Stage) {
        if let Stage::Done(_, problems) = &mut stage {
            let changed = self.jobs.iter().filter(|(_, has_changed)| *has_changed);
            let told = |(entry, _): &_| problem(entry, &chain(&BoardError::Changed));
            problems.extend(changed.map(told));
        }
        self.stage = stage;
    }

    /// Notes that something happened to a job.
    pub(super) fn heed(&mut self, key: &JobKey) {
        if self.stage == Stage::Asking {
            let jobs = self.jobs.iter_mut();
            for (_, has_changed) in jobs.filter(|(entry, _)| entry.key() == key) {
                *has_changed = true;
            }
        }
    }
}

/// What somebody has agreed to.
#[derive(Debug, Clone)]
pub(super) struct Task {
    deed: Deed,
    jobs: Vec<Entry>,
    names: Vec<String>,
}

/// Does it, to each job that is as it was shown; says what came of it.
pub(super) async fn perform(board: &dyn Board, task: &Task, who: &Owner) -> Stage {
    let (_, past) = task.deed.words();
    let remark = Remark::now(past, &who.text(), None);
    let done = match task.deed {
        Deed::Pause => return pause(board, &task.names, remark).await,
        Deed::Retry => retry(board, &task.jobs, &remark).await,
        Deed::Abandon => settle(board, task, Outcome::Abandon(Aftermath::None), remark).await,
        Deed::Trash => settle(board, task, Outcome::Trash(None), remark).await,
        Deed::Consume => settle(board, task, Outcome::Consume, remark).await,
    };
    match done {
        Ok(done) => {
            let jobs = select::count(done.iter().filter(|it| it.is_ok()).count() as u64);
            let notes = done.into_iter().filter_map(|it| it.unwrap_or_else(Some));
            Stage::Done(format!("{past} {jobs}"), notes.collect())
        }
        Err(error) => Stage::Done(
            "it may not have been done: look at the jobs".to_owned(),
            vec![chain(&error)],
        ),
    }
}

/// What came of a job: what is to be noted, or why nothing was done.
type Done = Result<Option<String>, String>;

/// Settles jobs as long as they are as they were seen.
async fn settle(
    board: &dyn Board,
    task: &Task,
    outcome: Outcome,
    remark: Remark,
) -> board::Result<Vec<Done>> {
    let seen: Vec<_> = task.jobs.iter().collect();
    let answers = by_force(board, &seen, &outcome, remark).await?;
    let answers = seen.iter().zip(answers);
    Ok(answers
        .map(|(entry, answer)| match answer {
            Ok(settled) => Ok(settled.forgotten.map(|why| problem(entry, &why))),
            Err(error) => Err(problem(entry, &chain(&error))),
        })
        .collect())
}

/// Has jobs tried again that are held back or in the trash.
async fn retry(board: &dyn Board, jobs: &[Entry], remark: &Remark) -> board::Result<Vec<Done>> {
    let now = Utc::now();
    let judge = |entry: &Entry| match entry.origin() {
        Origin::Here => retry::judge(entry, now, false)
            .err()
            .map(|error| chain(&error)),
        _ => Some("nobody knows of which board it is: `jobboard retry` takes its uuid".to_owned()),
    };
    let refused: Vec<_> = jobs.iter().map(judge).collect();
    let fit = jobs
        .iter()
        .zip(&refused)
        .filter(|(_, refused)| refused.is_none());
    let fit: Vec<_> = fit
        .map(|(entry, _)| retry::again(entry, false, remark))
        .collect();
    let mut answers = board.restore(&fit).await?.into_iter();
    let answers = jobs.iter().zip(refused).map(|(entry, refused)| {
        let why = refused.or_else(|| answers.next()?.err().map(|error| chain(&error)));
        why.map_or(Ok(None), |why| Err(problem(entry, &why)))
    });
    Ok(answers.collect())
}

async fn pause(board: &dyn Board, names: &[String], remark: Remark) -> Stage {
    let mut problems = Vec::new();
    for name in names {
        let pause = Pause {
            names: glob::literal(name),
            until: None,
            remark: remark.clone(),
        };
        if let Err(error) = board.pause(&pause).await {
            problems.push(format!("{name}: {}", chain(&error)));
        }
    }
    let done = match names.len() - problems.len() {
        0 => "nothing is paused".to_owned(),
        _ => "paused; `jobboard resume` ends it".to_owned(),
    };
    Stage::Done(done, problems)
}

fn problem(entry: &Entry, what: &str) -> String {
    match entry {
        Entry::Job(job) => format!("{} {}: {what}", short(&job.uuid), job.name),
        Entry::Malformed(_) => what.to_owned(),
    }
}
