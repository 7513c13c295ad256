//! The conductors of a board: keys that live on as long as they are refreshed.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redis::{Cmd, Value};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use uuid::Uuid;

use super::{keys::Keys, link::Client};
use crate::{
    board::{
        BoardError, EventKind, Result,
        registration::{LIFE, Registered},
        wire::{as_json, sidecar::text_of},
    },
    job::{Conductor, Owner, Unsettled},
};

const DOING: &str = "register with";

/// An entry of the registry as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    host: String,
    pid: u32,
    since: DateTime<Utc>,
    owner: String,
    /// Tells two processes of the same name apart.
    token: String,
    /// The jobs that it cannot settle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unsettled: Vec<Unsettled>,
}

/// Keeps or removes an entry in one step, by its token.
const REGISTER: &str = include_str!("write/scripts/register.lua");

/// Where somebody is registered, and what is to be stored there.
pub(super) struct Entrant {
    client: Arc<Client>,
    keys: Keys,
    entry: Mutex<Entry>,
}

impl Entrant {
    /// Enters a conductor, unless another one is alive under its name.
    pub(super) async fn enter(
        client: Arc<Client>,
        keys: Keys,
        conductor: &Conductor,
    ) -> Result<Self> {
        let entry = Entry {
            name: conductor.name.clone(),
            host: conductor.host.clone(),
            pid: conductor.pid,
            since: conductor.since,
            owner: conductor.owner.to_string(),
            token: Uuid::new_v4().to_string(),
            unsettled: Vec::new(),
        };
        let entrant = Self {
            client,
            keys,
            entry: Mutex::new(entry),
        };
        if entrant.put().await? {
            return Ok(entrant);
        }
        let name = conductor.name.clone();
        Err(BoardError::NameTaken { name })
    }

    /// Says that a conductor is alive, also after it had seemed not to be; false if the entry is
    /// another one's.
    async fn put(&self) -> Result<bool> {
        let text = as_json(&*self.entry.lock());
        let answer = self.register(&text).await?;
        if answer == "entered" {
            self.publish(EventKind::ConductorJoined).await;
        }
        Ok(answer != "other")
    }

    async fn register(&self, text: &str) -> Result<String> {
        let mut register = Cmd::new();
        {
            let entry = self.entry.lock();
            register
                .arg("EVAL")
                .arg(REGISTER)
                .arg(1)
                .arg(self.keys.conductor(&entry.name))
                .arg(&entry.token)
                .arg(text)
                .arg(LIFE.as_millis().to_string());
        }
        self.client.ask(DOING, &register).await
    }

    async fn publish(&self, kind: EventKind) {
        let name = self.entry.lock().name.clone();
        publish(&self.client, &self.keys, kind, &name).await;
    }
}

#[async_trait]
impl Registered for Entrant {
    fn set_unsettled(&self, jobs: &[Unsettled]) {
        self.entry.lock().unsettled = jobs.to_vec();
    }

    async fn keep(&self) -> Result<()> {
        self.put().await.map(drop)
    }

    async fn remove(&self) -> Result<()> {
        if self.register("").await? == "removed" {
            self.publish(EventKind::ConductorLeft).await;
        }
        Ok(())
    }
}

async fn publish(client: &Client, keys: &Keys, kind: EventKind, name: &str) {
    let time = text_of(Utc::now());
    let owner = ByteBuf::from(name.as_bytes());
    let event = BTreeMap::from([
        ("event", ByteBuf::from(kind.name())),
        ("time", ByteBuf::from(time.as_str())),
        ("owner", owner),
    ]);
    let Ok(message) = rmp_serde::to_vec_named(&[event]) else {
        return;
    };
    let mut publish = Cmd::new();
    publish.arg("PUBLISH").arg(keys.events()).arg(message);
    // Who listens looks at the registry as well; a message is only sooner.
    let _: Result<Value> = client.ask(DOING, &publish).await;
}

/// Returns the conductors that are alive; an entry that cannot be read is none.
pub(super) async fn conductors(client: &Client, keys: &Keys) -> Result<Vec<Conductor>> {
    let mut found: BTreeMap<String, Conductor> = BTreeMap::new();
    let mut cursor = 0_u64;
    loop {
        let mut scan = Cmd::new();
        scan.arg("SCAN")
            .arg(cursor)
            .arg("MATCH")
            .arg(keys.conductors())
            .arg("COUNT")
            .arg(5000);
        let (next, names): (u64, Vec<Vec<u8>>) = client.ask("read", &scan).await?;
        for name in names {
            let mut get = Cmd::new();
            // Where something else than a text stands it answers as if nothing did.
            get.arg("MGET").arg(name);
            let (text,): (Option<Vec<u8>>,) = client.ask("read", &get).await?;
            if let Some(entry) = text.and_then(|text| serde_json::from_slice::<Entry>(&text).ok()) {
                found.insert(entry.name.clone(), entry.into());
            }
        }
        cursor = next;
        if cursor == 0 {
            return Ok(found.into_values().collect());
        }
    }
}

impl From<Entry> for Conductor {
    fn from(entry: Entry) -> Self {
        Self {
            name: entry.name,
            host: entry.host,
            pid: entry.pid,
            since: entry.since,
            owner: Owner::from_stored(entry.owner),
            unsettled: entry.unsettled,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::StreamExt;

    use super::*;
    use crate::board::{
        Board,
        redis::{
            Redis,
            testing::{Mood, Proxy, Server, redis_url},
        },
        wire::posting::Limit,
    };

    fn night() -> Conductor {
        Conductor {
            name: "night".to_owned(),
            host: "here".to_owned(),
            pid: 1,
            since: Utc::now(),
            owner: Owner::new("night").unwrap(),
            unsettled: Vec::new(),
        }
    }

    fn stuck(name: &str) -> Vec<Unsettled> {
        vec![Unsettled {
            uuid: "u".to_owned(),
            name: name.to_owned(),
            reason: "r".to_owned(),
        }]
    }

    async fn shown(board: &Redis) -> Vec<Unsettled> {
        board.conductors().await.unwrap().remove(0).unsettled
    }

    #[tokio::test]
    async fn a_conductor_whose_entry_lapsed_joins_again() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let board = Redis::new(
            &server.url(""),
            None,
            Duration::from_secs(5),
            Limit::USUAL,
            crate::job::HISTORY,
        );
        let mut events = board.events().await.unwrap().stream;
        let mut told = async || {
            let event = tokio::time::timeout(Duration::from_secs(10), events.next());
            event.await.unwrap().unwrap().unwrap().kind
        };
        let client = Arc::clone(&board.client);
        let entrant = Entrant::enter(client, board.keys.clone(), &night()).await;
        let entrant = entrant.unwrap();
        for _ in 0..2 {
            assert_eq!(told().await, EventKind::ConductorJoined);
            assert!(entrant.put().await.unwrap());
            server.run::<()>(&["DEL", "taskflow:conductor.night"]);
            assert_eq!(told().await, EventKind::ConductorLeft);
            assert!(entrant.put().await.unwrap());
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_lost_makes_no_stranger_of_the_entry() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let proxy = Proxy::start(server.port());
        let url = redis_url(&format!("redis://127.0.0.1:{}", proxy.port));
        let board = Redis::new(
            &url,
            None,
            Duration::from_millis(500),
            Limit::USUAL,
            crate::job::HISTORY,
        );
        board.register(&night()).await.unwrap();
        for mood in [Mood::Silent, Mood::HangUp] {
            proxy.set(mood);
            let unheard = board.tell_unsettled(&stuck("first")).await;
            assert!(unheard.is_err(), "{unheard:?}");
            proxy.set(Mood::PassOn);
            board.tell_unsettled(&stuck("second")).await.unwrap();
            assert_eq!(shown(&board).await, stuck("second"));
        }
        board.close().await;
        assert_eq!(
            server.run::<u32>(&["EXISTS", "taskflow:conductor.night"]),
            0
        );
    }

    #[tokio::test]
    async fn the_entry_of_a_successor_is_left_alone() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let open = || {
            Redis::new(
                &server.url(""),
                None,
                Duration::from_secs(5),
                Limit::USUAL,
                crate::job::HISTORY,
            )
        };
        let (board, other) = (open(), open());
        board.register(&night()).await.unwrap();
        let taken = other.register(&night()).await;
        assert!(
            matches!(taken, Err(BoardError::NameTaken { .. })),
            "{taken:?}"
        );
        server.run::<()>(&["DEL", "taskflow:conductor.night"]);
        other.register(&night()).await.unwrap();
        board.tell_unsettled(&stuck("ours")).await.unwrap();
        assert_eq!(shown(&other).await, []);
        board.close().await;
        assert_eq!(shown(&other).await, []);
        server.run::<()>(&["DEL", "taskflow:conductor.night"]);
        // Somebody has put something else there by hand.
        server.run::<redis::Value>(&["LPUSH", "taskflow:conductor.night", "x"]);
        let taken = board.register(&night()).await;
        assert!(
            matches!(taken, Err(BoardError::NameTaken { .. })),
            "{taken:?}"
        );
    }
}
