//! What happens on a board: as our scripts tell it, and as the server says that keys were touched.
//!
//! On one connection the server pushes what is published on the channel of the board, which says
//! exactly what one of us did, and the names of keys that anybody touched, which only say where to
//! look. What was touched is looked at on the same connection, so that it is known which of the
//! two came first; the picture of the board tells what must have happened.

mod conductors;
mod observation;
mod pace;
mod picture;
mod recheck;
mod survey;
pub(super) mod told;
mod watcher;

#[cfg(test)]
mod tests;

use futures_util::{StreamExt, stream};
use redis::{Cmd, Value, cmd};

use self::watcher::Watcher;
use super::{Redis, link::Listener};
use crate::board::{BoardError, Events, Onlooker, Result};

const DOING: &str = "subscribe to";

struct Subscription {
    /// `None` where the server pushes nothing at all.
    listener: Option<Listener>,
    /// Whether what anybody changes is pushed, and not only what our scripts tell.
    is_tracking: bool,
    lack: Option<String>,
}

/// Starts to listen to a board, and shows an onlooker what is there.
pub(super) async fn events<'a>(
    board: &'a Redis,
    onlooker: Option<Onlooker<'_>>,
) -> Result<Events<'a>> {
    let subscription = Subscription::open(board).await?;
    let lack = subscription.lack.clone();
    let mut watcher = Watcher::new(board, subscription);
    // Only now: what is touched from here on is told.
    watcher.start(onlooker).await?;
    let stream = stream::try_unfold(watcher, |mut watcher| async {
        let mut event = watcher.next().await?;
        // The uuid of a record that is stored under another name may be that of another job.
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
        // Without a prefix the server tells of every key there is.
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

async fn asked(listener: &Listener, command: &Cmd) -> Result<Option<String>> {
    match listener.ask::<Value>(DOING, command).await {
        Ok(_) => Ok(None),
        Err(error) => refused(error).map(Some),
    }
}

/// Returns in words why a server does not push, if it is that and nothing worse.
fn refused(error: BoardError) -> Result<String> {
    match error {
        BoardError::Unsupported {
            board, operation, ..
        } => Ok(format!("{board} cannot {operation}")),
        BoardError::Denied { source, .. } | BoardError::Failed { source, .. } => {
            Ok(source.to_string())
        }
        error => Err(error),
    }
}
