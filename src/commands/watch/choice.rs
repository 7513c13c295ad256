//! Which events are told: by their kind, and by what holds for their job.

use std::collections::HashSet;

use chrono::Utc;

use crate::{
    board::{Board, Event, EventKind, JobRef, event::Subject, filter::Filters},
    job::{Entry, History, Holding, Job, JobKey, Lease, Shelf},
};

/// What somebody wants to be told.
#[derive(Debug)]
pub(super) struct Choice {
    /// Empty for all of them.
    kinds: Vec<EventKind>,
    filters: Filters,
    /// The jobs for which the filters held when they were last looked at, and which are not gone.
    admitted: HashSet<JobKey>,
}

impl Choice {
    pub(super) fn new(kinds: Vec<EventKind>, filters: Filters) -> Self {
        Self {
            kinds,
            filters,
            admitted: HashSet::new(),
        }
    }

    /// Whether an event is to be told; a job that has to be looked at is looked up on the board.
    pub(super) async fn admits(&mut self, board: &dyn Board, event: &Event) -> bool {
        // The job is followed also through what is not told.
        let is_meant = self.filters.is_empty() || self.is_of_such_a_job(board, event).await;
        is_meant && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
    }

    async fn is_of_such_a_job(&mut self, board: &dyn Board, event: &Event) -> bool {
        let Some(subject) = &event.subject else {
            return event.kind == EventKind::Resync;
        };
        let found = look_up(board, subject).await;
        let is_gone = found.is_none();
        let entry = as_left_by(event, subject, found);
        let holds = self.filters.matches(&entry, Utc::now());
        match (is_gone, holds) {
            (false, true) => {
                self.admitted.insert(subject.key.clone());
                true
            }
            (false, false) => {
                self.admitted.remove(&subject.key);
                false
            }
            // What is gone cannot be asked any more.
            (true, holds) => self.admitted.remove(&subject.key) || holds,
        }
    }
}

/// Finds the record of a job, wherever it is by now.
async fn look_up(board: &dyn Board, subject: &Subject) -> Option<Job> {
    let wanted = [JobRef::Key(subject.key.clone())];
    for shelf in [Shelf::Board, Shelf::Trash] {
        // What cannot be asked for now is judged by what is known.
        let found = board.find(shelf, &wanted).await.unwrap_or_default();
        let job = found.into_iter().flatten().find_map(|entry| match entry {
            Entry::Job(job) if subject.sequence.is_none() || job.sequence == subject.sequence => {
                Some(*job)
            }
            _ => None,
        });
        if job.is_some() {
            return job;
        }
    }
    None
}

/// Returns the job as it was right after the event, as far as that is known.
fn as_left_by(event: &Event, subject: &Subject, found: Option<Job>) -> Entry {
    let mut job = found.unwrap_or_else(|| only(subject));
    job.shelf = match event.kind {
        EventKind::Trashed | EventKind::Purged => Shelf::Trash,
        _ => Shelf::Board,
    };
    let is_of_this_claim = job.owner() == event.owner.as_ref();
    match event.kind {
        EventKind::Claimed | EventKind::Extended if !is_of_this_claim => {
            job.holding = Some(held(event));
        }
        EventKind::Claimed | EventKind::Extended => {}
        // Whose job it was is what people ask for.
        EventKind::Consumed | EventKind::Trashed => {
            job.holding = event.owner.is_some().then(|| held(event))
        }
        _ => job.holding = None,
    }
    Entry::Job(Box::new(job))
}

fn held(event: &Event) -> Holding {
    Holding {
        owner: event.owner.clone(),
        lease: Lease::None,
        expires_in: None,
        claimed_on: None,
        fence: event.fence.clone(),
    }
}

/// Returns a job of which no more is known than its event says.
fn only(subject: &Subject) -> Job {
    Job {
        key: subject.key.clone(),
        uuid: subject.uuid.clone(),
        name: subject.name.clone(),
        priority: subject.rank.priority(),
        sequence: subject.sequence,
        created_on: None,
        last_modified: None,
        holding: None,
        is_blocked: false,
        trashed_on: None,
        shelf: Shelf::Board,
        book: None,
        details: None,
        history: History {
            not_before: subject.not_before,
            ..History::default()
        },
        size: 0,
        problem: None,
    }
}
