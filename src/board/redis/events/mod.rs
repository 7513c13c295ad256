//! Board events from our scripts' messages and the server's key tracking.
//!
//! One connection receives the channel of the board, which describes our own changes exactly, and the names of
//! changed keys, which only show where to look. Changed keys are read on the same connection, so that the order is
//! known. The picture of the board derives the events.

mod conductors;
pub(super) mod message;
mod pace;
mod picture;
mod recheck;
mod survey;
mod watcher;

#[cfg(test)]
mod tests;

use futures_util::{StreamExt, stream};
use redis::{Cmd, Value, cmd};

use self::watcher::RedisWatcher;
use super::{Redis, link::PushListener};
use crate::board::{BoardError, Events, InitialListing, Result};

const DOING: &str = "subscribe to";

struct Subscription {
    /// `None` if the server pushes nothing.
    listener: Option<PushListener>,
    /// Whether the server pushes every client's changes, and not only our scripts' messages.
    is_tracking: bool,
    lack: Option<String>,
}

pub(super) async fn events<'a>(
    board: &'a Redis,
    listing: Option<InitialListing<'_>>,
) -> Result<Events<'a>> {
    let subscription = Subscription::open(board).await?;
    let lack = subscription.lack.clone();
    let mut watcher = RedisWatcher::new(board, subscription);
    // Read after subscribing: every later change is reported.
    watcher.start(listing).await?;
    let stream = stream::try_unfold(watcher, |mut watcher| async {
        let mut event = watcher.next().await?;
        // A record under another key may carry another job's uuid.
        if let Some(subject) = &mut event.subject
            && subject.key.text() != subject.uuid
        {
            subject.uuid.clear();
        }
        Ok(Some((event, watcher)))
    });
    Ok(Events {
        stream: stream.boxed(),
        lack,
    })
}

impl Subscription {
    async fn open(board: &Redis) -> Result<Self> {
        let listener = match board.client.listen(DOING).await.map_err(BoardError::from) {
            Ok(listener) => listener,
            Err(error) => {
                return Ok(Self {
                    listener: None,
                    is_tracking: false,
                    lack: Some(lacking("is polled", refused(error)?)),
                });
            }
        };
        let mut subscribe = cmd("SUBSCRIBE");
        subscribe.arg(board.keys.events());
        let subscribed = asked(&listener, &subscribe).await?;
        let mut track = cmd("CLIENT");
        track.arg("TRACKING").arg("ON").arg("BCAST");
        // Without a prefix the server reports every key.
        if !board.keys.prefix().is_empty() {
            track.arg("PREFIX").arg(board.keys.prefix());
        }
        let tracked = asked(&listener, &track).await?;
        let lack = match (&subscribed, &tracked) {
            (None, None) => None,
            (_, Some(error)) => Some(lacking("is polled", error)),
            (Some(error), None) => Some(lacking("sends no events for extended claims", error)),
        };
        Ok(Self {
            listener: Some(listener),
            is_tracking: tracked.is_none(),
            lack,
        })
    }
}

fn lacking(what: &str, error: impl std::fmt::Display) -> String {
    format!("the board {what}, because the server pushes no changes: {error}")
}

async fn asked(listener: &PushListener, command: &Cmd) -> Result<Option<String>> {
    match listener.ask::<Value>(command).await {
        Ok(_) => Ok(None),
        Err(error) => refused(error).map(Some),
    }
}

fn refused(error: BoardError) -> Result<String> {
    match error {
        BoardError::Unsupported(error) => Ok(error.to_string()),
        BoardError::Denied { source, .. } | BoardError::Failed { source, .. } => {
            Ok(source.to_string())
        }
        error => Err(error),
    }
}
