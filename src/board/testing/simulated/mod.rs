//! A client of a simulated board.

mod network;
mod store;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use tokio::{sync::mpsc::UnboundedReceiver, time};

use self::store::Delivery;
pub(crate) use self::{
    network::{ActiveFaults, Refusal, Server},
    store::{ClaimLifetime, Store, kind_of},
};
use crate::{
    board::{
        Board, Capabilities, ClaimRules, Detail, Event, EventKind, Events, Examined,
        InitialListing, JobRef, Posted, Query, Result, Settled, show_entries,
    },
    job::{
        AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey,
        Location, Pause, Revision, Settlement,
    },
    process::part,
};

pub(crate) struct SimulatedBoard {
    server: Arc<Server>,
    client: u32,
}

impl SimulatedBoard {
    pub(crate) fn new(server: &Arc<Server>, client: u32) -> Self {
        Self {
            server: Arc::clone(server),
            client,
        }
    }

    /// Keeps the session of this client alive, as a ZooKeeper library does.
    pub(crate) fn keep_session(self: &Arc<Self>, term: Duration) {
        let board = Arc::clone(self);
        tokio::spawn(part(async move {
            loop {
                time::sleep(term / 5).await;
                let _ = board.call(("keep", false), |_, _| Ok(())).await;
            }
        }));
    }

    async fn call<T: Send + 'static>(
        &self,
        request: (&'static str, bool),
        serve: impl FnOnce(&mut Store, u64) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.server.call(self.client, request, serve).await
    }
}

async fn next_delivery(
    mut deliveries: UnboundedReceiver<Delivery>,
) -> Option<(Result<Event>, UnboundedReceiver<Delivery>)> {
    let (at, event) = deliveries.recv().await?;
    time::sleep_until(at).await;
    Some((event, deliveries))
}

#[async_trait]
impl Board for SimulatedBoard {
    fn url(&self) -> &str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        let lifetime = self.server.look(|store| store.lifetime);
        Capabilities {
            has_expiring_claims: lifetime == ClaimLifetime::Expiry,
            finds_by_uuid: true,
            ..Capabilities::default()
        }
    }

    async fn post(&self, drafts: &[Draft], _: Option<&Claimant>) -> Result<Vec<Result<Posted>>> {
        let drafts = drafts.to_vec();
        let serve = move |store: &mut Store, _| {
            let drafts = drafts.iter().take(store.batch);
            Ok(drafts.map(|draft| store.post(draft)).collect())
        };
        self.call(("post", true), serve).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        let entries = self.call(("entries", false), move |store, _| Ok(store.entries(query)));
        let entries = stream::once(entries).map_ok(|all| stream::iter(all.into_iter().map(Ok)));
        entries.try_flatten().boxed()
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        let wanted = wanted.to_vec();
        self.call(("find", false), move |store, _| {
            Ok(store.find(location, &wanted))
        })
        .await
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let (keys, by) = (keys.to_vec(), by.clone());
        let serve =
            move |store: &mut Store, session| Ok(store.claim(session, &keys, &by, most, rules));
        self.call(("claim", true), serve).await
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let claims = claims.to_vec();
        let serve = move |store: &mut Store, session| {
            let claims = claims.iter().take(store.batch);
            Ok(claims.map(|claim| store.renew(session, claim)).collect())
        };
        self.call(("renew", true), serve).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let settlements = settlements.to_vec();
        let serve = move |store: &mut Store, _| {
            let settlements = settlements.iter().take(store.batch);
            Ok(settlements.map(|one| store.settle(one)).collect())
        };
        self.call(("settle", true), serve).await
    }

    async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        let jobs = jobs.to_vec();
        let serve = move |store: &mut Store, _| {
            let jobs = jobs.iter().take(store.batch);
            Ok(jobs.map(|job| store.revise(job)).collect())
        };
        self.call(("revise", true), serve).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        let client = self.client;
        let deliveries = self
            .call(("events", false), move |store, _| {
                Ok(store.subscribe(client))
            })
            .await?;
        Ok(Events {
            stream: stream::unfold(deliveries, next_delivery).boxed(),
            lack: None,
        })
    }

    async fn events_and_jobs(&self, listing: InitialListing<'_>) -> Result<Events<'_>> {
        let events = match planted!(SubscribesAfterListing) {
            true => None,
            false => Some(self.events().await?),
        };
        let query = Query::unclaimed(Detail::Whole);
        show_entries(self.entries(query), listing.receive).await?;
        match events {
            Some(events) => Ok(events),
            None => self.events().await,
        }
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let (client, conductor) = (self.client, conductor.clone());
        let serve = move |store: &mut Store, _| {
            let name = conductor.name.clone();
            store.conductors.insert(name, (client, conductor));
            Ok(())
        };
        self.call(("register", true), serve).await
    }

    async fn publish(&self, _: &ConductorReport) -> Result<()> {
        self.call(("publish", true), |_, _| Ok(())).await
    }

    async fn registry(&self) -> Result<(Vec<Conductor>, Examined)> {
        let serve = |store: &mut Store, _| {
            let conductors = store.conductors.values();
            let conductors = conductors.map(|(_, conductor)| conductor.clone());
            Ok((conductors.collect(), Examined::default()))
        };
        self.call(("conductors", false), serve).await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        let pause = pause.clone();
        let serve = move |store: &mut Store, _| {
            let event = Event {
                names: Some(pause.names.clone()),
                ..Event::now(EventKind::Paused)
            };
            store.pauses.push(pause);
            store.publish(&event);
            Ok(())
        };
        self.call(("pause", true), serve).await
    }

    async fn resume(&self, names: &str, _: &AuditEntry) -> Result<bool> {
        let names = names.to_owned();
        let serve = move |store: &mut Store, _| {
            let before = store.pauses.len();
            store.pauses.retain(|pause| pause.names != names);
            store.publish(&Event {
                names: Some(names),
                ..Event::now(EventKind::Resumed)
            });
            Ok(store.pauses.len() < before)
        };
        self.call(("resume", true), serve).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        self.call(("pauses", false), |store, _| Ok(store.pauses.clone()))
            .await
    }

    async fn close(&self) {}

    unasked! {
        purge begin_move moves end_moves health examine
    }
}
