//! The data model: jobs, their owners and their outcomes.

mod attempts;
mod claim;
mod conductor;
mod details;
mod draft;
mod ended;
mod fields;
mod key;
mod moves;
pub(crate) mod octavia;
mod pause;
mod settlement;

use std::{borrow::Cow, cmp::Reverse};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::named;

pub(crate) use self::{
    attempts::{
        Attempts, AuditEntry, CapturedOutput, Failure, MAX_RECORD_BYTES, MAX_TEXT_BYTES, RELEASED,
        cut, from_json, shorten_texts, shortened, sortable_time,
    },
    claim::{
        Claim, ClaimEnd, Claimant, Claimed, Fence, Holding, MAX_BRIEF, MOVER, Owner, Term, brief,
    },
    conductor::{
        Conductor, ConductorReport, Counters, Course, MAX_HANDLERS, MAX_RUNS, PublishedCommand,
        PublishedPolicy, Run, SkippedReason, Unsettled,
    },
    details::{Decode, Details},
    draft::{Draft, Edit, Former},
    ended::{End, HISTORY, Identity, Outcome},
    fields::{FieldKind, FieldSource, FieldValue, JobField},
    key::{JobKey, standard_uuid},
    moves::{MAX_RECORDS, MoveRecord, Stage},
    pause::{MAX_PAUSES, Pause, Pauses},
    settlement::{
        Aftermath, Authority, Decision, ExpectedState, JobChange, Purge, Revision, Settlement,
    },
};

named! {
    #[derive(
        Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
    )]
    pub(crate) enum Priority ("priority", str::eq_ignore_ascii_case) {
        VeryHigh = 4 => "VERY_HIGH",
        High = 3 => "HIGH",
        #[default]
        Normal = 2 => "NORMAL",
        Low = 1 => "LOW",
        VeryLow = 0 => "VERY_LOW",
    }
}

named! {
    /// What a job is doing, as TaskFlow names it, and the two states that only we tell apart.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub(crate) enum State ("state", str::eq_ignore_ascii_case) {
        Unclaimed => "UNCLAIMED",
        Claimed => "CLAIMED",
        /// Gone from the board: consumed, or never there.
        Complete => "COMPLETE",
        Trashed => "TRASHED",
        /// There is a record, but it cannot be read.
        Malformed => "MALFORMED",
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Location {
    #[default]
    Board,
    Trash,
    /// The history: jobs that left the board.
    History,
}

impl Location {
    /// The locations of jobs that have not ended.
    pub(crate) const LIVE: [Self; 2] = [Self::Board, Self::Trash];
}

/// The board of a trashed record, where several boards share a trash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The board that was searched. Every job outside the trash has this origin.
    #[default]
    Here,
    /// A peer trashed the job and recorded no origin.
    Unknown,
    /// The board at this path.
    Beside(String),
}

/// A logbook that a TaskFlow job refers to. The board stores only the reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) name: String,
    pub(crate) uuid: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) key: JobKey,
    /// The text of the posting: peers may write any text here.
    pub(crate) uuid: String,
    /// Only the key identifies this record: on Redis it is stored under another field than its uuid, on ZooKeeper
    /// another record has the same uuid.
    pub(crate) is_misnamed: bool,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) sequence: Option<i64>,
    pub(crate) created_on: Option<DateTime<Utc>>,
    pub(crate) last_modified: Option<DateTime<Utc>>,
    pub(crate) holding: Option<Holding>,
    /// The job has no owner, and yet no client can claim it.
    pub(crate) is_blocked: bool,
    /// The sidecar is unreadable, at least in part: `problem` gives the reason.
    pub(crate) is_unfit: bool,
    /// The server denies read access to a part of the job, so missing parts prove nothing.
    pub(crate) is_denied: bool,
    /// The posting, if the query asked for it. An oversized posting is always there, cut.
    pub(crate) raw: Vec<u8>,
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    pub(crate) ended: Option<End>,
    pub(crate) location: Location,
    pub(crate) origin: Origin,
    pub(crate) book: Option<Book>,
    pub(crate) details: Option<Details>,
    pub(crate) attempts: Attempts,
    pub(crate) size: u64,
    pub(crate) problem: Option<String>,
    /// Long texts and the details are missing; see [`Entry::cut`].
    pub(crate) is_cut: bool,
}

impl Job {
    pub(crate) fn new(key: JobKey, uuid: String, name: String) -> Self {
        Self {
            key,
            uuid,
            name,
            ..Self::default()
        }
    }

    fn text_bytes(&self) -> usize {
        let book = self.book.iter().map(|it| it.name.len() + it.uuid.len());
        let details = self.details.iter().map(|_| self.size as usize);
        let failures = self.attempts.failures.iter();
        let failures = failures.flat_map(|it| [&it.reason, &it.stdout, &it.stderr, &it.conductor]);
        let failures = failures.map(String::len);
        let problem = self.problem.iter().map(String::len);
        let more: usize = book.chain(details).chain(failures).chain(problem).sum();
        self.uuid.len() + self.name.len() + self.raw.len() + more
    }

    fn cut(&mut self) {
        let cut = |text: &mut String| {
            if let Cow::Owned(short) = brief(text) {
                *text = short;
            }
        };
        self.is_cut = true;
        cut(&mut self.uuid);
        cut(&mut self.name);
        if let Some(book) = &mut self.book {
            cut(&mut book.name);
            cut(&mut book.uuid);
        }
        (self.details, self.raw) = (None, Vec::new());
        self.problem.as_mut().map(cut);
        for failure in &mut self.attempts.failures {
            cut(&mut failure.reason);
            cut(&mut failure.stdout);
            cut(&mut failure.stderr);
            cut(&mut failure.conductor);
        }
    }

    /// Returns its name for groups and caches, which may hold hundreds of thousands.
    pub(crate) fn brief_name(&self) -> Cow<'_, str> {
        match self.name.len() > MAX_TEXT_BYTES {
            true => brief(&self.name),
            false => Cow::Borrowed(&self.name),
        }
    }

    /// Whether only a handler could run it.
    pub(crate) fn has_no_command(&self) -> bool {
        let details = self.details.as_ref();
        self.book.is_none() && details.is_some_and(|it| it.get("command").is_none())
    }

    pub(crate) fn state(&self) -> State {
        match (self.location, &self.holding) {
            (Location::Trash, _) => State::Trashed,
            (Location::History, _) => State::Complete,
            (Location::Board, Some(_)) => State::Claimed,
            (Location::Board, None) => State::Unclaimed,
        }
    }

    /// Whether the job may be offered to a client that did not ask for it by name.
    pub(crate) fn may_be_offered(&self) -> bool {
        !self.is_blocked && !self.is_unfit
    }

    /// Returns a reference that commands accept: the uuid, or `key:` and the key if the uuid is ambiguous.
    pub(crate) fn reference(&self) -> Cow<'_, str> {
        // Peers may write any text as the uuid.
        match standard_uuid(self.uuid.as_bytes()).is_some() && !self.is_misnamed {
            true => Cow::Borrowed(&self.uuid),
            false => Cow::Owned(format!("key:{}", self.key)),
        }
    }

    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.holding.as_ref()?.owner.as_ref()
    }

    pub(crate) fn held_since(&self) -> Option<DateTime<Utc>> {
        self.holding.as_ref()?.claimed_on.or(self.last_modified)
    }

    /// Whether the sidecar knows no earlier claim. Both times must come from the same clock.
    pub(crate) fn is_claimed_first(&self) -> bool {
        let claimed_on = self.holding.as_ref().and_then(|it| it.claimed_on);
        claimed_on.is_some() && claimed_on == self.attempts.first_claimed_on
    }

    pub(crate) fn details(&self) -> Option<Cow<'_, Value>> {
        self.details.as_ref().map(Details::value)
    }

    pub(crate) fn rank(&self) -> Rank {
        Rank::new(self.priority, self.sequence)
    }
}

/// The order of claiming: highest priority first, then oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Rank(Reverse<Priority>, i64);

impl Rank {
    pub(crate) fn new(priority: Priority, sequence: Option<i64>) -> Self {
        // A handmade posting without a readable number sorts last.
        Self(Reverse(priority), sequence.unwrap_or(i64::MAX))
    }

    pub(crate) fn priority(self) -> Priority {
        self.0.0
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Malformed {
    /// The server denies read access to a part of the record, which may be valid.
    pub(crate) is_denied: bool,
    pub(crate) key: JobKey,
    pub(crate) problem: String,
    pub(crate) size: u64,
    pub(crate) raw: Vec<u8>,
    pub(crate) holding: Option<Holding>,
    pub(crate) origin: Origin,
    pub(crate) is_cut: bool,
}

impl Malformed {
    pub(crate) fn new(key: JobKey, problem: String) -> Self {
        Self {
            key,
            problem,
            ..Self::default()
        }
    }
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

    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Job(job) => job.size,
            Self::Malformed(record) => record.size,
        }
    }

    pub(crate) fn holding(&self) -> Option<&Holding> {
        match self {
            Self::Job(job) => job.holding.as_ref(),
            Self::Malformed(record) => record.holding.as_ref(),
        }
    }

    /// Returns the approximate memory of its texts, which peers may choose.
    pub(crate) fn text_bytes(&self) -> usize {
        let owner = self.holding().and_then(|it| it.owner.as_ref());
        let owner = owner.map_or(0, |owner| owner.as_bytes().len());
        owner
            + match self {
                Self::Job(job) => job.text_bytes(),
                Self::Malformed(record) => record.raw.len(),
            }
    }

    /// Cuts long texts and drops the details, for places that keep many records.
    pub(crate) fn cut(mut self) -> Self {
        let holding = match &mut self {
            Self::Job(job) => {
                job.cut();
                job.holding.as_mut()
            }
            Self::Malformed(record) => {
                (record.raw, record.is_cut) = (Vec::new(), true);
                record.holding.as_mut()
            }
        };
        if let Some(holding) = holding {
            holding.owner = holding.owner.take().map(Owner::into_brief);
        }
        self
    }

    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Job(job) => job.is_cut,
            Self::Malformed(record) => record.is_cut,
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

    /// Whether the user may not read the record.
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::Job(job) => job.is_denied,
            Self::Malformed(record) => record.is_denied,
        }
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

    /// Returns the name for people, cut to a kilobyte.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Job(job) if job.name.len() > MAX_TEXT_BYTES => shortened(&job.name).into(),
            Self::Job(job) => Cow::Borrowed(&job.name),
            Self::Malformed(record) => shortened(&record.key.text()).into(),
        }
    }
}

#[cfg(test)]
mod testing {
    use super::{Job, JobKey};

    impl Job {
        pub(crate) fn named(name: &str) -> Self {
            Self::new(JobKey::new("k"), "u".to_owned(), name.to_owned())
        }
    }
}
