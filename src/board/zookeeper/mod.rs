//! The ZooKeeper board: the live board that Python TaskFlow uses.

mod events;
mod examine;
mod link;
mod moves;
mod origin;
mod past;
mod paths;
mod pauses;
mod read;
mod registration;
mod registry;
mod scratch;
mod target;
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
    link::{Client, nodes::READING, session::Session, transaction::WRITING},
    past::Forgetting,
    paths::Paths,
    read::look::Reader,
    registration::{Registration, SWEEP},
    target::Root,
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Detail, Events, Health, JobRef, PeerOrder, Posted,
    Query, Result, Settled,
    examine::{Examined, Part},
    pages,
    url::zookeeper::ZooKeeperUrl,
    wire::past::find as find_past,
};
use crate::{
    job::{
        Claim, Claimant, Claimed, Conductor, Draft, Entry, JobKey, MoveRecord, Pause, Purge,
        Remark, Restore, Settlement, Shelf, Term, Told,
    },
    secret::Secret,
};

/// How often to retry after another client was faster.
const TRIES: usize = 16;

/// Jobs changed together: few enough that the last one's read is still fresh.
const AT_ONCE: usize = 256;

pub(crate) struct ZooKeeper {
    root: Root,
    registration: Mutex<Option<Registration>>,
    forgetting: Forgetting,
}

impl ZooKeeper {
    /// Connects on the first request.
    pub(crate) fn new(
        url: &ZooKeeperUrl,
        password: Option<Secret>,
        op_timeout: Duration,
        history: u32,
    ) -> Self {
        Self {
            root: Root {
                client: Arc::new(Client::new(url, password, op_timeout)),
                paths: Paths::of(&url.path),
                history,
            },
            registration: Mutex::default(),
            forgetting: Forgetting::default(),
        }
    }
}

#[async_trait]
impl Board for ZooKeeper {
    fn name(&self) -> &str {
        self.root.client.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: false,
            peer_order: Some(PeerOrder::OldestOfTheLeastUrgent),
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let session = self.session_for(claimant).await?;
        self.root.target(&session).post(drafts, claimant).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.shelf == Shelf::Past {
            return pages::flatten(self.past());
        }
        let reader = Reader::new(query);
        let pages = stream::try_unfold(reader, async move |mut reader| {
            let session = self.root.client.session(READING).await?;
            let page = reader.next(&session, &self.root.paths).await?;
            Ok(page.map(|page| (page, reader)))
        });
        pages::flatten(pages)
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if shelf == Shelf::Past {
            return find_past(self.entries(Query::all(shelf, Detail::Brief)), wanted).await;
        }
        // Another client may have learned of the job from another server.
        let session = self.root.client.session(READING).await?;
        let caught_up = self.catch_up(&session);
        // The sync is on its way and the server keeps the order, so the read comes after it.
        let found = read::find::find(&session, &self.root.paths, shelf, wanted);
        let (caught_up, found) = join(caught_up, found).await;
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
        let session = self.session_for(Some(by)).await?;
        self.root
            .target(&session)
            .claim(keys, by, most, rules)
            .await
    }

    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        Ok(self
            .root
            .client
            .bearing(READING, Some(wanted))
            .await?
            .timeout())
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let session = self.root.client.session(READING).await?;
        self.root.target(&session).renew(claims).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let session = self.root.client.session(WRITING).await?;
        let settled = self.root.target(&session).settle(settlements).await;
        let ends = settlements.iter().filter(|one| one.outcome.is_end());
        self.forgetting.now_and_then(&self.root, ends.count());
        settled
    }

    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>> {
        let session = self.root.client.session(WRITING).await?;
        self.root.target(&session).restore(jobs).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        let session = self.root.client.session(WRITING).await?;
        let purged = self.root.target(&session).purge(purges).await;
        self.forgetting.now_and_then(&self.root, purges.len());
        purged
    }

    async fn events(&self) -> Result<Events<'_>> {
        let stream = events::events(self).await?;
        // Events come through another session; this one must catch up with it.
        let session = self.root.client.session(READING).await?;
        self.catch_up(&session).await?;
        Ok(Events { stream, lack: None })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let name = &conductor.name;
        if (self.registration.lock().as_ref())
            .is_some_and(|entered| entered.entrant().name() == name)
        {
            return Err(BoardError::NameTaken { name: name.clone() });
        }
        let entered = Registration::enter(self.root.clone(), conductor.clone(), SWEEP).await?;
        *self.registration.lock() = Some(entered);
        Ok(())
    }

    async fn tell(&self, told: &Told) -> Result<()> {
        let entered = self.registration.lock().as_ref().map(Registration::entrant);
        match entered {
            Some(entered) => entered.tell(told).await,
            None => Ok(()),
        }
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        let session = self.root.client.session(READING).await?;
        self.root.target(&session).conductors().await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        let session = self.root.client.session(WRITING).await?;
        self.root.target(&session).pause(pause).await
    }

    async fn resume(&self, names: &str, _: &Remark) -> Result<bool> {
        let session = self.root.client.session(WRITING).await?;
        self.root.target(&session).resume(names).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        let session = self.root.client.session(READING).await?;
        self.root.target(&session).pauses().await
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        let session = self.root.client.session(WRITING).await?;
        self.root.target(&session).begin_move(record).await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        let session = self.root.client.session(READING).await?;
        self.catch_up(&session).await?;
        self.root.target(&session).moves().await
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        let session = self.root.client.session(WRITING).await?;
        self.root.target(&session).end_moves(records).await
    }

    async fn health(&self) -> Result<Health> {
        let session = self.root.client.session(READING).await?;
        let jobs = async {
            let children = link::nodes::children(&session, self.root.paths.board()).await?;
            let jobs = children.iter();
            let jobs = jobs.filter_map(|child| self.root.paths.key_of(Shelf::Board, child));
            Ok::<_, BoardError>(jobs.count() as u64)
        };
        let stat = session.client().check_stat(self.root.paths.board());
        let stat = async { Ok(session.ask(READING, stat).await?) };
        let trash = origin::count(&session, &self.root.paths);
        let (stat, jobs, (trashed, trashed_beside)) = tokio::try_join!(stat, jobs, trash)?;
        let stat = stat.map_err(|error| session.refusal(READING, &error))?;
        Ok(Health {
            // Its version needs four-letter commands, which operators rightly forbid.
            server: "ZooKeeper".to_owned(),
            jobs,
            trashed,
            trashed_beside,
            // The trash proves nothing: sibling boards share it.
            is_used: stat.is_some_and(|stat| stat.cversion > 0),
            warning: None,
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        let session = self.root.client.session(READING).await?;
        self.root.target(&session).look_at(part).await
    }

    async fn try_past(&self) -> Result<()> {
        let session = self.root.client.session(READING).await?;
        self.root.target(&session).try_past().await
    }

    async fn close(&self) {
        self.registration.lock().take();
        self.forgetting.finish().await;
        self.root.client.close().await;
    }
}

impl ZooKeeper {
    fn past(&self) -> impl Stream<Item = Result<Vec<Entry>>> + Send + '_ {
        stream::try_unfold(None, async move |left| {
            let session = self.root.client.session(READING).await?;
            let target = self.root.target(&session);
            let mut left = match left {
                Some(left) => left,
                None => {
                    self.catch_up(&session).await?;
                    target.lately().await?
                }
            };
            let page = target.past(&mut left).await?;
            Ok((!page.is_empty() || !left.is_empty()).then_some((page, Some(left))))
        })
    }

    /// Brings our server up to the state that any server had at the time of the call.
    fn catch_up(&self, session: &Session) -> impl Future<Output = Result<()>> {
        let sync = session.client().sync(self.root.paths.board());
        async move {
            let caught_up = session.ask(READING, sync).await?;
            caught_up.map_err(|error| session.refusal(READING, &error))
        }
    }

    /// Returns the session for a claim; a lease lasts as long as its session.
    async fn session_for(&self, claimant: Option<&Claimant>) -> Result<Session> {
        match claimant.map(|by| by.term) {
            Some(Term::Kept(term)) => Ok(self.root.client.bearing(WRITING, Some(term)).await?),
            Some(Term::Indefinite | Term::For(_)) | None => {
                Ok(self.root.client.session(WRITING).await?)
            }
        }
    }
}
