//! A connection on which the server pushes messages.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use redis::{Cmd, FromRedisValue, Pipeline, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};

use super::{
    at_once,
    connection::Connection,
    problem::{Cause, Problem},
    transaction,
};
use crate::board::{BoardError, net::problem::Obstacle};

/// Maximum queued pushes: enough for a burst, and no danger to the memory.
const PUSHES: usize = 20_000;

/// Their maximum total size: one message may name a thousand jobs.
const BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    has_lost: AtomicBool,
}

/// Queues pushes while there is room.
#[derive(Clone)]
pub(crate) struct Pusher {
    sender: Sender<PushInfo>,
    backlog: Arc<Backlog>,
}

impl Pusher {
    pub(super) fn send(&self, push: PushInfo) {
        let size = size(&push);
        // No other task adds to it.
        let has_room = self.backlog.bytes.load(Ordering::Relaxed) + size <= BYTES;
        // A lost connection is always reported.
        let permit = match self.sender.try_reserve() {
            Ok(permit) if has_room || push.kind == PushKind::Disconnection => permit,
            Err(TrySendError::Closed(())) => return,
            Ok(_) | Err(TrySendError::Full(())) => {
                self.backlog.has_lost.store(true, Ordering::Relaxed);
                return;
            }
        };
        self.backlog.bytes.fetch_add(size, Ordering::Relaxed);
        permit.send(push);
    }
}

pub(super) struct Pushed {
    receiver: Receiver<PushInfo>,
    backlog: Arc<Backlog>,
}

impl Pushed {
    fn taken(&self, push: PushInfo) -> PushInfo {
        self.backlog.bytes.fetch_sub(size(&push), Ordering::Relaxed);
        push
    }
}

pub(super) fn pushes() -> (Pusher, Pushed) {
    let (sender, receiver) = channel(PUSHES);
    let backlog = Arc::new(Backlog::default());
    let pusher = Pusher {
        sender,
        backlog: Arc::clone(&backlog),
    };
    (pusher, Pushed { receiver, backlog })
}

fn size(push: &PushInfo) -> usize {
    push.data.iter().map(size_of_value).sum()
}

fn size_of_value(value: &Value) -> usize {
    let behind = match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(values) => values.iter().map(size_of_value).sum(),
        // Nothing else is pushed.
        _ => 0,
    };
    size_of::<Value>() + behind
}

pub(crate) struct Listener {
    name: String,
    connection: Connection,
    pushed: Pushed,
}

impl Listener {
    pub(super) fn new(name: &str, connection: Connection, pushed: Pushed) -> Self {
        Self {
            name: name.to_owned(),
            connection,
            pushed,
        }
    }

    pub(crate) async fn ask<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
    ) -> Result<T, BoardError> {
        let answer = self.connection.ask(command).await;
        answer
            .and_then(|answer| self.connection.read(answer))
            .map_err(|problem| problem.into_error(doing, &self.name))
    }

    /// By the time this returns, all messages pushed before the transaction are queued.
    pub(crate) async fn ask_at_once(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let error = |problem: Problem| problem.into_error(doing, &self.name);
        let answers = self.connection.ask_all(&transaction(commands)).await;
        let answers = answers.map_err(error)?;
        let mut last = None;
        for answer in answers {
            let answer = self.connection.sort(answer);
            last = Some(answer.map_err(|refusal| error(self.connection.meaning(&refusal)))?);
        }
        at_once(last).ok_or_else(|| error(self.connection.problem(Cause::Strange)))
    }

    /// Waits for the next push, including confirmations of subscriptions.
    pub(crate) async fn recv(&mut self) -> Option<PushInfo> {
        let push = self.pushed.receiver.recv().await?;
        Some(self.pushed.taken(push))
    }

    pub(crate) fn try_recv(&mut self) -> Option<PushInfo> {
        let push = self.pushed.receiver.try_recv().ok()?;
        Some(self.pushed.taken(push))
    }

    /// Whether pushes were dropped since the last call.
    pub(crate) fn has_lost(&self) -> bool {
        self.pushed.backlog.has_lost.swap(false, Ordering::Relaxed)
    }

    /// Returns a function that reports dropped pushes without clearing the flag.
    #[cfg(test)]
    pub(crate) fn loss(&self) -> impl Fn() -> bool + use<> {
        let backlog = Arc::clone(&self.pushed.backlog);
        move || backlog.has_lost.load(Ordering::Relaxed)
    }

    pub(crate) fn broken(&self, doing: &'static str) -> BoardError {
        let problem = self.connection.problem(Obstacle::BrokenOff);
        problem.into_error(doing, &self.name)
    }
}
