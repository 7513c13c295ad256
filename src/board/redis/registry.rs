//! The conductors of a board: keys that expire unless refreshed.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use redis::{Pipeline, Value, cmd};
use uuid::Uuid;

use super::{
    Redis,
    events::message::announcement,
    keys::Keys,
    link::{READ, RedisClient},
    write::scripts::{Call, Script},
};
use crate::{
    board::{
        BoardError, EventKind, Result,
        examine::Examined,
        net::cause::ServerCause,
        own_entry::{ConductorEntry, LIFE, MAX_CONDUCTORS, UNREADABLE, crowded, kept},
        wire::{as_json, conductor::EntryRecord},
    },
    job::{Conductor, ConductorReport, Owner, from_json, shortened},
    problem::Code,
};

const DOING: &str = "register with";

const ENTRIES_PER_REQUEST: usize = 100;

pub(super) struct RedisEntry {
    client: Arc<RedisClient>,
    keys: Keys,
    entry: EntryRecord,
}

impl RedisEntry {
    pub(super) async fn enter(
        client: Arc<RedisClient>,
        keys: Keys,
        conductor: &Conductor,
    ) -> Result<Self> {
        let entry = EntryRecord {
            name: conductor.name.clone(),
            host: conductor.host.clone(),
            pid: conductor.pid,
            since: conductor.since,
            owner: conductor.owner.to_string(),
            token: Uuid::new_v4().to_string(),
        };
        let entry = Self {
            client,
            keys,
            entry,
        };
        if entry.put(&conductor.report).await? {
            return Ok(entry);
        }
        let name = conductor.name.clone();
        Err(BoardError::NameTaken { name })
    }

    /// Sends a heartbeat, also after the entry expired; false if another process owns the entry.
    async fn put(&self, report: &ConductorReport) -> Result<bool> {
        let answer = self.register(&as_json(&self.entry), report).await?;
        if answer == "entered" {
            self.announce(EventKind::ConductorJoined).await;
        }
        Ok(answer != "other")
    }

    /// Keeps or removes the entry in one step, by its token.
    async fn register(&self, text: &str, report: &ConductorReport) -> Result<String> {
        let name = &self.entry.name;
        let mut call = Call::of(Script::Register);
        call.key("entry", self.keys.conductor(name))
            .key("copy", self.keys.conductor_seen(name))
            .key("status", self.keys.conductor_status(name))
            .arg("token", self.entry.token.as_str())
            .arg("text", text)
            .arg("entry_life", LIFE.as_millis().to_string())
            .arg("report", report.write())
            .arg("copy_life", kept(report).as_millis().to_string());
        match call.answer(&self.client, DOING).await? {
            Value::BulkString(word) => Ok(String::from_utf8_lossy(&word).into_owned()),
            _ => Err(self.client.error(DOING, ServerCause::UnexpectedReply)),
        }
    }

    async fn announce(&self, kind: EventKind) {
        let Some(publish) = announcement(&self.keys, kind, ("owner", &self.entry.name), None)
        else {
            return;
        };
        // Subscribers poll the registry as well; the message is only faster.
        let _: Result<Value> = self.client.ask(DOING, &publish).await;
    }
}

#[async_trait]
impl ConductorEntry for RedisEntry {
    async fn publish(&self, report: &ConductorReport) -> Result<()> {
        self.put(report).await.map(drop)
    }

    async fn remove(&self) -> Result<()> {
        if self.register("", &ConductorReport::default()).await? == "removed" {
            self.announce(EventKind::ConductorLeft).await;
        }
        Ok(())
    }
}

impl Redis {
    pub(super) async fn registered(&self) -> Result<(Vec<Conductor>, Examined)> {
        let (mut found, mut copies, mut count) = (BTreeMap::new(), BTreeSet::new(), 0);
        let mut unreadable = BTreeSet::new();
        let mut pages = pin!(self.client.key_names(self.keys.conductors()));
        while let Some(page) = pages.try_next().await? {
            let named = |prefix: String| {
                let names = page.iter();
                let names = names.filter_map(move |it| it.strip_prefix(prefix.as_bytes()));
                names.map(<[u8]>::to_vec)
            };
            let entries: Vec<_> = named(self.keys.conductor("")).collect();
            count += entries.len();
            for names in entries.chunks(ENTRIES_PER_REQUEST) {
                if found.len() + unreadable.len() < MAX_CONDUCTORS {
                    found.extend(self.conductors_named(names, &mut unreadable).await?);
                }
            }
            // Twice the limit: registered conductors have copies, too.
            let room = (2 * MAX_CONDUCTORS).saturating_sub(copies.len());
            copies.extend(named(self.keys.conductor_seen("")).take(room));
        }
        if count <= MAX_CONDUCTORS {
            let left = copies.into_iter().filter(|name| !found.contains_key(name));
            let room = MAX_CONDUCTORS.saturating_sub(found.len());
            let left: Vec<_> = left.take(room).collect();
            for names in left.chunks(ENTRIES_PER_REQUEST) {
                found.extend(self.conductors_named(names, &mut unreadable).await?);
            }
        }
        let (mut seen, unreadable) = (Examined::default(), unreadable.into_iter().collect());
        self.report_keys(Code::UnreadableEntry, UNREADABLE, unreadable, &mut seen);
        Ok((crowded(found.into_values().collect(), count)?, seen))
    }

    /// Returns the conductors of these names, and adds the keys that cannot be read.
    async fn conductors_named(
        &self,
        names: &[Vec<u8>],
        unreadable: &mut BTreeSet<String>,
    ) -> Result<Vec<(Vec<u8>, Conductor)>> {
        let keys = &self.keys;
        let prefixes = [
            keys.conductor(""),
            keys.conductor_seen(""),
            keys.conductor_status(""),
        ];
        let (mut look, mut texts) = (Pipeline::new(), cmd("MGET"));
        // A value that is no text reads as missing.
        for name in names {
            let [entry, seen, report] =
                (prefixes.each_ref()).map(|prefix| [prefix.as_bytes(), name].concat());
            texts.arg(&entry).arg(&seen).arg(report);
            look.cmd("PTTL").arg(entry).cmd("PTTL").arg(seen);
        }
        let texts: Vec<Option<Vec<u8>>> = self.client.read(&texts).await?;
        let lives = self.client.exchange(READ, &look).await?;
        let mut found = Vec::with_capacity(names.len());
        for ((name, texts), lives) in names
            .iter()
            .zip(texts.chunks_exact(3))
            .zip(lives.chunks_exact(2))
        {
            for ((prefix, text), life) in prefixes.iter().zip(texts).zip(lives) {
                let key = [prefix.as_bytes(), name].concat();
                let is_readable = match text {
                    Some(text) => from_json::<EntryRecord>(text).is_ok(),
                    // A value of another type reads as missing; a missing key has no such life.
                    None => !matches!(life, Ok(Value::Int(-1))),
                };
                let part = keys.part(&key);
                if !is_readable && part.is_none_or(|part| part.job().is_none()) {
                    unreadable.insert(shortened(&String::from_utf8_lossy(&key)));
                }
            }
            let report = ConductorReport::read(texts[2].as_deref().unwrap_or_default());
            let (text, life, left) = match (&texts[0], &texts[1]) {
                (Some(entry), _) => (entry, LIFE, &lives[0]),
                (None, Some(seen)) => (seen, kept(&report), &lives[1]),
                (None, None) => continue,
            };
            // Without permission the time stays unknown.
            let left = left.as_ref().ok();
            let left = left.and_then(|left| redis::from_redis_value_ref::<u64>(left).ok());
            let silence = left.map(|left| life.saturating_sub(Duration::from_millis(left)));
            let has_left = texts[0].is_none();
            found.extend(from_json::<EntryRecord>(text).ok().map(|entry| {
                let conductor = Conductor {
                    name: entry.name,
                    host: entry.host,
                    pid: entry.pid,
                    since: entry.since,
                    owner: Owner::from_stored(entry.owner),
                    silence: match has_left {
                        true => Some(silence.unwrap_or_default().max(LIFE)),
                        false => silence,
                    },
                    has_left,
                    report,
                };
                (name.clone(), conductor)
            }));
        }
        Ok(found)
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
            testing::{Proxy, ProxyMode, Server, redis_url},
        },
        wire::posting::Limit,
    };

    fn night() -> Conductor {
        Conductor::named("night")
    }

    fn status_with_version(version: &str) -> ConductorReport {
        ConductorReport {
            version: Some(version.to_owned()),
            ..ConductorReport::default()
        }
    }

    async fn shown(board: &Redis) -> ConductorReport {
        board.conductors().await.unwrap().remove(0).report
    }

    #[tokio::test]
    async fn conductor_with_an_expired_entry_joins_again() {
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
        let mut report = async || {
            let event = tokio::time::timeout(Duration::from_secs(10), events.next());
            event.await.unwrap().unwrap().unwrap().kind
        };
        let client = Arc::clone(&board.client);
        let entry = RedisEntry::enter(client, board.keys.clone(), &night()).await;
        let entry = entry.unwrap();
        for _ in 0..2 {
            assert_eq!(report().await, EventKind::ConductorJoined);
            assert!(entry.put(&night().report).await.unwrap());
            server.run::<()>(&["DEL", "taskflow:conductor.night"]);
            assert_eq!(report().await, EventKind::ConductorLeft);
            assert!(entry.put(&night().report).await.unwrap());
        }
    }

    #[tokio::test]
    async fn lost_reply_does_not_disown_the_entry() {
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
        for mode in [ProxyMode::Silent, ProxyMode::HangUp] {
            proxy.set(mode);
            let unconfirmed = board.publish(&status_with_version("first")).await;
            assert!(unconfirmed.is_err(), "{unconfirmed:?}");
            proxy.set(ProxyMode::PassOn);
            board.publish(&status_with_version("second")).await.unwrap();
            assert_eq!(shown(&board).await, status_with_version("second"));
        }
        board.close().await;
        assert_eq!(
            server.run::<u32>(&["EXISTS", "taskflow:conductor.night"]),
            0
        );
    }

    #[tokio::test]
    async fn foreign_value_takes_the_name() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let board = server.board("");
        // A foreign value that an operator stored there.
        server.run::<redis::Value>(&["LPUSH", "taskflow:conductor.night", "x"]);
        let taken = board.register(&night()).await;
        assert_matches!(taken, Err(BoardError::NameTaken { .. }));
    }
}
