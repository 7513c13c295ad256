//! What happened to jobs, told by which nodes came and which went.
//!
//! The nodes of one transaction come and go together and in the order of its steps, so that what
//! follows a change tells what it was: a lock that goes right before its job was no claim given
//! up, and a job that leaves the trash as it comes to the board is restored.

use std::collections::{HashMap, VecDeque};

use chrono::Utc;

use crate::{
    board::{Event, EventKind, event::Subject},
    job::{Entry, Fence, Holding, JobKey, Owner, Priority, Rank},
};

/// A node that came or went; with what it held, unless it was gone again when it was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Change {
    JobCame(JobKey, Option<Box<Entry>>),
    JobWent(JobKey),
    LockCame(JobKey, Option<Holding>),
    LockWent(JobKey),
    TrashCame(JobKey),
    TrashWent(JobKey),
    ConductorCame(Owner),
    ConductorWent(Owner),
    /// Somebody wrote to a node that nobody writes to.
    Meddled,
}

impl Change {
    fn job(&self) -> Option<&JobKey> {
        match self {
            Self::JobCame(key, _)
            | Self::JobWent(key)
            | Self::LockCame(key, _)
            | Self::LockWent(key)
            | Self::TrashCame(key)
            | Self::TrashWent(key) => Some(key),
            Self::ConductorCame(_) | Self::ConductorWent(_) | Self::Meddled => None,
        }
    }

    /// Whether it is about the shelf where jobs wait, whose changes come in the order they happened.
    fn is_on_board(&self) -> bool {
        matches!(
            self,
            Self::JobCame(..) | Self::JobWent(_) | Self::LockCame(..) | Self::LockWent(_)
        )
    }
}

/// A job as it was last seen.
#[derive(Debug, Clone)]
struct Known {
    subject: Subject,
    claim: Option<(Option<Owner>, Option<Fence>)>,
}

/// The jobs of a board and of its trash, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct Picture {
    board: HashMap<JobKey, Known>,
    trash: HashMap<JobKey, Known>,
}

impl Picture {
    /// Adds a job as a reader sees it.
    pub(super) fn add_to_board(&mut self, entry: &Entry) {
        self.board.insert(entry.key().clone(), Known::of(entry));
    }

    pub(super) fn add_to_trash(&mut self, entry: &Entry) {
        self.trash.insert(entry.key().clone(), Known::of(entry));
    }

    /// Tells what the first `count` changes mean; those behind them are only looked at.
    ///
    /// What was looked at and has been told is taken out.
    pub(super) fn tell(&mut self, changes: &mut VecDeque<Change>, count: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let mut left = count.min(changes.len());
        while left > 0
            && let Some(change) = changes.pop_front()
        {
            left -= 1;
            let ahead = Ahead {
                changes,
                left: &mut left,
            };
            events.extend(self.tell_one(change, ahead));
        }
        events
    }

    fn tell_one(&mut self, change: Change, mut ahead: Ahead<'_>) -> Option<Event> {
        match change {
            Change::JobCame(key, job) => {
                let is_restored = ahead.take(&Change::TrashWent(key.clone()));
                self.came(key, job, is_restored)
            }
            Change::JobWent(key) => {
                let is_trashed = ahead.take(&Change::TrashCame(key.clone()));
                let known = self.board.remove(&key)?;
                if is_trashed {
                    self.trash.insert(key, known.unclaimed());
                    return Some(known.tell(EventKind::Trashed));
                }
                Some(known.tell(EventKind::Consumed))
            }
            Change::LockCame(key, holding) => {
                let Some(holding) = holding else {
                    // It proved only that nobody held the job; or was a claim that nobody saw.
                    let was_proof = ahead.next_is(&Change::JobWent(key.clone()));
                    let is_known = self.board.contains_key(&key);
                    return (is_known && !was_proof).then(resync);
                };
                let known = self.board.get_mut(&key)?;
                let claim = Some((holding.owner, holding.fence));
                if known.claim == claim {
                    return None;
                }
                known.claim = claim;
                Some(known.tell(EventKind::Claimed))
            }
            Change::LockWent(key) => {
                if ahead.next_is(&Change::JobWent(key.clone())) {
                    return None;
                }
                let known = self.board.get_mut(&key)?;
                known.claim.as_ref()?;
                let told = known.tell(EventKind::Abandoned);
                known.claim = None;
                Some(told)
            }
            Change::TrashCame(key) => {
                // It belongs to the job that leaves the board for it, and waits until that is told.
                if ahead.has(&Change::JobWent(key.clone())) {
                    ahead.changes.push_back(Change::TrashCame(key));
                }
                None
            }
            Change::TrashWent(key) => {
                if let Some(job) = ahead.take_job_that_came(&key) {
                    return self.came(key, job, true);
                }
                Some(self.trash.remove(&key)?.tell(EventKind::Purged))
            }
            Change::ConductorCame(name) => Some(about(EventKind::ConductorJoined, name)),
            Change::ConductorWent(name) => Some(about(EventKind::ConductorLeft, name)),
            Change::Meddled => Some(resync()),
        }
    }

    fn came(&mut self, key: JobKey, found: Option<Box<Entry>>, is_restored: bool) -> Option<Event> {
        if self.board.contains_key(&key) {
            return None;
        }
        let from_trash = self.trash.remove(&key).filter(|_| is_restored);
        let known = match (found, from_trash) {
            (Some(entry), _) => Known::of(&entry).unclaimed(),
            (None, Some(known)) => known,
            (None, None) => return Some(resync()),
        };
        let kind = match is_restored {
            true => EventKind::Restored,
            false => EventKind::Posted,
        };
        let event = known.tell(kind);
        self.board.insert(key, known);
        Some(event)
    }
}

/// The changes behind the one that is being told.
struct Ahead<'a> {
    changes: &'a mut VecDeque<Change>,
    /// How many of them are still to be told.
    left: &'a mut usize,
}

impl Ahead<'_> {
    /// Whether this is what happens next to the job, as far as the board itself goes.
    fn next_is(&self, wanted: &Change) -> bool {
        let mut next = self.changes.iter();
        next.find(|change| change.is_on_board() && change.job() == wanted.job()) == Some(wanted)
    }

    fn has(&self, wanted: &Change) -> bool {
        self.changes.contains(wanted)
    }

    /// Takes a change out, if it is there.
    fn take(&mut self, wanted: &Change) -> bool {
        let found = self.changes.iter().position(|change| change == wanted);
        found.and_then(|at| self.remove(at)).is_some()
    }

    fn take_job_that_came(&mut self, wanted: &JobKey) -> Option<Option<Box<Entry>>> {
        let came = |change: &Change| matches!(change, Change::JobCame(key, _) if key == wanted);
        let at = self.changes.iter().position(came)?;
        match self.remove(at) {
            Some(Change::JobCame(_, found)) => Some(found),
            _ => None,
        }
    }

    fn remove(&mut self, at: usize) -> Option<Change> {
        if at < *self.left {
            *self.left -= 1;
        }
        self.changes.remove(at)
    }
}

impl Known {
    fn of(entry: &Entry) -> Self {
        let subject = match entry {
            Entry::Job(job) => Subject {
                key: job.key.clone(),
                uuid: job.uuid.clone(),
                name: job.name.clone(),
                sequence: job.sequence,
                rank: job.rank(),
                not_before: job.history.not_before,
            },
            Entry::Malformed(record) => Subject {
                key: record.key.clone(),
                uuid: String::new(),
                name: String::new(),
                sequence: super::paths::number_of(&record.key),
                rank: Rank::new(Priority::default(), None),
                not_before: None,
            },
        };
        let holding = entry.holding();
        Self {
            subject,
            claim: holding.map(|holding| (holding.owner.clone(), holding.fence.clone())),
        }
    }

    fn unclaimed(&self) -> Self {
        Self {
            subject: self.subject.clone(),
            claim: None,
        }
    }

    fn tell(&self, kind: EventKind) -> Event {
        let (owner, fence) = self.claim.clone().unwrap_or_default();
        Event {
            kind,
            time: Utc::now(),
            subject: Some(self.subject.clone()),
            owner,
            fence,
        }
    }
}

fn about(kind: EventKind, conductor: Owner) -> Event {
    Event {
        owner: Some(conductor),
        ..plain(kind)
    }
}

/// Says that something may have been missed.
pub(super) fn resync() -> Event {
    plain(EventKind::Resync)
}

fn plain(kind: EventKind) -> Event {
    Event {
        kind,
        time: Utc::now(),
        subject: None,
        owner: None,
        fence: None,
    }
}

#[cfg(test)]
mod tests;
