//! How awaited jobs ended: gone from the board, or in the trash.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::{
    board::{Board, Event, EventKind, JobRef, Result},
    job::{Entry, Job, JobKey, Location},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Trashed,
    /// The history or an event shows its end.
    Gone,
    /// Nothing shows its end: the board may have lost it.
    Vanished,
}

/// An awaited job. Another one may later use its key or its uuid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) key: JobKey,
    pub(crate) uuid: Option<String>,
    pub(crate) sequence: Option<i64>,
    /// When it was posted, if it was read from the board.
    pub(crate) created_on: Option<DateTime<Utc>>,
}

impl Awaited {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            key: entry.key().clone(),
            uuid: entry.job().map(|job| job.uuid.clone()),
            sequence: entry.job().and_then(|job| job.sequence),
            created_on: entry.job().and_then(|job| job.created_on),
        }
    }

    pub(crate) fn is_of(&self, job: &Job) -> bool {
        // A recreated board restarts its numbers, and its history may be older.
        let is_older = job.created_on != self.created_on
            && (job.ended.as_ref().zip(self.created_on))
                .is_some_and(|(ended, created_on)| ended.on < created_on);
        self.is_same(&job.uuid, job.sequence) && !is_older
    }

    /// Whether a job of the same key is this one, as far as known.
    pub(super) fn is_same(&self, uuid: &str, sequence: Option<i64>) -> bool {
        let is_other = |own: &String| !uuid.is_empty() && own != uuid;
        !self.uuid.as_ref().is_some_and(is_other)
            && (self.sequence.is_none() || sequence == self.sequence)
    }
}

#[derive(Default)]
pub(super) struct AwaitedEvents {
    /// The jobs to look up.
    pub(super) named: HashSet<JobKey>,
    pub(super) ends: HashMap<JobKey, Ending>,
    pub(super) is_torn: bool,
}

impl AwaitedEvents {
    pub(super) fn of_all(awaited: &[Awaited]) -> Self {
        Self {
            named: awaited.iter().map(|one| one.key.clone()).collect(),
            ..Self::default()
        }
    }

    /// Whether one of these jobs may have ended by these events.
    pub(super) fn receive(&mut self, events: Vec<Event>, awaited: &[Awaited]) -> bool {
        let awaited: HashMap<_, _> = awaited.iter().map(|one| (&one.key, one)).collect();
        for event in events {
            let Some(subject) = &event.subject else {
                self.is_torn |= event.kind == EventKind::Resync;
                continue;
            };
            let Some(job) = awaited.get(&subject.key) else {
                continue;
            };
            self.named.insert(subject.key.clone());
            let is_it = job.is_same(&subject.uuid, subject.sequence);
            // It may leave the trash before the next read.
            let ending = match event.kind {
                EventKind::Trashed if is_it => Ending::Trashed,
                EventKind::Consumed if is_it => Ending::Gone,
                // The event of its end was missed.
                EventKind::Resync => Ending::Gone,
                _ => continue,
            };
            self.ends.entry(subject.key.clone()).or_insert(ending);
        }
        !self.named.is_empty() || self.is_torn
    }
}

/// Returns which of these jobs have ended, and where to look for them: in the trash or in the history.
pub(super) async fn look_for_endings(
    board: &dyn Board,
    awaited: &[Awaited],
    open: Vec<usize>,
) -> Result<Vec<(usize, Location)>> {
    let gone = absent(board, Location::Board, awaited, open).await?;
    let nowhere = absent(board, Location::Trash, awaited, gone.clone()).await?;
    // It may have been restored between the two reads.
    let ended = absent(board, Location::Board, awaited, gone).await?;
    let ending = |at: usize| match nowhere.contains(&at) {
        true => Location::History,
        false => Location::Trash,
    };
    Ok(ended.into_iter().map(|at| (at, ending(at))).collect())
}

pub(super) async fn absent(
    board: &dyn Board,
    location: Location,
    awaited: &[Awaited],
    some: Vec<usize>,
) -> Result<Vec<usize>> {
    if some.is_empty() {
        return Ok(some);
    }
    let wanted = some.iter().map(|at| JobRef::Key(awaited[*at].key.clone()));
    let wanted: Vec<_> = wanted.collect();
    let found = board.find(location, &wanted).await?;
    let is_it = |at: usize, entry: &Entry| entry.job().is_none_or(|job| awaited[at].is_of(job));
    let is_there = |at: usize, found: &[Entry]| found.iter().any(|entry| is_it(at, entry));
    let absent = (some.into_iter().zip(found)).filter(|(at, found)| !is_there(*at, found));
    Ok(absent.map(|(at, _)| at).collect())
}
