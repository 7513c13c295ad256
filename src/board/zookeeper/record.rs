//! The nodes of a job, made into a job.

use chrono::{DateTime, Utc};

use super::{nodes::Node, paths::number_of};
use crate::{
    board::{
        BoardError, Detail, Result,
        wire::{
            json::{self, Lock},
            posting::Posting,
            side::Side,
        },
    },
    job::{Entry, Fence, Holding, Job, JobKey, Lease, Malformed, Owner, Shelf},
};

/// The nodes of a job, undecoded.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) key: JobKey,
    pub(super) posting: Node,
    pub(super) lock: Option<Node>,
    pub(super) side: Option<Node>,
}

impl Record {
    /// Reads them, as they are on a shelf.
    pub(super) fn read(&self, shelf: Shelf, detail: Detail) -> Entry {
        let (holding, lock_problem) = self.holding();
        match json::decode(&self.posting.data, detail) {
            Ok(posting) => {
                let mut job = self.job(shelf, posting);
                job.holding = holding;
                job.problem = job.problem.or(lock_problem);
                Entry::Job(Box::new(job))
            }
            Err(problem) => Entry::Malformed(Malformed {
                key: self.key.clone(),
                problem: problem.to_string(),
                size: self.posting.data.len() as u64,
                raw: self.posting.data.clone(),
                holding,
            }),
        }
    }

    /// Returns who holds the job; also what is wrong with its lock.
    pub(super) fn holding(&self) -> (Option<Holding>, Option<String>) {
        self.lock.as_ref().map_or((None, None), holding)
    }

    /// Says what keeps an owner from acting on this claim, if anything does.
    pub(super) fn is_claimed_by(&self, owner: &Owner, claim: Option<&Fence>) -> Result<()> {
        let holding = self.holding().0.ok_or(BoardError::NotClaimed)?;
        if holding.owner.as_ref() != Some(owner) {
            return Err(BoardError::NotOwner {
                owner: holding.owner,
                wanted: owner.clone(),
            });
        }
        if claim.is_some() && holding.fence.as_ref() != claim {
            return Err(BoardError::Changed);
        }
        Ok(())
    }

    /// Returns what is kept beside the job; nothing, if it says what we do not understand.
    pub(super) fn side(&self) -> Option<Side> {
        let bytes = self.side.as_ref().map(|node| node.data.as_slice());
        match Side::read(bytes) {
            (side, None) => Some(side),
            (_, Some(_)) => None,
        }
    }

    /// Returns when the job was posted, wherever it has been since.
    pub(super) fn created_on(&self) -> Option<DateTime<Utc>> {
        let moved = self.side().and_then(|side| side.created_on);
        // The server dates the node, which is another one once the job was moved.
        moved.or_else(|| time(self.posting.stat.ctime))
    }

    fn job(&self, shelf: Shelf, posting: Posting) -> Job {
        let bytes = self.side.as_ref().map(|node| node.data.as_slice());
        let (side, side_problem) = Side::read(bytes);
        let stat = &self.posting.stat;
        Job {
            key: self.key.clone(),
            uuid: posting.uuid,
            name: posting.name,
            priority: posting.priority,
            sequence: number_of(&self.key),
            created_on: self.created_on(),
            last_modified: time(stat.mtime),
            holding: None,
            trashed_on: (shelf == Shelf::Trash)
                .then(|| side.trashed_on.or_else(|| time(stat.ctime)))
                .flatten(),
            shelf,
            book: posting.book,
            details: posting.details,
            history: side.history(),
            size: self.posting.data.len() as u64,
            problem: posting.problem.or(side_problem),
        }
    }
}

/// Returns who holds a job by its lock; also what is wrong with that.
pub(super) fn holding(lock: &Node) -> (Option<Holding>, Option<String>) {
    let held_by = |owner| Holding {
        owner,
        lease: match lock.stat.ephemeral_owner {
            0 => Lease::None,
            _ => Lease::Session,
        },
        expires_in: None,
        claimed_on: time(lock.stat.ctime),
        fence: Some(fence(lock)),
    };
    match json::read_lock(&lock.data) {
        Lock::Owned(owner) => (Some(held_by(Some(owner))), None),
        Lock::Vacant(problem) => (None, Some(problem.to_string())),
        Lock::Unreadable(problem) => (Some(held_by(None)), Some(problem.to_string())),
    }
}

/// Tells a claim from every other one: locks are alike but for when they were created.
pub(super) fn fence(lock: &Node) -> Fence {
    Fence(lock.stat.czxid.to_string())
}

fn time(milliseconds: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(milliseconds)
}
