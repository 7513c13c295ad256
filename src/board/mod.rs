//! What a job board is, whatever serves it.
//!
//! The backends live in folders of their own and know nothing of the command line; `open` alone
//! names them. What a board promises beyond its signatures is spelled out in `conformance`.

pub(crate) mod backlog;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod examine;
pub(crate) mod ext;
pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod net;
pub(crate) mod open;
pub(crate) mod reference;
pub(crate) mod scratch;
mod stored;
pub(crate) mod url;
pub(crate) mod wait;

mod embedded;
mod known;
mod pages;
mod redis;
mod registration;
mod wire;
mod zookeeper;

#[cfg(test)]
mod conformance;
#[cfg(test)]
pub(crate) mod testing;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{TryStreamExt, stream::BoxStream};

#[cfg(test)]
pub(crate) use self::stored::misread;
use self::wire::posting::Limit;
pub(crate) use self::{
    error::{BoardError, chain},
    event::{Event, EventKind, Events, Onlooker},
    examine::{Examined, Part},
    ext::BoardExt,
    reference::{JobRef, uuid_of},
    registration::REFRESH,
    stored::contradiction,
    wire::json::oversized_integer,
};
use crate::job::{
    Claim, Claimant, Claimed, Conductor, Draft, Entry, Fence, JobKey, MoveRecord, Pause, Purge,
    Remark, Restore, Settlement, Shelf, Term, Told,
};

pub(crate) type Result<T, E = BoardError> = std::result::Result<T, E>;

/// What kinds of claims a board has; fixed while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether a claim can be given a time after which it lapses.
    pub(crate) has_expiring_claims: bool,
    /// In which order TaskFlow's own readers walk this kind of board, if they use it.
    pub(crate) peer_order: Option<PeerOrder>,
}

impl Capabilities {
    /// Whether others than `jobboard` may end jobs there, of which nothing is remembered.
    pub(crate) fn has_peers(self) -> bool {
        self.peer_order.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerOrder {
    /// Most urgent first, and newest first among equals.
    NewestOfTheMostUrgent,
    /// Least urgent first, and oldest first among equals.
    OldestOfTheLeastUrgent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) shelf: Shelf,
    pub(crate) which: Which,
    pub(crate) order: Order,
    pub(crate) detail: Detail,
}

impl Query {
    pub(crate) fn all(shelf: Shelf, detail: Detail) -> Self {
        Self {
            shelf,
            which: Which::All,
            order: Order::Any,
            detail,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Unclaimed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// As the board has them at hand.
    Any,
    /// By [`Job::rank`](crate::job::Job::rank), records that cannot be read last.
    Rank,
    /// As they were posted, records that cannot be read last.
    Posted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All but the details, which may be long.
    Brief,
    Whole,
    /// Whole, and the posting as it is stored, however large it is.
    Stored,
}

impl Detail {
    pub(crate) fn is_whole(self) -> bool {
        self != Self::Brief
    }

    /// Returns as much of a posting as is wanted of it, beside what is read of it.
    pub(crate) fn raw(self, posting: &[u8], can_be_read: bool) -> Vec<u8> {
        match self {
            Self::Stored => posting.to_vec(),
            Self::Brief | Self::Whole if can_be_read => Vec::new(),
            Self::Brief | Self::Whole => Limit::raw(posting),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) key: JobKey,
    pub(crate) sequence: i64,
    /// The claim under which it was posted, if it was.
    pub(crate) fence: Option<Fence>,
}

/// How long a job is postponed for who would claim it ahead of its turn, and may not.
pub(crate) const NOT_AHEAD: Duration = Duration::from_millis(50);

/// Whether a claim by this process is an attempt at performing the job, and which jobs it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimRules {
    /// Whether the claim counts as an attempt; claims by hand do not.
    pub(crate) is_attempt: bool,
    /// How many of those that are won are begun at once.
    ///
    /// The others wait for their turn: their claims count as attempts while they last, and for
    /// good once something came of them. One that lapses may not have been begun, and does not
    /// count; but then nobody wins the job ahead of its turn again, lest it never counts: it is
    /// postponed for whoever tries.
    pub(crate) at_once: usize,
    /// Whether a job that is postponed is passed over, as when it was not asked for by name.
    pub(crate) respects_not_before: bool,
}

impl ClaimRules {
    /// Claims named jobs by hand: each of them, also a postponed one, and without an attempt.
    pub(crate) const BY_HAND: Self = Self {
        is_attempt: false,
        at_once: usize::MAX,
        respects_not_before: false,
    };

    /// Whether a claim needs the record beside the job, so that a job is refused whose record
    /// cannot be read.
    ///
    /// Whoever asks for a job by name, and only writes a name on it, needs none.
    pub(crate) fn need_record(self, term: Term) -> bool {
        self.is_attempt || self.respects_not_before || matches!(term, Term::Kept(_))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) replaced_namesake: bool,
    /// Why nothing is remembered of it, though it should be.
    pub(crate) forgotten: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    /// The software that serves it, and its version.
    pub(crate) server: String,
    pub(crate) jobs: u64,
    pub(crate) trashed: u64,
    /// How many more are in the trash, of boards that share it.
    pub(crate) trashed_beside: u64,
    /// Whether anything was ever posted here, as far as the board can tell.
    pub(crate) is_used: bool,
    pub(crate) warning: Option<String>,
}

/// A place where jobs are posted, claimed and finished.
///
/// Every mutating call is atomic for each job: it happened whole, or it did not happen. An `Err`
/// around a list of answers means that the exchange failed: for none of the jobs is it known to
/// have happened, and for each it may have if that is [`BoardError::Unknown`] or
/// [`BoardError::Failed`].
#[async_trait]
pub(crate) trait Board: Send + Sync {
    /// Returns how people may call this board, without secrets.
    fn name(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// Puts new jobs on the board, in this order; each is posted whole or answered with its error.
    ///
    /// With a claimant they are posted already claimed, in the same step, and that claim counts
    /// as an attempt. A namesake in the trash is no obstacle.
    ///
    /// One that was on a board before becomes what it was, on its shelf; a claimant's claim counts no
    /// attempt then. Where its uuid is on either shelf, it exists.
    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>>;

    /// Streams the records that a query asks for, each once, with bounded memory.
    ///
    /// A record that cannot be read is an item like any other and stays where it is. An error
    /// ends the stream. Reading changes nothing.
    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>>;

    /// Looks records up, and returns those that each reference could mean, whole.
    ///
    /// Of an ambiguous reference a few candidates suffice.
    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>>;

    /// Claims the first `most` of these jobs that nobody has, in this order, in as few exchanges as can be.
    ///
    /// Answers for each that was tried, in order; those behind the last one won are not tried, nor
    /// those whose answers would make the reply too large.
    /// Claiming one's own job again is refused like anyone else's and changes nothing. The answer
    /// brings the jobs as they are now.
    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>>;

    /// Prepares for claims that are kept, and returns how long each lasts from a renewal on.
    ///
    /// That is as long as `wanted`, or as near to it as the server grants.
    async fn lease_term(&self, wanted: Duration) -> Result<Duration>;

    /// Prolongs, in one exchange, the claims that are still ours; never revives one that is not.
    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>>;

    /// Abandons, consumes or trashes jobs, each by its own authority.
    ///
    /// A namesake in the trash is replaced. Only an override acts on a record that cannot be read.
    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>>;

    /// Has jobs tried now that are in the trash or held back, and keeps who does it and why.
    ///
    /// They are on the board then, unclaimed, and not held back; whoever listens is told. One on the
    /// board is refused if somebody has it, or if nothing holds it back. One that is edited stays held
    /// back; whoever reads it sees all that was edited, or nothing.
    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>>;

    async fn purge(&self, jobs: &[Purge]) -> Result<Vec<Result<Settled>>>;

    /// Listens, and returns what happens from now on; once it has answered, nothing is missed.
    async fn events(&self) -> Result<Events<'_>>;

    /// Listens as [`Self::events`] does, and shows each record once that nobody has as it begins.
    ///
    /// The best come first, or, where one reading serves both, all of them in no order.
    async fn events_and_jobs(&self, onlooker: Onlooker<'_>) -> Result<Events<'_>> {
        let events = self.events().await?;
        let mut entries = self.entries(Query {
            shelf: Shelf::Board,
            which: Which::Unclaimed,
            order: Order::Rank,
            detail: Detail::Whole,
        });
        while let Some(entry) = entries.try_next().await? {
            if (onlooker.sees)(entry).is_break() {
                break;
            }
        }
        drop(entries);
        Ok(events)
    }

    /// Enters a conductor in the registry for as long as this board stays open, and it tells of itself
    /// every ten seconds at least.
    ///
    /// Refused with [`BoardError::NameTaken`] while another process is registered under its name.
    async fn register(&self, conductor: &Conductor) -> Result<()>;

    /// Keeps in the entry of this process what it tells of itself, and that it is alive; nothing, if it has
    /// none.
    async fn tell(&self, told: &Told) -> Result<()>;

    async fn conductors(&self) -> Result<Vec<Conductor>>;

    /// Has jobs of some names left alone by whoever asks [`Self::pauses`]; once more, replaces it.
    async fn pause(&self, pause: &Pause) -> Result<()>;

    /// Ends the pause of just these names; false, if there is none.
    async fn resume(&self, names: &str, remark: &Remark) -> Result<bool>;

    /// Returns all pauses, also those that are over; one that cannot be read is none.
    async fn pauses(&self) -> Result<Vec<Pause>>;

    /// Records that jobs are about to move from this board to another; the owner identifies the move.
    async fn begin_move(&self, record: &MoveRecord) -> Result<()>;

    /// Returns the moves from this board that have begun, and the jobs that were consumed by them: see
    /// [`Settlement::commit`]. Reads [`MOST_RECORDS`](crate::job::MOST_RECORDS) of them.
    async fn moves(&self) -> Result<Vec<MoveRecord>>;

    /// Deletes records of moves; missing ones are ignored.
    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()>;

    /// Asks the board how it is, without reading jobs.
    async fn health(&self) -> Result<Health>;

    /// Looks at a part of the board for what may be the matter with it; changes nothing.
    async fn examine(&self, part: Part) -> Result<Examined>;

    /// Fails as it would to read what is remembered, or to have a job remembered, as far as that can
    /// be told without doing it.
    async fn try_past(&self) -> Result<()>;

    /// Ends the connection; registrations and claims that live with the session end with it.
    async fn close(&self);
}
