//! The ZooKeeper board, in TaskFlow's format.

mod board_session;
mod events;
mod examine;
mod history;
mod link;
mod origin;
mod paths;
mod pauses;
mod read;
mod registry;
mod scratch;
mod strays;
mod write;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{Stream, future::join, stream, stream::BoxStream};
use parking_lot::Mutex;

use self::{
    board_session::{BoardSession, Root},
    history::HistoryTrimmer,
    link::{ZooKeeperClient, nodes::READING, transaction::WRITING},
    paths::{NodeKind, Paths},
    read::look::PageReader,
    registry::{HeldEntry, SWEEP},
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Events, Health, JobRef, PeerOrder, PeerTraits,
    Posted, Query, Result, Settled,
    examine::{Examined, Part},
    pages,
    reference::find_ended,
    url::zookeeper::ZooKeeperUrl,
    wire::posting::Limit,
};
use crate::{
    job::{
        AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey,
        Location, MoveRecord, Pause, Purge, Revision, Settlement, Term,
    },
    secret::Secret,
};

/// How often to retry after another client was faster.
const TRIES: usize = 16;

/// Jobs changed together: few enough that the last one's read is still fresh.
const JOBS_PER_BATCH: usize = 256;

pub(crate) struct ZooKeeper {
    root: Root,
    own_entry: Mutex<Option<HeldEntry>>,
    trimmer: HistoryTrimmer,
}

impl ZooKeeper {
    pub(crate) fn new(
        url: &ZooKeeperUrl,
        password: Option<Secret>,
        op_timeout: Duration,
        history: u32,
    ) -> Self {
        Self {
            root: Root {
                client: Arc::new(ZooKeeperClient::new(url, password, op_timeout)),
                paths: Paths::of(&url.path),
                history,
                limit: Limit::USUAL,
            },
            own_entry: Mutex::default(),
            trimmer: HistoryTrimmer::default(),
        }
    }

    pub(crate) fn with_limit(mut self, limit: Limit) -> Self {
        self.root.limit = limit;
        self
    }
}

#[async_trait]
impl Board for ZooKeeper {
    fn url(&self) -> &str {
        self.root.client.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            lists_peer_conductors: true,
            peers: Some(PeerTraits {
                order: PeerOrder::OldestOfTheLeastUrgent,
                deletes_malformed: false,
            }),
            ..Capabilities::default()
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        self.board_for(claimant).await?.post(drafts, claimant).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.location == Location::History {
            return pages::flatten(self.history());
        }
        let reader = PageReader::new(query);
        let pages = stream::try_unfold(reader, async move |mut reader| {
            let page = reader.next(&self.root.reading().await?).await?;
            Ok(page.map(|page| (page, reader)))
        });
        pages::flatten(pages)
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if location == Location::History {
            return find_ended(self, wanted).await;
        }
        // Another client may have learned of the job from another server.
        let board = self.root.reading().await?;
        let caught_up = board.catch_up();
        // The sync is on its way and the server keeps the order, so the read comes after it.
        let (caught_up, found) = join(caught_up, read::find::find(&board, location, wanted)).await;
        caught_up?;
        found
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let board = self.board_for(Some(by)).await?;
        board.claim(keys, by, most, rules).await
    }

    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        let session = self.root.client.session_for_nodes(READING, Some(wanted));
        Ok(session.await?.timeout())
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        self.root.reading().await?.renew(claims).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let settled = self.root.writing().await?.settle(settlements).await;
        let ends = settlements.iter().filter(|one| one.decision.is_end());
        self.trimmer.trim_sometimes(&self.root, ends.count());
        settled
    }

    async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        self.root.writing().await?.revise(jobs).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        let purged = self.root.writing().await?.purge(purges).await;
        self.trimmer.trim_sometimes(&self.root, purges.len());
        purged
    }

    async fn events(&self) -> Result<Events<'_>> {
        let stream = events::events(self).await?;
        // Events come through another session; this one must catch up with it.
        self.root.reading().await?.catch_up().await?;
        Ok(Events { stream, lack: None })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let name = &conductor.name;
        let is_ours = |held: &HeldEntry| held.entry.conductor.name == *name;
        if self.own_entry.lock().as_ref().is_some_and(is_ours) {
            return Err(BoardError::NameTaken { name: name.clone() });
        }
        let entry = HeldEntry::enter(self.root.clone(), conductor.clone(), SWEEP).await?;
        *self.own_entry.lock() = Some(entry);
        Ok(())
    }

    async fn publish(&self, report: &ConductorReport) -> Result<()> {
        let entry = |held: &HeldEntry| Arc::clone(&held.entry);
        let entry = self.own_entry.lock().as_ref().map(entry);
        match entry {
            Some(entry) => entry.publish(report).await,
            None => Ok(()),
        }
    }

    async fn registry(&self) -> Result<(Vec<Conductor>, Examined)> {
        self.root.reading().await?.registered().await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        self.root.writing().await?.pause(pause).await
    }

    async fn resume(&self, names: &str, _: &AuditEntry) -> Result<bool> {
        self.root.writing().await?.resume(names).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        self.root.reading().await?.pauses().await
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        self.root.writing().await?.begin_move(record).await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        let board = self.root.reading().await?;
        board.catch_up().await?;
        board.moves().await
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        self.root.writing().await?.end_moves(records).await
    }

    async fn health(&self) -> Result<Health> {
        let board = self.root.reading().await?;
        let path = &board.paths.board;
        let (stat, children, (trashed, trashed_by_siblings)) = tokio::try_join!(
            board.session.stat(path),
            board.children(NodeKind::Job),
            board.count_trashed(),
        )?;
        let jobs = children.iter();
        let jobs = jobs.filter_map(|child| board.paths.key_of(Location::Board, child));
        Ok(Health {
            // Its version needs four-letter commands, which operators rightly forbid.
            server: "ZooKeeper".to_owned(),
            jobs: jobs.count() as u64,
            trashed,
            trashed_by_siblings,
            // The trash proves nothing: sibling boards share it.
            is_used: stat.is_some_and(|stat| stat.cversion > 0),
            problem: None,
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        self.root.reading().await?.examine_part(part).await
    }

    async fn close(&self) {
        self.own_entry.lock().take();
        self.trimmer.finish().await;
        self.root.client.close().await;
    }
}

impl ZooKeeper {
    fn history(&self) -> impl Stream<Item = Result<Vec<Entry>>> + Send + '_ {
        stream::try_unfold(None, async move |left| {
            let board = self.root.reading().await?;
            let mut left = match left {
                Some(left) => left,
                None => {
                    board.catch_up().await?;
                    board.latest_ends().await?
                }
            };
            let page = board.history_page(&mut left).await?;
            Ok((!page.is_empty() || !left.is_empty()).then_some((page, Some(left))))
        })
    }

    /// Returns the session for a claim; a lease lasts as long as its session.
    async fn board_for(&self, claimant: Option<&Claimant>) -> Result<BoardSession<'_>> {
        match claimant.map(|by| by.term) {
            Some(Term::Lease(term)) => {
                let session = self.root.client.session_for_nodes(WRITING, Some(term));
                Ok(self.root.with(session.await?))
            }
            Some(Term::Indefinite | Term::For(_)) | None => self.root.writing().await,
        }
    }
}
