//! The model: what a job is, who holds it, and what becomes of it.

use std::{borrow::Cow, cmp::Reverse, fmt, str::FromStr, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;
use uuid::Uuid;

/// Points at one record of a board; opaque, and different for each kind of board.
///
/// It is the record's own name, which need not be the uuid that its posting states.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct JobKey(String);

impl JobKey {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which part of a board a record is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shelf {
    /// Where jobs wait to be claimed and stay until they are finished.
    Board,
    /// Where jobs are kept that were given up.
    Trash,
}

/// The name under which a claim is held.
///
/// Bytes, because peers compare names by bytes and may have written some that are not text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner(Vec<u8>);

/// Says why a text cannot be the name of an owner.
#[derive(Debug, Error)]
pub(crate) enum InvalidOwner {
    #[error("the name of an owner must not be empty")]
    Empty,
    #[error("the name of an owner must not contain control characters")]
    Control,
}

impl Owner {
    /// Checks a name that we are going to write.
    pub(crate) fn new(name: &str) -> Result<Self, InvalidOwner> {
        if name.is_empty() {
            return Err(InvalidOwner::Empty);
        }
        if name.chars().any(char::is_control) {
            return Err(InvalidOwner::Control);
        }
        Ok(Self(name.as_bytes().to_vec()))
    }

    /// Takes a name as a board has it, whatever it is.
    pub(crate) fn from_stored(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name as text; bytes that are not text become replacement characters.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", self.text())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// How urgent a job is; the greater is the more urgent.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Priority {
    VeryLow,
    Low,
    #[default]
    Normal,
    High,
    VeryHigh,
}

impl Priority {
    pub(crate) const ALL: [Self; 5] = [
        Self::VeryHigh,
        Self::High,
        Self::Normal,
        Self::Low,
        Self::VeryLow,
    ];

    /// Returns the name as it is stored, in upper case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::VeryHigh => "VERY_HIGH",
            Self::High => "HIGH",
            Self::Normal => "NORMAL",
            Self::Low => "LOW",
            Self::VeryLow => "VERY_LOW",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Says which priorities there are, to somebody who named another.
#[derive(Debug, Error)]
#[error("unknown priority `{0}`: it is one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW")]
pub(crate) struct UnknownPriority(String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, UnknownPriority> {
        Self::ALL
            .into_iter()
            .find(|priority| text.eq_ignore_ascii_case(priority.name()))
            .ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}

/// What a job is doing, as TaskFlow names it, and the two states that only we tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    Unclaimed,
    Claimed,
    /// Gone from the board: consumed, or never there.
    Complete,
    Trashed,
    /// There is a record, but it cannot be read.
    Malformed,
}

impl State {
    pub(crate) const ALL: [Self; 5] = [
        Self::Unclaimed,
        Self::Claimed,
        Self::Complete,
        Self::Trashed,
        Self::Malformed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unclaimed => "UNCLAIMED",
            Self::Claimed => "CLAIMED",
            Self::Complete => "COMPLETE",
            Self::Trashed => "TRASHED",
            Self::Malformed => "MALFORMED",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Says which states there are, to somebody who named another.
#[derive(Debug, Error)]
#[error("unknown state `{0}`: it is one of UNCLAIMED, CLAIMED, COMPLETE, TRASHED, MALFORMED")]
pub(crate) struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL
            .into_iter()
            .find(|state| text.eq_ignore_ascii_case(state.name()))
            .ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// A logbook that a TaskFlow job refers to; the board stores the reference, never the book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) name: String,
    pub(crate) uuid: String,
}

/// Numbers the claims of a board: decimal text, greater with every claim.
///
/// Together with the owner it identifies a claim, so that a job lost and won again by the same
/// name is not taken for the same claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fence(pub(crate) String);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What ends a claim if nobody abandons it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Lease {
    /// Nothing: it never lapses by itself.
    None,
    /// Time.
    Timed,
    /// The end of its holder's session.
    #[cfg_attr(not(test), expect(dead_code, reason = "for boards that have sessions"))]
    Session,
}

/// A claim as it was seen on the board, whoever holds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Holding {
    /// `None` if the board has a claim whose owner cannot be read.
    pub(crate) owner: Option<Owner>,
    pub(crate) lease: Lease,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    pub(crate) fence: Option<Fence>,
}

/// How one attempt at a job failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The exit code of the command, if it ended by itself.
    pub(crate) exit_code: Option<i32>,
    /// The number of the signal that ended the command.
    pub(crate) signal: Option<i32>,
    /// What went wrong, in words.
    pub(crate) reason: String,
    /// The end of what the command wrote to its standard error.
    pub(crate) stderr: String,
    pub(crate) conductor: String,
    pub(crate) time: DateTime<Utc>,
}

/// What happened to a job before, which its posting has no place for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) attempts: u32,
    /// How often the job asked to be tried later.
    pub(crate) postponed: u32,
    /// Conductors leave the job alone until then.
    pub(crate) not_before: Option<DateTime<Utc>>,
    /// The last few failures, oldest first.
    pub(crate) failures: Vec<Failure>,
}

impl History {
    /// How many failures are kept of a job.
    pub(crate) const FAILURES: usize = 3;
}

/// A job, as one look at the board showed it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) key: JobKey,
    /// As the posting states it; a peer may have written any text.
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) sequence: Option<i64>,
    pub(crate) created_on: Option<DateTime<Utc>>,
    pub(crate) last_modified: Option<DateTime<Utc>>,
    pub(crate) holding: Option<Holding>,
    /// Set for a job in the trash, where known.
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    pub(crate) shelf: Shelf,
    pub(crate) book: Option<Book>,
    /// `None` if the query did not ask for it.
    pub(crate) details: Option<Value>,
    pub(crate) history: History,
    /// The bytes that its posting takes on the board.
    pub(crate) size: u64,
    /// What is wrong with the record, though it can be read.
    pub(crate) problem: Option<String>,
}

impl Job {
    pub(crate) fn state(&self) -> State {
        match (self.shelf, &self.holding) {
            (Shelf::Trash, _) => State::Trashed,
            (Shelf::Board, Some(_)) => State::Claimed,
            (Shelf::Board, None) => State::Unclaimed,
        }
    }

    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.holding.as_ref()?.owner.as_ref()
    }

    /// Returns since when the job is held, as far as that is known.
    pub(crate) fn held_since(&self) -> Option<DateTime<Utc>> {
        self.holding.as_ref()?.claimed_on.or(self.last_modified)
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
}

/// A record that cannot be read as a job; it stays where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) key: JobKey,
    pub(crate) problem: String,
    pub(crate) size: u64,
    pub(crate) raw: Vec<u8>,
}

/// What a board has at one place.
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

    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Job(job) => Some(job),
            Self::Malformed(_) => None,
        }
    }

    /// Returns what people call it: its name, or its key if it cannot be read.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Job(job) => &job.name,
            Self::Malformed(record) => record.key.as_str(),
        }
    }
}

/// A job that is to be posted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) uuid: Uuid,
    /// Whether somebody else may have chosen the same uuid, so that it must be checked everywhere.
    pub(crate) chosen: bool,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) book: Option<Book>,
    /// A JSON object.
    pub(crate) details: Value,
}

/// How long a claim is to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    /// Until somebody abandons it.
    Indefinite,
    /// This long, and then it lapses.
    For(Duration),
    /// As long as we renew it: this long each time, or as long as our session lives.
    Kept(Duration),
}

/// Who claims, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) owner: Owner,
    pub(crate) term: Term,
}

/// A claim that we hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) key: JobKey,
    pub(crate) owner: Owner,
    /// `None` addresses a claim by its owner's name alone, as claims by hand are.
    pub(crate) fence: Option<Fence>,
    /// How long from each renewal on.
    pub(crate) term: Duration,
}

/// A claim that was just won, and the job as it is now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claimed {
    pub(crate) job: Job,
    pub(crate) fence: Fence,
}

/// What a conductor knows of a job that it gives back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Aftermath {
    /// Nothing: a person gave it back.
    None,
    /// The attempt failed; it counts.
    Failed {
        failure: Failure,
        not_before: Option<DateTime<Utc>>,
    },
    /// The job asked to be tried later; the attempt does not count, the postponement does.
    #[cfg_attr(not(test), expect(dead_code, reason = "for conductors that stay"))]
    Postponed { not_before: DateTime<Utc> },
    /// The conductor had to stop; the attempt does not count.
    Interrupted,
}

/// What is to become of a job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Abandon(Aftermath),
    Consume,
    Trash(Option<Failure>),
}

/// By what right somebody settles a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Authority {
    /// The name of its owner: claims by hand.
    Owner(Owner),
    /// Exactly this claim of this owner: kept leases.
    Claim(Owner, Fence),
    /// None but an operator's word, as long as the board is as the operator saw it.
    Override(Witness),
}

/// What an operator saw of a job when deciding to override its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Witness {
    Unclaimed,
    Claimed {
        /// `None` for a claim whose owner cannot be read.
        owner: Option<Owner>,
        /// `None` if it does not matter which claim of that owner it is.
        fence: Option<Fence>,
    },
}

impl Witness {
    /// Returns what this look at a record bears witness to.
    pub(crate) fn of(entry: &Entry) -> Self {
        match entry.job().and_then(|job| job.holding.as_ref()) {
            None => Self::Unclaimed,
            Some(holding) => Self::Claimed {
                owner: holding.owner.clone(),
                fence: holding.fence.clone(),
            },
        }
    }
}

/// One job to be settled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settlement {
    pub(crate) key: JobKey,
    pub(crate) outcome: Outcome,
    pub(crate) authority: Authority,
}

/// A process that takes jobs off a board and performs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Conductor {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) since: DateTime<Utc>,
    /// The name under which it claims.
    pub(crate) owner: Owner,
}
