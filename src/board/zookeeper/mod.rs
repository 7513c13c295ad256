//! The ZooKeeper board: the same live board that Python TaskFlow is using.

mod events;
mod link;
mod origin;
mod past;
mod paths;
mod read;
mod registration;
mod registry;
mod write;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{future::join, stream, stream::BoxStream};
use tokio::task::JoinHandle;
use zookeeper_client::{CreateMode, Error};

use self::{
    link::{
        Client,
        nodes::READING,
        session::Session,
        transaction::{Refused, Transaction, WRITING},
    },
    paths::Paths,
    read::{look::Reader, record::Record},
    registration::{Registration, SWEEP},
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Events, Health, JobRef, PeerOrder, Posted, Query,
    Result, Settled,
    net::failure::{self, Failure},
    pages,
    url::zookeeper::ZooKeeperUrl,
    wire::past::find as find_past,
};
use crate::{
    backoff::chance,
    job::{
        Claim, Claimant, Claimed, Conductor, Draft, Entry, JobKey, Purge, Settlement, Shelf, Term,
        Unsettled,
    },
    secret::Secret,
};

/// How often to look again when somebody else was quicker.
const TRIES: usize = 16;

/// How many jobs are changed at once: what was read of the last one shall not be old by then.
const AT_ONCE: usize = 256;

/// After one in so many settlements it is looked for what has been remembered for too long.
const RARELY: f64 = 512.0;

/// How long that is waited for in the end.
const FORGETTING: Duration = Duration::from_secs(1);

/// A board on a ZooKeeper server, or on an ensemble of them.
pub(crate) struct ZooKeeper {
    client: Arc<Client>,
    paths: Paths,
    registration: Mutex<Option<Registration>>,
    /// How many jobs are remembered after they have left the board.
    history: u32,
    /// What forgets those beyond.
    forgetting: Mutex<Option<JoinHandle<()>>>,
}

impl ZooKeeper {
    /// Takes the address of a board; connects when something is asked first.
    pub(crate) fn new(
        url: &ZooKeeperUrl,
        password: Option<Secret>,
        op_timeout: Duration,
        history: u32,
    ) -> Self {
        Self {
            client: Arc::new(Client::new(url, password, op_timeout)),
            paths: Paths::of(&url.path),
            registration: Mutex::default(),
            history,
            forgetting: Mutex::default(),
        }
    }

    fn target<'a>(&'a self, session: &'a Session) -> Target<'a> {
        Target {
            client: &self.client,
            session,
            paths: &self.paths,
            history: self.history,
        }
    }
}

/// The board that is changed, by the session on which it is.
#[derive(Clone, Copy)]
struct Target<'a> {
    client: &'a Client,
    session: &'a Session,
    paths: &'a Paths,
    /// How many jobs are remembered after they have left the board.
    history: u32,
}

impl<'a> Target<'a> {
    fn transaction(self) -> Transaction<'a> {
        Transaction::new(self.session, self.client.acls())
    }

    /// Reads one job again.
    async fn record(self, shelf: Shelf, key: &JobKey) -> Result<Option<Record>> {
        let found = read::look::records(self.session, self.paths, shelf, std::slice::from_ref(key));
        Ok(found.await?.into_iter().flatten().next())
    }

    /// Returns a job that is there, and of which we may know all that decides about it.
    fn require(self, found: Option<&Record>) -> Result<&Record> {
        let record = found.ok_or(BoardError::NoSuchJob)?;
        if !record.is_readable() {
            return Err(self.session.refusal(READING, &Error::NoAuth));
        }
        Ok(record)
    }

    /// Makes the board as TaskFlow makes it, for its readers' sake as well.
    async fn make_board(self) -> Result<()> {
        self.session.ensure_chroot(WRITING).await?;
        self.make_folder(self.paths.board()).await?;
        self.make_folder(&self.paths.folder(Shelf::Trash)).await
    }

    async fn make_folder(self, path: &str) -> Result<()> {
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let made = self.session.client().mkdir(path, &options);
        match self.session.ask(WRITING, made).await? {
            Ok(()) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    /// Says of a request whether it is known to have come to nothing.
    fn unknown(self, failure: Failure) -> BoardError {
        match failure {
            Failure::NotSent(error) => error,
            Failure::Lost(error) => failure::unknown(self.client.name(), error),
        }
    }

    fn refusal(self, refused: Refused) -> BoardError {
        self.session.refusal(WRITING, &refused.error)
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.stop_forgetting();
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ZooKeeper")
            .field(&self.client.name())
            .finish()
    }
}

#[async_trait]
impl Board for ZooKeeper {
    fn name(&self) -> &str {
        self.client.name()
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
        self.target(&session).post(drafts, claimant).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.shelf == Shelf::Past {
            return pages::flatten(stream::once(self.past()));
        }
        let reader = Reader::new(query);
        let pages = stream::try_unfold(reader, async move |mut reader| {
            let session = self.client.session(READING).await?;
            let page = reader.next(&session, &self.paths).await?;
            Ok(page.map(|page| (page, reader)))
        });
        pages::flatten(pages)
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if shelf == Shelf::Past {
            return Ok(find_past(&self.past().await?, wanted));
        }
        // Somebody else's word for what is there may have come by another server than ours.
        let session = self.client.session(READING).await?;
        let caught_up = self.catch_up(&session);
        // It is on its way, and the server keeps the order: what is read comes after it.
        let found = read::find::find(&session, &self.paths, shelf, wanted);
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
        self.target(&session).claim(keys, by, most, rules).await
    }

    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        Ok(self.client.bearing(READING, Some(wanted)).await?.timeout())
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let session = self.client.session(READING).await?;
        self.target(&session).renew(claims).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let session = self.client.session(WRITING).await?;
        let settled = self.target(&session).settle(settlements).await;
        self.forget_now_and_then(settlements);
        settled
    }

    async fn restore(&self, keys: &[JobKey]) -> Result<Vec<Result<()>>> {
        let session = self.client.session(WRITING).await?;
        self.target(&session).restore(keys).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<()>>> {
        let session = self.client.session(WRITING).await?;
        self.target(&session).purge(purges).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        let stream = events::events(self).await?;
        // They come by another session: what it has seen, and will not tell, must be seen here.
        let session = self.client.session(READING).await?;
        self.catch_up(&session).await?;
        Ok(Events { stream, lack: None })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let name = &conductor.name;
        if (self.registration().as_ref()).is_some_and(|entered| entered.name() == name) {
            return Err(BoardError::NameTaken { name: name.clone() });
        }
        let (client, paths) = (Arc::clone(&self.client), self.paths.clone());
        let entered =
            Registration::enter(client, paths, conductor.clone(), (SWEEP, self.history)).await?;
        *self.registration() = Some(entered);
        Ok(())
    }

    async fn tell_unsettled(&self, jobs: &[Unsettled]) -> Result<()> {
        let name = (self.registration().as_ref()).map(|entered| entered.name().to_owned());
        let Some(name) = name else { return Ok(()) };
        let session = self.client.session(WRITING).await?;
        self.target(&session).tell_unsettled(&name, jobs).await
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        let session = self.client.session(READING).await?;
        self.target(&session).conductors().await
    }

    async fn health(&self) -> Result<Health> {
        let session = self.client.session(READING).await?;
        let jobs = async {
            let children = link::nodes::children(&session, self.paths.board()).await?;
            let jobs = children.iter();
            let jobs = jobs.filter_map(|child| self.paths.key_of(Shelf::Board, child));
            Ok::<_, BoardError>(jobs.count() as u64)
        };
        let stat = session.client().check_stat(self.paths.board());
        let stat = async { Ok(session.ask(READING, stat).await?) };
        let trash = origin::count(&session, &self.paths);
        let (stat, jobs, (trashed, trashed_beside)) = tokio::try_join!(stat, jobs, trash)?;
        let stat = stat.map_err(|error| session.refusal(READING, &error))?;
        Ok(Health {
            // Its version it would only tell in words that operators are right to forbid.
            server: "ZooKeeper".to_owned(),
            jobs,
            trashed,
            trashed_beside,
            // The trash tells nothing: boards beside this one share it.
            is_used: stat.is_some_and(|stat| stat.cversion > 0),
            warning: None,
        })
    }

    async fn close(&self) {
        self.registration().take();
        let forgetting = self.forgetting().take();
        if let Some(task) = forgetting {
            // A single settlement is soon over, and yet it may be its turn.
            let _ = tokio::time::timeout(FORGETTING, task).await;
        }
        self.client.close().await;
    }
}

impl ZooKeeper {
    fn registration(&self) -> MutexGuard<'_, Option<Registration>> {
        let locked = self.registration.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    async fn past(&self) -> Result<Vec<Entry>> {
        let session = self.client.session(READING).await?;
        self.catch_up(&session).await?;
        self.target(&session).past().await
    }

    /// Begins to forget what has been remembered for too long, after one of many settlements.
    fn forget_now_and_then(&self, settlements: &[Settlement]) {
        let ended = settlements.iter().filter(|one| one.job.is_some()).count();
        if ended as f64 <= RARELY * chance() {
            return;
        }
        let mut forgetting = self.forgetting();
        if forgetting.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let (client, paths, history) = (Arc::clone(&self.client), self.paths.clone(), self.history);
        *forgetting = Some(tokio::spawn(async move {
            // What cannot be removed now is removed another time.
            if let Ok(session) = client.session(WRITING).await {
                let target = Target {
                    client: &client,
                    session: &session,
                    paths: &paths,
                    history,
                };
                let _ = target.forget().await;
            }
        }));
    }

    fn forgetting(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        let locked = self.forgetting.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_forgetting(&self) {
        if let Some(task) = self.forgetting().take() {
            task.abort();
        }
    }

    /// Has the server to which we are connected know all that any of them knew when we asked, which
    /// is when this is called.
    fn catch_up(&self, session: &Session) -> impl Future<Output = Result<()>> {
        let sync = session.client().sync(self.paths.board());
        async move {
            let caught_up = session.ask(READING, sync).await?;
            caught_up.map_err(|error| session.refusal(READING, &error))
        }
    }

    /// Returns the session on which a claim is made; a kept claim is as old as that becomes.
    async fn session_for(&self, claimant: Option<&Claimant>) -> Result<Session> {
        match claimant.map(|by| by.term) {
            Some(Term::Kept(term)) => Ok(self.client.bearing(WRITING, Some(term)).await?),
            Some(Term::Indefinite | Term::For(_)) | None => {
                Ok(self.client.session(WRITING).await?)
            }
        }
    }
}
