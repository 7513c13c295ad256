//! The conductors of a board: keys that live on as long as they are refreshed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use redis::{Cmd, Value};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{keys::Keys, link::Link};
use crate::{
    board::{BoardError, EventKind, Result, wire::side::text_of},
    job::{Conductor, Owner, Unsettled},
};

/// How long a conductor that says nothing counts as alive.
const LIFE: Duration = Duration::from_secs(30);

/// How often a conductor says that it is alive.
const REFRESH: Duration = Duration::from_secs(10);

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

/// The entry of this process in the registry.
pub(super) struct Registration {
    place: Place,
    refresh: JoinHandle<()>,
}

/// Where somebody is registered, and what is stored there.
#[derive(Clone)]
pub(super) struct Place {
    link: Arc<Link>,
    keys: Keys,
    name: String,
    text: Arc<Mutex<String>>,
}

impl Registration {
    /// Enters a conductor, unless another one is alive under its name.
    pub(super) async fn enter(link: Arc<Link>, keys: Keys, conductor: &Conductor) -> Result<Self> {
        let name = conductor.name.clone();
        let text = serde_json::json!(Entry {
            name: name.clone(),
            host: conductor.host.clone(),
            pid: conductor.pid,
            since: conductor.since,
            owner: conductor.owner.to_string(),
            token: Uuid::new_v4().to_string(),
            unsettled: Vec::new(),
        })
        .to_string();
        let entered: Value = link.ask(DOING, &set(&keys, &name, &text, "NX")).await?;
        if entered == Value::Nil {
            return Err(BoardError::NameTaken { name });
        }
        tell(&link, &keys, EventKind::ConductorJoined, &name).await;
        let place = Place {
            link,
            keys,
            name,
            text: Arc::new(Mutex::new(text)),
        };
        let refresh = tokio::spawn(place.clone().refresh());
        Ok(Self { place, refresh })
    }

    /// Returns where it is.
    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Removes the entry, if it is still this one.
    pub(super) async fn leave(self) {
        self.refresh.abort();
        let Place {
            link, keys, name, ..
        } = &self.place;
        // An entry that cannot be removed is gone half a minute later.
        if self.place.is_ours(&self.place.text()).await {
            let mut del = Cmd::new();
            del.arg("DEL").arg(keys.conductor(name));
            let _: Result<Value> = link.ask(DOING, &del).await;
            tell(link, keys, EventKind::ConductorLeft, name).await;
        }
    }
}

impl Place {
    /// Says which jobs the conductor cannot settle, if the entry is still this one.
    pub(super) async fn tell_unsettled(&self, jobs: &[Unsettled]) -> Result<()> {
        let former = self.text();
        let Ok(mut entry) = serde_json::from_str::<Entry>(&former) else {
            return Ok(());
        };
        entry.unsettled = jobs.to_vec();
        let text = serde_json::json!(entry).to_string();
        if self.is_ours(&former).await {
            let set = set(&self.keys, &self.name, &text, "XX");
            let _: Value = self.link.ask(DOING, &set).await?;
        }
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        Ok(())
    }

    fn text(&self) -> String {
        let text = self.text.lock();
        text.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the entry is still as we wrote it.
    async fn is_ours(&self, text: &str) -> bool {
        let mut get = Cmd::new();
        get.arg("GET").arg(self.keys.conductor(&self.name));
        let present: Result<Option<String>> = self.link.ask(DOING, &get).await;
        present.is_ok_and(|present| present.as_deref() == Some(text))
    }

    async fn refresh(self) {
        loop {
            tokio::time::sleep(REFRESH).await;
            // One that fails is made up for by the next one, or the entry lapses.
            let _ = prolong(&self.link, &self.keys, &self.name, &self.text()).await;
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

fn set(keys: &Keys, name: &str, text: &str, condition: &str) -> Cmd {
    let mut command = Cmd::new();
    command
        .arg("SET")
        .arg(keys.conductor(name))
        .arg(text)
        .arg("PX")
        .arg(LIFE.as_millis().to_string())
        .arg(condition);
    command
}

/// Says that a conductor is alive, also after it had seemed not to be.
async fn prolong(link: &Link, keys: &Keys, name: &str, text: &str) -> Result<()> {
    let mut prolong = Cmd::new();
    prolong
        .arg("PEXPIRE")
        .arg(keys.conductor(name))
        .arg(LIFE.as_millis().to_string());
    let known: i64 = link.ask(DOING, &prolong).await?;
    if known == 0 {
        let entered: Value = link.ask(DOING, &set(keys, name, text, "NX")).await?;
        if entered != Value::Nil {
            tell(link, keys, EventKind::ConductorJoined, name).await;
        }
    }
    Ok(())
}

async fn tell(link: &Link, keys: &Keys, kind: EventKind, name: &str) {
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
    let _: Result<Value> = link.ask(DOING, &publish).await;
}

/// Returns the conductors that are alive; an entry that cannot be read is none.
pub(super) async fn conductors(link: &Link, keys: &Keys) -> Result<Vec<Conductor>> {
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
        let (next, names): (u64, Vec<Vec<u8>>) = link.ask("read", &scan).await?;
        for name in names {
            let mut get = Cmd::new();
            // Where something else than a text stands it answers as if nothing did.
            get.arg("MGET").arg(name);
            let (text,): (Option<Vec<u8>>,) = link.ask("read", &get).await?;
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
    use futures_util::StreamExt;

    use super::*;
    use crate::board::{
        Board,
        redis::{Redis, testing::Server},
        wire::posting::Limit,
    };

    #[tokio::test]
    async fn a_conductor_whose_entry_lapsed_joins_again() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let board = Redis::new(&server.url(""), None, Duration::from_secs(5), Limit::USUAL);
        let mut events = board.events().await.unwrap();
        let mut told = async || {
            let event = tokio::time::timeout(Duration::from_secs(10), events.next());
            event.await.unwrap().unwrap().unwrap().kind
        };
        let entry = board.keys.conductor("night");
        for _ in 0..2 {
            prolong(&board.link, &board.keys, "night", "{}")
                .await
                .unwrap();
            assert_eq!(told().await, EventKind::ConductorJoined);
            prolong(&board.link, &board.keys, "night", "{}")
                .await
                .unwrap();
            server.run::<()>(&["DEL", &entry]);
            assert_eq!(told().await, EventKind::ConductorLeft);
        }
    }
}
