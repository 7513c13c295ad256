//! The interface that every job board implements.
//!
//! The backends live in their own directories and know nothing of the command line; only `open` names them.
//! `conformance` tests the contract beyond the signatures.

#[cfg(test)]
#[macro_use]
pub(crate) mod testing;

pub(crate) mod backlog;
pub(crate) mod collect;
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

mod answers;
mod cached_job;
mod capabilities;
mod embedded;
mod own_entry;
mod pages;
mod query;
mod redis;
mod rules;
mod wire;
mod zookeeper;

#[cfg(test)]
mod conformance;

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub(crate) use self::{
    answers::{Health, Posted, Settled},
    capabilities::{Capabilities, PeerOrder, PeerTraits},
    error::{BoardError, chain},
    event::{Event, EventKind, Events, InitialListing, show_entries},
    examine::{Examined, Part},
    ext::BoardExt,
    net::connect::Deadline,
    own_entry::REFRESH,
    query::{Detail, Order, Query, Which},
    reference::{JobRef, uuid_of},
    rules::{ClaimRules, NOT_AHEAD},
    wire::{json::oversized_integer, verify_stored::contradiction},
};
use crate::job::{
    AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey,
    Location, MoveRecord, Pause, Purge, Revision, Settlement,
};

pub(crate) type Result<T, E = BoardError> = std::result::Result<T, E>;

/// A place where jobs are posted, claimed and finished.
///
/// Each change of a job is one atomic step. Of concurrent changes one wins; the others find its result and succeed or
/// fail by it. Answers come in the order of the arguments, and one job's failure affects no other job. An `Err` around
/// a list of results means that the exchange failed. No job is known to have changed; each may have if the error is
/// [`BoardError::Unknown`] or [`BoardError::Failed`].
///
/// A read changes and creates nothing, and a board that does not exist yet is empty. No verb changes the bytes of a
/// malformed record, except that an edit may replace all its details.
#[async_trait]
pub(crate) trait Board: Send + Sync {
    /// Returns the board's URL without secrets; errors repeat it.
    fn url(&self) -> &str;

    /// Returns the same each time, without a connection.
    fn capabilities(&self) -> Capabilities;

    /// Posts jobs in this order, each with a greater number than all before; `Exists` if its uuid is on the board.
    ///
    /// With a claimant, the same step claims the job and counts an attempt. A namesake in the trash stays there.
    ///
    /// A job from another board ([`Draft::former`]) keeps its state and location, and its number if no greater one was
    /// given and the server does not count by itself. A claimant's claim then counts no attempt. The job also exists if
    /// its uuid is in the trash.
    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>>;

    /// Streams the records of a query, each once, with bounded memory; an error ends the stream.
    ///
    /// Records that change meanwhile may be listed or not. Malformed records are ordinary items.
    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>>;

    /// Returns the whole records that each reference could mean, and none if it means no record.
    ///
    /// A few candidates suffice for an ambiguous reference. Sees every change that any client knew of before.
    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>>;

    /// Claims the first `most` of these jobs that are unclaimed, in this order, in as few exchanges as possible.
    ///
    /// Returns a result for each job tried. Jobs after the last one claimed are not tried, nor jobs that would make the
    /// reply too large. One claimant wins a job, with a fence greater than all before. The others, and its owner again,
    /// get `AlreadyClaimed` and change nothing. Other refusals are `NoSuchJob`, `Malformed`, `Unclaimable` for an
    /// unreadable sidecar that the claim needs, and `Delayed`. The results contain the current jobs.
    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>>;

    /// Prepares for [`Term::Lease`](crate::job::Term::Lease) and returns its duration: `wanted`, or the nearest that the
    /// server grants.
    ///
    /// Call this before claiming, since a connection may have to begin again for another duration.
    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        Ok(wanted)
    }

    /// Renews the claims that are still ours, in one exchange, from now on; never revives a lost claim.
    ///
    /// [`BoardError::is_about_the_claim`] means that the claim is lost; after another error it is as it was, or
    /// renewed. A claim with a session lease is only verified. One without a fence belongs to its owner's name and gets
    /// this term; `Unsupported` without expiring claims.
    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>>;

    /// Abandons, consumes or trashes jobs, each if its authority covers the job in this step.
    ///
    /// Otherwise nothing changes: `NotClaimed`, `NotOwner`, or `Changed` for another claim or state than expected. A
    /// malformed record cannot be claimed, so only a forced settlement, or one by the owner of an older claim, acts on
    /// it.
    ///
    /// An abandoned job is unclaimed and keeps its delay unless it gets a new one. A trashed job keeps its stored bytes
    /// and replaces a namesake. A consumed job is gone, and in the history if [`Settlement::job`] is known. The history
    /// never prevents an end: [`Settled::forgotten`] has its error.
    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>>;

    /// Restarts unclaimed or trashed jobs on the board, or edits their postings; see
    /// [`JobChange`](crate::job::JobChange).
    ///
    /// Each revision records an audit entry. A restarted job is unclaimed and ready, keeps its failures and bytes, and
    /// subscribers get an event. An edit changes the posting alone, so a delay stays; readers see all of it or nothing.
    /// Refusals change nothing: `NoSuchJob`, `Exists` for a namesake on the board, `AlreadyClaimed`, and `Changed` if
    /// another client edited the job first. An edit that the record does not allow is `Malformed`. On the board, a
    /// restart of a malformed record is also `Malformed`, one with an unreadable sidecar is `Unclaimable`, and one that
    /// would change nothing is `NotDelayed`.
    async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>>;

    /// Deletes trashed jobs, also malformed ones, and adds them to the history as [`Self::settle`] does.
    async fn purge(&self, jobs: &[Purge]) -> Result<Vec<Result<Settled>>>;

    /// Subscribes; after this returns, no later event is missed.
    ///
    /// Each change by a jobboard has its event, in the order of the changes of its job. A read after an event shows its
    /// effect. The stream ends with an error when the connection breaks.
    async fn events(&self) -> Result<Events<'_>>;

    /// Subscribes as [`Self::events`] does, and yields each unclaimed record once at the start.
    ///
    /// The best come first; if one read serves both, all come in no order.
    async fn events_and_jobs(&self, listing: InitialListing<'_>) -> Result<Events<'_>> {
        let events = self.events().await?;
        show_entries(
            self.entries(Query::unclaimed(Detail::Whole)),
            listing.receive,
        )
        .await?;
        Ok(events)
    }

    /// Registers a conductor until this board closes; its heartbeat follows at least every ten seconds.
    ///
    /// One process has a name at a time; the others get [`BoardError::NameTaken`] until its entry is removed or
    /// expires.
    async fn register(&self, conductor: &Conductor) -> Result<()>;

    /// Renews the heartbeat and replaces the status of the conductor that this board registered, also after its entry
    /// expired. Does nothing without a registration, or if another process has the name now.
    async fn publish(&self, report: &ConductorReport) -> Result<()>;

    /// Returns the registered conductors, and those that ended without notice while their claims may last.
    ///
    /// Reports unreadable entries; [`BoardError::Crowded`] if there are too many conductors to return all.
    async fn registry(&self) -> Result<(Vec<Conductor>, Examined)>;

    /// Returns the conductors of [`Self::registry`].
    async fn conductors(&self) -> Result<Vec<Conductor>> {
        Ok(self.registry().await?.0)
    }

    /// Stores a pause for clients that read [`Self::pauses`]; the last one for the same names wins.
    ///
    /// The board itself still grants claims of paused jobs.
    async fn pause(&self, pause: &Pause) -> Result<()>;

    /// Ends the pause of exactly these names, also an unreadable one; false if there is none.
    ///
    /// The event, if the backend sends one, contains the audit entry.
    async fn resume(&self, names: &str, audit: &AuditEntry) -> Result<bool>;

    /// Returns all pauses, including ended and unreadable ones; see [`Pause::bounded`] for too many.
    async fn pauses(&self) -> Result<Vec<Pause>>;

    /// Records that jobs are about to move to another board; the owner identifies the move.
    async fn begin_move(&self, record: &MoveRecord) -> Result<()>;

    /// Returns the moves begun on this board, and the jobs that they consumed (see [`Settlement::commit`]).
    ///
    /// Sees every record that any client wrote before. Skips unreadable records, and reads at most
    /// [`MAX_RECORDS`](crate::job::MAX_RECORDS).
    async fn moves(&self) -> Result<Vec<MoveRecord>>;

    /// Deletes move records, by owner and job; ignores missing ones.
    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()>;

    /// Returns the board's health by counts alone, without reading jobs.
    async fn health(&self) -> Result<Health>;

    /// Looks for problems in a part of the board; changes nothing. [`Examined::unseen`] lists refused checks. For
    /// [`Part::History`], a refusal is an error.
    async fn examine(&self, part: Part) -> Result<Examined>;

    /// Ends the connection, and with it the registration and claims that are bound to a session; other claims stay.
    ///
    /// Cannot fail: a registration that cannot be removed expires. A later call connects again.
    async fn close(&self);
}
