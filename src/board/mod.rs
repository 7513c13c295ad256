//! The interface that every job board implements.
//!
//! The backends live in their own directories and know nothing of the command line; only `open` names them.
//! `conformance` tests the contract beyond the signatures.

#[cfg(test)]
#[macro_use]
pub(crate) mod testing;

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
pub(crate) mod url;
pub(crate) mod wait;

mod cached_job;
mod embedded;
mod pages;
mod query;
mod redis;
mod registration;
mod rules;
mod wire;
mod zookeeper;

#[cfg(test)]
mod conformance;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub(crate) use self::{
    error::{BoardError, chain},
    event::{Event, EventKind, Events, Onlooker, show_entries},
    examine::{Examined, Part},
    ext::BoardExt,
    query::{Detail, Order, Query, Which},
    reference::{JobRef, uuid_of},
    registration::REFRESH,
    wire::{json::oversized_integer, verify_stored::contradiction},
};
use crate::job::{
    AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, Fence, JobKey,
    MoveRecord, Pause, Purge, Restore, Settlement, Shelf, Term,
};

pub(crate) type Result<T, E = BoardError> = std::result::Result<T, E>;

/// The differences between backends that callers must know; a backend without one has `false` or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether a claim can end at a given time ([`Term::For`]), which `renew` moves.
    pub(crate) has_expiring_claims: bool,
    /// Whether a lease ends one term after the server last heard from the session of its client.
    ///
    /// After a failover this is the contact before the last confirmed one.
    pub(crate) has_session_leases: bool,
    /// Whether [`Board::conductors`] also returns the conductors of TaskFlow itself.
    pub(crate) lists_peer_conductors: bool,
    /// Whether [`Board::find`] looks up a uuid directly. Otherwise it reads the whole board.
    pub(crate) finds_by_uuid: bool,
    /// The order in which TaskFlow's own readers list this kind of board, if they support it.
    pub(crate) peer_order: Option<PeerOrder>,
}

impl Capabilities {
    /// Whether other programs may end jobs there without recording them in the history.
    pub(crate) fn has_peers(self) -> bool {
        self.peer_order.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerOrder {
    NewestOfTheMostUrgent,
    OldestOfTheLeastUrgent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) key: JobKey,
    pub(crate) sequence: i64,
    /// The claim under which the job was posted, if any.
    pub(crate) fence: Option<Fence>,
}

/// How long a job is postponed if it may not be claimed ahead of its turn.
pub(crate) const NOT_AHEAD: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimRules {
    /// False for claims by hand.
    pub(crate) is_attempt: bool,
    /// How many of the claimed jobs start immediately.
    ///
    /// The others wait for their turn. Their claims count as attempts while they last, and permanently once an
    /// attempt has a result. A claim that expires first does not count. To keep the count growing, the job is then
    /// postponed for every claimant.
    pub(crate) at_once: usize,
    /// Whether to skip postponed jobs. False when the job was requested by name.
    pub(crate) respects_not_before: bool,
}

impl ClaimRules {
    /// Claims named jobs by hand, also postponed ones, and counts no attempt.
    pub(crate) const BY_HAND: Self = Self {
        is_attempt: false,
        at_once: usize::MAX,
        respects_not_before: false,
    };

    /// Whether a claim needs the sidecar; a job with an unreadable sidecar is then refused.
    ///
    /// A claim by name that only writes an owner needs none.
    pub(crate) fn need_record(self, term: Term) -> bool {
        self.is_attempt || self.respects_not_before || matches!(term, Term::Kept(_))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Whether a job with the same uuid left the trash.
    pub(crate) replaced_namesake: bool,
    /// Why the history lacks the job.
    pub(crate) forgotten: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) server: String,
    pub(crate) jobs: u64,
    pub(crate) trashed: u64,
    /// Number of other trashed jobs, from boards that share the trash.
    pub(crate) trashed_beside: u64,
    /// Whether a job was ever posted here, as far as the board knows.
    pub(crate) is_used: bool,
    pub(crate) warning: Option<String>,
}

/// A place where jobs are posted, claimed and finished.
///
/// Every mutating call is atomic for each job. An `Err` around a list of results means that the exchange failed. No
/// job is known to have changed; each may have if the error is [`BoardError::Unknown`] or [`BoardError::Failed`].
#[async_trait]
pub(crate) trait Board: Send + Sync {
    /// Returns a display name without secrets.
    fn name(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// Posts new jobs in this order; each is posted whole or gets its own error.
    ///
    /// With a claimant, the same step claims them and counts an attempt. A namesake in the trash is no obstacle.
    ///
    /// A job from another board keeps its state and location; a claimant's claim then counts no attempt. If its uuid
    /// is on the board or in the trash, the job exists.
    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>>;

    /// Streams the records of a query, each once, with bounded memory.
    ///
    /// Malformed records are ordinary items and stay in place. An error ends the stream. Reading changes nothing.
    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>>;

    /// Returns the whole records that each reference could mean.
    ///
    /// A few candidates suffice for an ambiguous reference.
    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>>;

    /// Claims the first `most` of these jobs that are unclaimed, in this order, in as few exchanges as possible.
    ///
    /// Returns a result for each job tried, in order. Jobs after the last one claimed are not tried, nor jobs that
    /// would make the reply too large. Claiming one's own job again is refused and changes nothing. The results
    /// contain the current jobs.
    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>>;

    /// Prepares for leases and returns the lease duration: `wanted`, or the nearest that the server grants.
    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        Ok(wanted)
    }

    /// Renews the claims that are still ours, in one exchange; never revives a lost claim.
    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>>;

    /// Abandons, consumes or trashes jobs, each by its own authority.
    ///
    /// A namesake in the trash is replaced. Only an override acts on a malformed record.
    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>>;

    /// Retries trashed or delayed jobs now and records an audit entry.
    ///
    /// The jobs become unclaimed and ready, and subscribers get events. A job on the board is refused if it is
    /// claimed or not delayed. An edited job stays delayed; readers see the whole edit or none of it.
    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>>;

    /// Deletes trashed jobs for good and adds them to the history.
    async fn purge(&self, jobs: &[Purge]) -> Result<Vec<Result<Settled>>>;

    /// Subscribes; after this returns, no later event is missed.
    async fn events(&self) -> Result<Events<'_>>;

    /// Subscribes as [`Self::events`] does, and yields each unclaimed record once at the start.
    ///
    /// The best come first; if one read serves both, all come in no order.
    async fn events_and_jobs(&self, onlooker: Onlooker<'_>) -> Result<Events<'_>> {
        let events = self.events().await?;
        show_entries(self.entries(Query::unclaimed(Detail::Whole)), onlooker.sees).await?;
        Ok(events)
    }

    /// Registers a conductor until this board closes; its heartbeat follows at least every ten seconds.
    ///
    /// Fails with [`BoardError::NameTaken`] while another process has registered its name.
    async fn register(&self, conductor: &Conductor) -> Result<()>;

    /// Renews the heartbeat and the status of this process; does nothing if it is not registered.
    async fn publish(&self, report: &ConductorReport) -> Result<()>;

    /// Returns the registered conductors, and those that ended without notice while their claims may last.
    async fn conductors(&self) -> Result<Vec<Conductor>>;

    /// Pauses jobs by name for clients that read [`Self::pauses`]; replaces an earlier pause of these names.
    async fn pause(&self, pause: &Pause) -> Result<()>;

    /// Ends the pause of exactly these names; false if there is none.
    ///
    /// The event, if the backend sends one, contains the remark.
    async fn resume(&self, names: &str, remark: &AuditEntry) -> Result<bool>;

    /// Returns all pauses, including ended and unreadable ones.
    async fn pauses(&self) -> Result<Vec<Pause>>;

    /// Records that jobs are about to move to another board; the owner identifies the move.
    async fn begin_move(&self, record: &MoveRecord) -> Result<()>;

    /// Returns the moves begun on this board, and the jobs that they consumed (see [`Settlement::commit`]).
    ///
    /// Reads at most [`MOST_RECORDS`](crate::job::MOST_RECORDS).
    async fn moves(&self) -> Result<Vec<MoveRecord>>;

    /// Deletes move records; ignores missing ones.
    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()>;

    /// Returns the board's health without reading jobs.
    async fn health(&self) -> Result<Health>;

    /// Looks for problems in a part of the board; changes nothing.
    async fn examine(&self, part: Part) -> Result<Examined>;

    /// Tests the right to read and write the history as far as possible without writing.
    async fn check_history(&self) -> Result<()>;

    /// Ends the connection, and with it session-bound registrations and claims.
    async fn close(&self);
}
