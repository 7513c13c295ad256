//! What happens on a board, as the scripts tell it, and what lapses by itself.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use redis::{Cmd, PushInfo, PushKind, Value};
use serde::Deserialize;
use serde_bytes::ByteBuf;
use tokio::time::{self, Duration, Instant};

use super::{Redis, keys::key_of, link::Listener};
use crate::{
    board::{
        Board, BoardError, Detail, Event, EventKind, Order, Query, Result, Which, event::Subject,
    },
    job::{Entry, Fence, JobKey, Owner, Priority, Rank, Shelf},
};

/// What a listener was doing when it failed.
const DOING: &str = "listen to";

/// How often to look at a board that does not tell what happens.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An event as a script words it.
#[derive(Debug, Deserialize)]
struct Told {
    event: String,
    time: String,
    #[serde(default)]
    field: Option<ByteBuf>,
    #[serde(default)]
    uuid: Option<ByteBuf>,
    #[serde(default)]
    name: Option<ByteBuf>,
    #[serde(default)]
    priority: Option<ByteBuf>,
    #[serde(default)]
    sequence: Option<i64>,
    #[serde(default)]
    owner: Option<ByteBuf>,
    #[serde(default)]
    fence: Option<String>,
}

/// A claim that lapses by itself, unless it is renewed.
#[derive(Debug)]
struct Expiring {
    subject: Subject,
    owner: Option<Owner>,
    fence: Option<Fence>,
    at: Instant,
}

/// Starts to listen to the channel of the board.
pub(super) async fn events(board: &Redis) -> Result<BoxStream<'_, Result<Event>>> {
    let listener = match subscribe(board).await {
        Ok(listener) => listener,
        // An old server, or a user who may not listen: all that is left is to look again.
        Err(BoardError::Unsupported { .. } | BoardError::Denied { .. }) => return Ok(ticks()),
        Err(error) => return Err(error),
    };
    let mut watcher = Watcher {
        board,
        listener,
        expiring: HashMap::new(),
        pending: VecDeque::new(),
    };
    // Only now: what is claimed from here on is told.
    watcher.look().await?;
    Ok(stream::unfold(Some(watcher), |watcher| async {
        let mut watcher = watcher?;
        match watcher.next().await {
            Ok(event) => Some((Ok(event), Some(watcher))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed())
}

async fn subscribe(board: &Redis) -> Result<Listener> {
    let listener = board.link.listen(DOING).await?;
    let mut subscribe = Cmd::new();
    subscribe.arg("SUBSCRIBE").arg(board.keys.events());
    listener.ask::<Value>(DOING, &subscribe).await?;
    Ok(listener)
}

/// Says now and then that something may have happened, since nobody tells.
fn ticks() -> BoxStream<'static, Result<Event>> {
    stream::unfold((), |()| async {
        time::sleep(LOOK_EVERY).await;
        Some((Ok(Event::resync()), ()))
    })
    .boxed()
}

struct Watcher<'a> {
    board: &'a Redis,
    listener: Listener,
    expiring: HashMap<JobKey, Expiring>,
    pending: VecDeque<Event>,
}

impl Watcher<'_> {
    /// Notes which claims lapse by themselves, and when.
    async fn look(&mut self) -> Result<()> {
        let mut entries = self.board.entries(Query {
            shelf: Shelf::Board,
            which: Which::All,
            order: Order::Any,
            detail: Detail::Brief,
        });
        while let Some(entry) = entries.try_next().await? {
            if let Entry::Job(job) = entry
                && let Some(holding) = &job.holding
                && let Some(left) = holding.expires_in
            {
                let expiring = Expiring {
                    owner: holding.owner.clone(),
                    fence: holding.fence.clone(),
                    at: Instant::now() + left,
                    subject: Subject {
                        rank: job.rank(),
                        key: job.key.clone(),
                        uuid: job.uuid,
                        name: job.name,
                        sequence: job.sequence,
                        not_before: job.history.not_before,
                    },
                };
                self.expiring.insert(job.key, expiring);
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            let deadline = self.expiring.values().map(|one| one.at).min();
            let due = async {
                match deadline {
                    Some(deadline) => time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                push = self.listener.pushes.recv() => self.hear(push).await?,
                () = due => self.check().await?,
            }
        }
    }

    async fn hear(&mut self, push: Option<PushInfo>) -> Result<()> {
        let Some(push) = push.filter(|push| push.kind != PushKind::Disconnection) else {
            return Err(BoardError::Unreachable {
                board: self.board.name().to_owned(),
                source: "the server has hung up".into(),
            });
        };
        if push.kind != PushKind::Message {
            return Ok(());
        }
        let Some(Value::BulkString(message)) = push.data.into_iter().nth(1) else {
            return Ok(());
        };
        // What is none of ours on our channel may be anything: look at the board again.
        let told: Vec<Told> = match rmp_serde::from_slice(&message) {
            Ok(told) => told,
            Err(_) => {
                self.pending.push_back(Event::resync());
                return Ok(());
            }
        };
        for told in told {
            let event = told.into_event();
            self.follow(&event).await?;
            self.pending.push_back(event);
        }
        Ok(())
    }

    /// Keeps up with which claims lapse by themselves.
    async fn follow(&mut self, event: &Event) -> Result<()> {
        let Some(subject) = &event.subject else {
            return Ok(());
        };
        match event.kind {
            EventKind::Claimed | EventKind::Extended => {
                if let Some(left) = self.left(&subject.key).await? {
                    let expiring = Expiring {
                        subject: subject.clone(),
                        owner: event.owner.clone(),
                        fence: event.fence.clone(),
                        at: Instant::now() + left,
                    };
                    self.expiring.insert(subject.key.clone(), expiring);
                }
            }
            _ => _ = self.expiring.remove(&subject.key),
        }
        Ok(())
    }

    /// Looks at the claims whose time has come; asking for one makes the server notice.
    async fn check(&mut self) -> Result<()> {
        let now = Instant::now();
        let due: Vec<_> = self
            .expiring
            .iter()
            .filter(|(_, one)| one.at <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            let left = self.left(&key).await?;
            let Some(mut expiring) = self.expiring.remove(&key) else {
                continue;
            };
            match left {
                // It was renewed, which is no event.
                Some(left) => {
                    expiring.at = Instant::now() + left;
                    self.expiring.insert(key, expiring);
                }
                None => self.pending.push_back(Event {
                    kind: EventKind::Expired,
                    time: Utc::now(),
                    subject: Some(expiring.subject),
                    owner: expiring.owner,
                    fence: expiring.fence,
                }),
            }
        }
        Ok(())
    }

    /// Returns how long a claim still lasts; none, if it has ended or does not end by itself.
    async fn left(&self, key: &JobKey) -> Result<Option<Duration>> {
        let mut command = Cmd::new();
        let field = super::keys::field_of(key);
        command
            .arg("PTTL")
            .arg(self.board.keys.beside(&field).owner);
        let left: i64 = self.board.link.ask(DOING, &command).await?;
        // Not before it has run out, by the server's clock.
        Ok(u64::try_from(left)
            .ok()
            .map(|left| Duration::from_millis(left + 1)))
    }
}

impl Told {
    fn into_event(self) -> Event {
        let text = |bytes: &Option<ByteBuf>| {
            bytes
                .as_ref()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let priority = text(&self.priority).and_then(|text| text.parse::<Priority>().ok());
        let (uuid, name) = (text(&self.uuid), text(&self.name));
        Event {
            // A kind that a later release added is something this one cannot tell.
            kind: self.event.parse().unwrap_or(EventKind::Resync),
            time: self
                .time
                .parse::<DateTime<Utc>>()
                .unwrap_or_else(|_| Utc::now()),
            subject: self.field.map(|field| Subject {
                key: key_of(&field),
                uuid: uuid.unwrap_or_default(),
                name: name.unwrap_or_default(),
                sequence: self.sequence,
                rank: Rank::new(priority.unwrap_or_default(), self.sequence),
                not_before: None,
            }),
            owner: self
                .owner
                .filter(|owner| !owner.is_empty())
                .map(|owner| Owner::from_stored(owner.into_vec())),
            fence: self.fence.filter(|fence| !fence.is_empty()).map(Fence),
        }
    }
}
