//! The model: what a job is, who holds it, and what becomes of it.

mod claim;
mod conductor;
mod details;
mod edit;
mod former;
mod history;
mod key;
mod moves;
pub(crate) mod octavia;
mod past;
mod pause;
mod record;
mod settlement;
mod state;
#[cfg(test)]
mod testing;

use std::{borrow::Cow, cmp::Reverse};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

pub(crate) use self::{
    claim::{Claim, Claimant, Claimed, Fence, Holding, Lease, Owner, Term},
    conductor::{
        Conductor, Counters, Course, LeftAlone, MOST_HANDLERS, MOST_RUNS, Run, Takes, Told,
        Unsettled,
    },
    details::Details,
    edit::Edit,
    former::Former,
    history::{Failure, History, LONGEST, Said, shortened},
    key::{JobKey, usual},
    moves::{MOST_RECORDS, MOVER, MoveRecord, Stage},
    past::{Departure, End, HISTORY, Identity, Remark},
    pause::{MOST_PAUSES, Pause, Pauses},
    record::{LONGEST_RECORD, from_json},
    settlement::{Aftermath, Authority, Outcome, Purge, Restore, Settlement, Witness},
    state::{Priority, State},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shelf {
    /// Where jobs wait to be claimed and stay until they are finished.
    Board,
    /// Where jobs are kept that were given up.
    Trash,
    /// What is remembered of jobs that left the board.
    Past,
}

/// Which board a trashed record is of, where several share a trash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The board on which it was looked for; so is whatever is not in the trash.
    #[default]
    Here,
    /// A peer has trashed it, and left no word of where.
    Unknown,
    /// The board at this path.
    Beside(String),
}

/// A logbook that a TaskFlow job refers to; the board stores the reference, never the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) name: String,
    pub(crate) uuid: String,
}

/// A job, as one look at the board showed it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) key: JobKey,
    /// As the posting states it; a peer may have written any text.
    pub(crate) uuid: String,
    /// Its uuid leads to another record, or to several: only its key means it.
    pub(crate) is_misnamed: bool,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) sequence: Option<i64>,
    pub(crate) created_on: Option<DateTime<Utc>>,
    pub(crate) last_modified: Option<DateTime<Utc>>,
    pub(crate) holding: Option<Holding>,
    /// Nobody holds it, and yet nobody can claim it.
    pub(crate) is_blocked: bool,
    /// What is kept beside it cannot be read, or not all of it: `problem` says why.
    pub(crate) is_unfit: bool,
    /// We may not read all of it, so that what is missing says nothing.
    pub(crate) is_denied: bool,
    /// Its posting, if that was asked for; of one that is too large to be read, the beginning in any case.
    pub(crate) raw: Vec<u8>,
    /// Set for a job in the trash, where known.
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    /// Set for a job of the past.
    pub(crate) ended: Option<End>,
    pub(crate) shelf: Shelf,
    pub(crate) origin: Origin,
    pub(crate) book: Option<Book>,
    /// `None` if the query did not ask for it.
    pub(crate) details: Option<Details>,
    pub(crate) history: History,
    /// The bytes that its posting takes on the board.
    pub(crate) size: u64,
    /// What is wrong with the record, though it can be read.
    pub(crate) problem: Option<String>,
}

impl Job {
    /// Makes a job on a board that nobody has, of which nothing more is known.
    pub(crate) fn new(key: JobKey, uuid: String, name: String) -> Self {
        Self {
            key,
            uuid,
            is_misnamed: false,
            name,
            priority: Priority::Normal,
            sequence: None,
            created_on: None,
            last_modified: None,
            holding: None,
            is_blocked: false,
            is_unfit: false,
            is_denied: false,
            raw: Vec::new(),
            trashed_on: None,
            ended: None,
            shelf: Shelf::Board,
            origin: Origin::Here,
            book: None,
            details: None,
            history: History::default(),
            size: 0,
            problem: None,
        }
    }

    pub(crate) fn state(&self) -> State {
        match (self.shelf, &self.holding) {
            (Shelf::Trash, _) => State::Trashed,
            (Shelf::Past, _) => State::Complete,
            (Shelf::Board, Some(_)) => State::Claimed,
            (Shelf::Board, None) => State::Unclaimed,
        }
    }

    /// Whether it may be offered to somebody who did not ask for this very job.
    pub(crate) fn may_be_offered(&self) -> bool {
        !self.is_blocked && !self.is_unfit
    }

    /// Returns a text by which commands find it: the uuid, or `key:` and the key where that is not its own.
    pub(crate) fn reference(&self) -> Cow<'_, str> {
        // A peer may have written any text for a uuid.
        match usual(self.uuid.as_bytes()).is_some() && !self.is_misnamed {
            true => Cow::Borrowed(&self.uuid),
            false => Cow::Owned(format!("key:{}", self.key)),
        }
    }

    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.holding.as_ref()?.owner.as_ref()
    }

    /// Returns since when the job is held, as far as that is known.
    pub(crate) fn held_since(&self) -> Option<DateTime<Utc>> {
        self.holding.as_ref()?.claimed_on.or(self.last_modified)
    }

    /// Whether the record beside the job knows of no claim before this one; the same clock has to have timed both.
    pub(crate) fn is_claimed_first(&self) -> bool {
        let claimed_on = self.holding.as_ref().and_then(|it| it.claimed_on);
        claimed_on.is_some() && claimed_on == self.history.first_claimed_on
    }

    /// Returns the details, which heavy ones are decoded for each time.
    pub(crate) fn details(&self) -> Option<Cow<'_, Value>> {
        self.details.as_ref().map(Details::value)
    }

    /// Returns the place of the job in the ranked order, least first.
    pub(crate) fn rank(&self) -> Rank {
        Rank::new(self.priority, self.sequence)
    }
}

/// The order in which jobs are offered: most urgent first, oldest first among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Rank(Reverse<Priority>, i64);

impl Rank {
    pub(crate) fn new(priority: Priority, sequence: Option<i64>) -> Self {
        // A hand-made posting without a readable number goes behind all that have one.
        Self(Reverse(priority), sequence.unwrap_or(i64::MAX))
    }

    /// Returns how urgent the job is; within one priority the order is that of posting.
    pub(crate) fn priority(self) -> Priority {
        self.0.0
    }
}

/// A record that cannot be read as a job; it stays where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Malformed {
    /// We may not read all of it, so that it may well be sound.
    pub(crate) is_denied: bool,
    pub(crate) key: JobKey,
    pub(crate) problem: String,
    pub(crate) size: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) holding: Option<Holding>,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Job(Box<Job>),
    Malformed(Malformed),
}

impl Entry {
    pub(crate) fn key(&self) -> &JobKey {
        match self {
            Self::Job(job) => &job.key,
            Self::Malformed(record) => &record.key,
        }
    }

    pub(crate) fn state(&self) -> State {
        match self {
            Self::Job(job) => job.state(),
            Self::Malformed(_) => State::Malformed,
        }
    }

    /// Returns the claim on it, whether or not the rest of it can be read.
    pub(crate) fn holding(&self) -> Option<&Holding> {
        match self {
            Self::Job(job) => job.holding.as_ref(),
            Self::Malformed(record) => record.holding.as_ref(),
        }
    }

    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Job(job) => &job.origin,
            Self::Malformed(record) => &record.origin,
        }
    }

    pub(crate) fn is_owned_by(&self, owner: &Owner) -> bool {
        let holder = self.holding().and_then(|holding| holding.owner.as_ref());
        holder == Some(owner)
    }

    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Job(job) => Some(job),
            Self::Malformed(_) => None,
        }
    }

    pub(crate) fn reference(&self) -> Cow<'_, str> {
        match self {
            Self::Job(job) => job.reference(),
            Self::Malformed(record) => Cow::Owned(format!("key:{}", record.key)),
        }
    }

    /// Returns what people call it: its name, or its key if it cannot be read.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Job(job) => Cow::Borrowed(&job.name),
            Self::Malformed(record) => record.key.text(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) uuid: Uuid,
    /// Whether somebody else may have chosen the same uuid, so that it must be checked everywhere.
    pub(crate) chosen: bool,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) book: Option<Book>,
    /// A JSON object; of a job that was on a board before, whatever it was there.
    pub(crate) details: Details,
    /// What it was on the board that it comes from; none, for a new job.
    pub(crate) former: Option<Box<Former>>,
}
