//! A connection on which the server speaks first.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use redis::{
    Cmd, FromRedisValue, Pipeline, PushInfo, Value,
    aio::{AsyncPushSender, SendError},
};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};

use super::{
    super::{
        line::Line,
        refusal::meaning,
        trouble::{Problem, Trouble},
    },
    at_once, transaction,
};
use crate::board::BoardError;

/// How many pushes may wait for whoever listens: enough for a burst, and no danger to the memory.
const PUSHES: usize = 20_000;

/// Takes what the server pushes to whoever listens, as long as there is room.
#[derive(Clone)]
pub(in super::super) struct Pusher {
    sender: Sender<PushInfo>,
    has_lost: Arc<AtomicBool>,
}

impl AsyncPushSender for Pusher {
    fn send(&self, push: PushInfo) -> Result<(), SendError> {
        match self.sender.try_send(push) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                self.has_lost.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(SendError),
        }
    }
}

/// What was pushed, and whether some of it was lost.
pub(super) struct Pushed {
    receiver: Receiver<PushInfo>,
    has_lost: Arc<AtomicBool>,
}

/// Returns both ends of what a server pushes.
pub(super) fn pushes() -> (Pusher, Pushed) {
    let (sender, receiver) = channel(PUSHES);
    let has_lost = Arc::new(AtomicBool::new(false));
    let pusher = Pusher {
        sender,
        has_lost: Arc::clone(&has_lost),
    };
    (pusher, Pushed { receiver, has_lost })
}

/// A connection on which the server pushes messages.
pub(in super::super) struct Listener {
    name: String,
    user: Option<String>,
    line: Line,
    /// What the server pushed; confirmations of subscriptions are among it.
    pub(in super::super) pushes: Receiver<PushInfo>,
    has_lost: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn new(name: &str, user: Option<String>, line: Line, pushed: Pushed) -> Self {
        Self {
            name: name.to_owned(),
            user,
            line,
            pushes: pushed.receiver,
            has_lost: pushed.has_lost,
        }
    }

    /// Sends a command on this connection, such as the one that makes the server push.
    pub(in super::super) async fn ask<T: FromRedisValue>(
        &self,
        doing: &'static str,
        command: &Cmd,
    ) -> Result<T, BoardError> {
        let answer = self.line.ask(command).await;
        answer
            .and_then(|answer| self.line.read(answer))
            .map_err(|trouble| trouble.into_error(doing, &self.name))
    }

    /// Sends commands in one transaction, and returns the answer to each.
    ///
    /// All that was pushed before they were carried out is among the pushes by the time it returns.
    pub(in super::super) async fn ask_at_once(
        &self,
        doing: &'static str,
        commands: &Pipeline,
    ) -> Result<Vec<Value>, BoardError> {
        let error = |trouble: Trouble| trouble.into_error(doing, &self.name);
        let answers = self.line.ask_all(&transaction(commands)).await;
        let answers = answers.map_err(error)?;
        let mut last = None;
        for answer in answers {
            let meant = |error| Trouble::new(&self.name, meaning(&error, self.user.as_deref()));
            last = Some(self.line.sort(answer).map_err(|it| error(meant(it)))?);
        }
        at_once(last).ok_or_else(|| error(self.line.trouble(Problem::Strange)))
    }

    /// Whether pushes were lost since this was last asked, because there was no room for them.
    pub(in super::super) fn has_lost(&self) -> bool {
        self.has_lost.swap(false, Ordering::Relaxed)
    }

    /// Returns where it is noted that pushes were lost.
    #[cfg(test)]
    pub(in super::super) fn loss(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_lost)
    }

    /// Returns the error that says that the server is gone.
    pub(in super::super) fn broken(&self, doing: &'static str) -> BoardError {
        let trouble = self.line.trouble(Problem::BrokenOff);
        trouble.into_error(doing, &self.name)
    }
}
