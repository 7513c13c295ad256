//! The server of a simulated board, and the network before it: both fail as a seed decides.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{self, Instant},
};

use super::store::{ClaimLifetime, Store, away};
use crate::{
    board::{BoardError, Result},
    optional::or_never,
    process::simulation::Machine,
};

/// How long a client waits for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// A client may send `MAX_REQUESTS` in this time, and `MAX_PER_CHANGE` more for each change of the board.
const WINDOW: Duration = Duration::from_secs(10);
const MAX_REQUESTS: usize = 150;
const MAX_PER_CHANGE: usize = 8;

/// The present faults of the network and the server, and when each ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveFaults {
    /// The server refuses connections.
    pub(crate) down_until: Option<Instant>,
    /// The server answers with an error.
    pub(crate) refuses_until: Option<(Refusal, Instant)>,
    /// Some requests and replies are lost or late.
    pub(crate) rough_until: Option<Instant>,
    /// Every request and reply takes up to a second.
    pub(crate) slow_until: Option<Instant>,
    /// These clients cannot reach the server.
    pub(crate) cut: BTreeMap<u32, Instant>,
}

/// Why the server refuses requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// It refuses changes for lack of memory.
    OutOfMemory,
    /// It refuses changes, as a replica does.
    ReadOnly,
    /// The rights to change the board are gone.
    ChangesDenied,
    /// All rights are gone.
    Denied,
}

impl Refusal {
    fn error(self, is_change: bool) -> Option<BoardError> {
        if !is_change && !matches!(self, Self::Denied) {
            return None;
        }
        let failed = |why| BoardError::failed("write to", "simulated", why);
        Some(match self {
            Self::OutOfMemory => failed("out of memory"),
            Self::ReadOnly => failed("it is a replica"),
            Self::ChangesDenied | Self::Denied => BoardError::Denied {
                board: "simulated".to_owned(),
                source: "no permission".into(),
            },
        })
    }
}

pub(crate) struct Server {
    machine: Arc<Machine>,
    store: Mutex<Store>,
    faults: Mutex<ActiveFaults>,
    requests: Mutex<BTreeMap<u32, VecDeque<(Instant, &'static str)>>>,
    total: Mutex<u64>,
    last_lost_reply: Mutex<Instant>,
    changed: Notify,
}

fn lasts(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until > Instant::now())
}

impl Server {
    pub(crate) fn start(
        machine: &Arc<Machine>,
        lifetime: ClaimLifetime,
        rate: f64,
        term: Duration,
    ) -> Arc<Self> {
        let server = Arc::new(Self {
            machine: Arc::clone(machine),
            store: Mutex::new(Store::new(Arc::clone(machine), lifetime, rate, term)),
            faults: Mutex::default(),
            requests: Mutex::default(),
            total: Mutex::default(),
            last_lost_reply: Mutex::new(Instant::now()),
            changed: Notify::new(),
        });
        let weak = Arc::downgrade(&server);
        // Claims also expire without a request.
        tokio::spawn(async move {
            while let Some(server) = weak.upgrade() {
                let quiet = server.store.lock().until_next_expiry();
                let sleep = time::sleep(quiet + Duration::from_millis(1));
                tokio::select! {
                    biased;
                    () = server.changed.notified() => {}
                    () = sleep => server.store.lock().expire(),
                }
            }
        });
        server
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.store.lock())
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        let changed = change(&mut self.store.lock());
        self.changed.notify_one();
        changed
    }

    /// Forgets the jobs that have ended, and idle clients.
    pub(crate) fn forget(&self) {
        self.store.lock().forget_ended();
        self.requests.lock().clear();
        (self.faults.lock().cut).retain(|_, until| lasts(Some(*until)));
    }

    pub(crate) fn requests(&self) -> u64 {
        *self.total.lock()
    }

    pub(crate) fn change_faults(&self, change: impl FnOnce(&mut ActiveFaults)) {
        let mut faults = self.faults.lock();
        change(&mut faults);
        let mut store = self.store.lock();
        if lasts(faults.down_until) {
            store.disconnect(None);
        }
        let cut = faults.cut.iter().filter(|(_, until)| lasts(Some(**until)));
        for (&client, _) in cut {
            store.disconnect(Some(client));
        }
    }

    pub(crate) fn last_lost_reply(&self) -> Instant {
        *self.last_lost_reply.lock()
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
        let changes = changes.map_or(0, |since| self.store.lock().changes_since(since));
        if requests.len() > MAX_REQUESTS + MAX_PER_CHANGE * changes {
            let mut kinds = BTreeMap::new();
            for (_, name) in &*requests {
                *kinds.entry(*name).or_insert(0) += 1;
            }
            let text = format!("client {client} in ten seconds: {kinds:?}, {changes} changes");
            self.machine.violate(text);
        }
    }

    fn delivery(&self, client: u32) -> Delivery {
        let faults = self.faults.lock().clone();
        let is_rough = lasts(faults.rough_until);
        let is_cut = faults.cut.get(&client).copied();
        self.machine.with_dice(|dice| {
            let short = (Duration::from_micros(100), Duration::from_millis(5));
            let long = (Duration::from_millis(100), Duration::from_secs(40));
            if lasts(faults.down_until) {
                return match dice.below(3) {
                    0 => Delivery::Lost,
                    _ => Delivery::Refused,
                };
            }
            if lasts(is_cut) {
                return Delivery::Lost;
            }
            if dice.below(250) == 0 {
                return Delivery::Unheard(dice.between(short));
            }
            if lasts(faults.slow_until) {
                let slow = (Duration::from_millis(1), Duration::from_secs(1));
                return Delivery::Answered(dice.between(slow), dice.between(slow));
            }
            match (is_rough, dice.below(100)) {
                (true, 0..20) => Delivery::Lost,
                (true, 20..40) => Delivery::Unheard(dice.between(long)),
                (true, 40..60) => {
                    let slow = (Duration::ZERO, Duration::from_millis(4500));
                    Delivery::Answered(dice.between(short), dice.between(slow))
                }
                _ => Delivery::Answered(dice.between(short), dice.between(short)),
            }
        })
    }

    /// Sends a client's request to the server. The server handles it even if the client stops or dies.
    pub(super) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        client: u32,
        (name, is_change): (&'static str, bool),
        serve: impl FnOnce(&mut Store, u64) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.count(client, name);
        let unheard = || match is_change {
            true => BoardError::Unknown {
                board: "simulated".to_owned(),
                source: "no reply".into(),
            },
            false => away(),
        };
        let (there, back) = match self.delivery(client) {
            Delivery::Refused => {
                time::sleep(Duration::from_millis(1)).await;
                return Err(away());
            }
            Delivery::Lost => {
                time::sleep(REPLY_TIMEOUT).await;
                return Err(unheard());
            }
            Delivery::Answered(there, back) => (there, Some(back)),
            Delivery::Unheard(there) => {
                let machine = &self.machine;
                machine.note(format_args!("no reply to `{name}` of {client}"));
                *self.last_lost_reply.lock() = Instant::now();
                (there, None)
            }
        };
        let (sender, answer) = oneshot::channel();
        let server = Arc::clone(self);
        tokio::spawn(async move {
            time::sleep(there).await;
            if lasts(server.faults.lock().down_until) {
                return;
            }
            let refusal = server.faults.lock().refuses_until;
            let refusal = refusal.filter(|(_, until)| lasts(Some(*until)));
            let refusal = refusal.and_then(|(why, _)| why.error(is_change));
            let mut store = server.store.lock();
            store.expire();
            let session = store.record_contact(client);
            // A server that fails in the middle of a batch does not answer.
            store.batch = match back.is_none() && store.machine.with_dice(|dice| dice.below(2)) == 0
            {
                true => store.machine.with_dice(|dice| dice.below(4) as usize),
                false => usize::MAX,
            };
            let answer = match refusal {
                Some(error) => Err(error),
                None => serve(&mut store, session),
            };
            drop(store);
            server.changed.notify_one();
            let _ = sender.send(answer);
        });
        let answer = async {
            let answer = answer.await.ok()?;
            or_never(back.map(time::sleep)).await;
            Some(answer)
        };
        match time::timeout(REPLY_TIMEOUT, answer).await {
            Ok(Some(answer)) => answer,
            Ok(None) | Err(_) => Err(unheard()),
        }
    }
}

enum Delivery {
    Refused,
    /// The request never arrives.
    Lost,
    /// With the times to the server and back.
    Answered(Duration, Duration),
    /// It arrives after this time, and the reply is lost.
    Unheard(Duration),
}
