//! A board in memory, with a network and clients that fail as a seed decides.

mod server;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};

pub(crate) use self::server::Kind;
use self::server::{Delivery, State, away};
use crate::{
    board::{
        Board, BoardError, Capabilities, ClaimRules, Event, EventKind, Events, Examined, Health,
        JobRef, Part, Posted, Query, Result, Settled,
    },
    job::{
        Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey, MoveRecord,
        Pause, Purge, Remark, Restore, Settlement, Shelf,
    },
    process::simulated::{Machine, part},
};

/// How long a client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Within this time, a client may send so many requests, and more for each change of the board.
const WINDOW: Duration = Duration::from_secs(10);
const MOST_REQUESTS: usize = 150;
const MOST_PER_CHANGE: usize = 8;

/// What the network and the server do to requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weather {
    /// Nothing listens until then.
    pub(crate) down_until: Option<Instant>,
    /// The server answers changes with an error until then.
    pub(crate) refuses_until: Option<Instant>,
    /// Requests and replies get lost, and late, until then.
    pub(crate) rough_until: Option<Instant>,
    /// These clients reach nobody until then.
    pub(crate) cut: BTreeMap<u32, Instant>,
}

pub(crate) struct Server {
    machine: Arc<Machine>,
    state: Mutex<State>,
    weather: Mutex<Weather>,
    requests: Mutex<BTreeMap<u32, VecDeque<(Instant, &'static str)>>>,
    total: Mutex<u64>,
    changed: Notify,
}

fn lasts(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until > Instant::now())
}

impl Server {
    pub(crate) fn start(
        machine: &Arc<Machine>,
        kind: Kind,
        rate: f64,
        term: Duration,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            machine: Arc::clone(machine),
            state: Mutex::new(State::new(Arc::clone(machine), kind, rate, term)),
            weather: Mutex::default(),
            requests: Mutex::default(),
            total: Mutex::default(),
            changed: Notify::new(),
        });
        let weak = Arc::downgrade(&server);
        // Claims end by themselves, if a little late.
        tokio::spawn(async move {
            while let Some(server) = weak.upgrade() {
                let next = server.state.lock().next_end();
                let next = next.unwrap_or(Duration::from_secs(3600));
                let sleep = time::sleep(next + Duration::from_millis(1));
                tokio::select! {
                    biased;
                    () = server.changed.notified() => {}
                    () = sleep => server.state.lock().expire(),
                }
            }
        });
        server
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    pub(crate) fn requests(&self) -> u64 {
        *self.total.lock()
    }

    pub(crate) fn change_weather(&self, change: impl FnOnce(&mut Weather)) {
        let mut weather = self.weather.lock();
        change(&mut weather);
        let mut state = self.state.lock();
        if lasts(weather.down_until) {
            state.disconnect(None);
        }
        let cut = weather.cut.iter().filter(|(_, until)| lasts(Some(**until)));
        for (&client, _) in cut {
            state.disconnect(Some(client));
        }
    }

    fn count(&self, client: u32, name: &'static str) {
        *self.total.lock() += 1;
        let now = Instant::now();
        let mut requests = self.requests.lock();
        let requests = requests.entry(client).or_default();
        requests.push_back((now, name));
        while requests.front().is_some_and(|(at, _)| *at + WINDOW < now) {
            requests.pop_front();
        }
        let changes = now.checked_sub(WINDOW);
        let changes = changes.map_or(0, |since| self.state.lock().changes_since(since));
        if requests.len() > MOST_REQUESTS + MOST_PER_CHANGE * changes {
            let mut kinds = BTreeMap::new();
            for (_, name) in &*requests {
                *kinds.entry(*name).or_insert(0) += 1;
            }
            let text = format!("client {client} in ten seconds: {kinds:?}, {changes} changes");
            self.machine.violate(text);
        }
    }
}

/// What happens to one request.
enum Course {
    Refused,
    /// It never arrives.
    Lost(Duration),
    /// The times to the server and back.
    Answered(Duration, Duration),
    /// It arrives, and the client never learns of it.
    Unheard(Duration),
}

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

    /// Keeps the session of this client alive, as its library does.
    pub(crate) fn keep_session(self: &Arc<Self>, term: Duration) {
        let board = Arc::clone(self);
        tokio::spawn(part(async move {
            loop {
                time::sleep(term / 5).await;
                let _ = board.call(("keep", false), |_, _| Ok(())).await;
            }
        }));
    }

    fn course(&self) -> Course {
        let weather = self.server.weather.lock().clone();
        let is_rough = lasts(weather.rough_until);
        let is_cut = weather.cut.get(&self.client).copied();
        self.server.machine.with_dice(|dice| {
            let short = (Duration::from_micros(100), Duration::from_millis(5));
            let long = (Duration::from_millis(100), Duration::from_secs(40));
            if lasts(weather.down_until) {
                return match dice.below(3) {
                    0 => Course::Lost(PATIENCE),
                    _ => Course::Refused,
                };
            }
            if lasts(is_cut) {
                return Course::Lost(PATIENCE);
            }
            if dice.below(250) == 0 {
                return Course::Unheard(dice.between(short));
            }
            match (is_rough, dice.below(100)) {
                (true, 0..20) => Course::Lost(PATIENCE),
                (true, 20..40) => Course::Unheard(dice.between(long)),
                (true, 40..60) => {
                    let slow = (Duration::ZERO, Duration::from_millis(4500));
                    Course::Answered(dice.between(short), dice.between(slow))
                }
                _ => Course::Answered(dice.between(short), dice.between(short)),
            }
        })
    }

    async fn call<T: Send + 'static>(
        &self,
        (name, is_change): (&'static str, bool),
        serve: impl FnOnce(&mut State, u64) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let server = &self.server;
        server.count(self.client, name);
        let unheard = || match is_change {
            true => BoardError::Unknown {
                board: "simulated".to_owned(),
                source: "no reply".into(),
            },
            false => away(),
        };
        let (there, back) = match self.course() {
            Course::Refused => {
                time::sleep(Duration::from_millis(1)).await;
                return Err(away());
            }
            Course::Lost(patience) => {
                time::sleep(patience).await;
                return Err(unheard());
            }
            Course::Answered(there, back) => (there, Some(back)),
            Course::Unheard(there) => (there, None),
        };
        let (sender, answer) = oneshot::channel();
        let (at, client) = (Arc::clone(server), self.client);
        tokio::spawn(async move {
            time::sleep(there).await;
            if lasts(at.weather.lock().down_until) {
                return;
            }
            let is_refused = is_change && lasts(at.weather.lock().refuses_until);
            let mut state = at.state.lock();
            state.expire();
            let session = state.hear(client);
            let answer = match is_refused {
                true => Err(BoardError::Failed {
                    doing: "write to",
                    board: "simulated".to_owned(),
                    source: "out of memory".into(),
                }),
                false => serve(&mut state, session),
            };
            drop(state);
            at.changed.notify_one();
            let _ = sender.send(answer);
        });
        let answer = async {
            let answer = answer.await.ok()?;
            match back {
                Some(back) => time::sleep(back).await,
                None => std::future::pending().await,
            }
            Some(answer)
        };
        match time::timeout(PATIENCE, answer).await {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) => Err(unheard()),
        }
    }
}

async fn next_delivery(
    mut deliveries: tokio::sync::mpsc::UnboundedReceiver<Delivery>,
) -> Option<(
    Result<Event>,
    tokio::sync::mpsc::UnboundedReceiver<Delivery>,
)> {
    let (at, event) = deliveries.recv().await?;
    time::sleep_until(at).await;
    Some((event, deliveries))
}

#[async_trait]
impl Board for SimulatedBoard {
    fn name(&self) -> &str {
        "simulated"
    }

    fn capabilities(&self) -> Capabilities {
        let kind = self.server.state.lock().kind;
        Capabilities {
            has_expiring_claims: kind == Kind::Expiry,
            peer_order: None,
        }
    }

    async fn post(&self, drafts: &[Draft], _: Option<&Claimant>) -> Result<Vec<Result<Posted>>> {
        let drafts = drafts.to_vec();
        let serve = move |state: &mut State, _| {
            let posted = drafts.iter().map(|draft| state.post(draft));
            Ok(posted.collect())
        };
        self.call(("post", true), serve).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        let entries = self.call(("entries", false), move |state, _| Ok(state.entries(query)));
        let entries = stream::once(entries).map_ok(|all| stream::iter(all.into_iter().map(Ok)));
        entries.try_flatten().boxed()
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        let wanted = wanted.to_vec();
        self.call(("find", false), move |state, _| {
            Ok(state.find(shelf, &wanted))
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
            move |state: &mut State, session| Ok(state.claim(session, &keys, (&by, most, rules)));
        self.call(("claim", true), serve).await
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let claims = claims.to_vec();
        let serve = move |state: &mut State, session| {
            let renewed = claims.iter().map(|claim| state.renew(session, claim));
            Ok(renewed.collect())
        };
        self.call(("renew", true), serve).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let settlements = settlements.to_vec();
        let serve = move |state: &mut State, _| {
            let settled = settlements.iter().map(|one| state.settle(one));
            Ok(settled.collect())
        };
        self.call(("settle", true), serve).await
    }

    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>> {
        let jobs = jobs.to_vec();
        let serve =
            move |state: &mut State, _| Ok(jobs.iter().map(|job| state.restore(job)).collect());
        self.call(("restore", true), serve).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        let client = self.client;
        let deliveries = self
            .call(("events", false), move |state, _| {
                Ok(state.subscribe(client))
            })
            .await?;
        Ok(Events {
            stream: stream::unfold(deliveries, next_delivery).boxed(),
            lack: None,
        })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let (client, conductor) = (self.client, conductor.clone());
        let serve = move |state: &mut State, _| {
            let name = conductor.name.clone();
            state.conductors.insert(name, (client, conductor));
            Ok(())
        };
        self.call(("register", true), serve).await
    }

    async fn publish(&self, _: &ConductorReport) -> Result<()> {
        self.call(("publish", true), |_, _| Ok(())).await
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        let serve = |state: &mut State, _| {
            let conductors = state.conductors.values();
            Ok(conductors.map(|(_, conductor)| conductor.clone()).collect())
        };
        self.call(("conductors", false), serve).await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        let pause = pause.clone();
        let serve = move |state: &mut State, _| {
            let event = Event {
                names: Some(pause.names.clone()),
                ..Event::now(EventKind::Paused)
            };
            state.pauses.push(pause);
            state.publish(&event);
            Ok(())
        };
        self.call(("pause", true), serve).await
    }

    async fn resume(&self, names: &str, _: &Remark) -> Result<bool> {
        let names = names.to_owned();
        let serve = move |state: &mut State, _| {
            let before = state.pauses.len();
            state.pauses.retain(|pause| pause.names != names);
            state.publish(&Event {
                names: Some(names),
                ..Event::now(EventKind::Resumed)
            });
            Ok(state.pauses.len() < before)
        };
        self.call(("resume", true), serve).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        self.call(("pauses", false), |state, _| Ok(state.pauses.clone()))
            .await
    }

    async fn close(&self) {}

    async fn purge(&self, _: &[Purge]) -> Result<Vec<Result<Settled>>> {
        unasked()
    }
    async fn begin_move(&self, _: &MoveRecord) -> Result<()> {
        unasked()
    }
    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        unasked()
    }
    async fn end_moves(&self, _: &[MoveRecord]) -> Result<()> {
        unasked()
    }
    async fn health(&self) -> Result<Health> {
        unasked()
    }
    async fn examine(&self, _: Part) -> Result<Examined> {
        unasked()
    }
    async fn try_past(&self) -> Result<()> {
        unasked()
    }
}

fn unasked() -> ! {
    panic!("no conductor asks for this")
}
