//! A subscription to a board that survives broken connections.

use std::time::Duration;

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::time::{self, Instant};

use super::{Board, BoardError, Event, Result};
use crate::backoff::Backoff;

pub(super) const RECONNECT_PAUSES: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_secs(5));

/// After a connection this long, the next attempt comes soon.
const STEADY: Duration = Duration::from_secs(5);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are events")]
pub(crate) enum News {
    /// From here on a read of the board misses nothing. Holds the reason for late events, if any.
    Listening(Option<String>),
    Event(Event),
    /// The subscription broke. Reported once; it resumes when possible.
    Lost(BoardError),
    /// The subscription resumed; holds the reason for late events, if any. A [`Resync`](super::EventKind::Resync)
    /// follows.
    Back(Option<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Now,
    Whenever,
}

/// Streams the events of a board across broken connections.
///
/// Retries forever, with pauses, while a board refuses or does not reply. Denied access or a wrong address is an
/// error and the last item.
pub(crate) fn follow(board: &dyn Board, start: Start) -> BoxStream<'_, Result<News>> {
    let follower = Follower {
        board,
        start,
        events: None,
        backoff: Backoff::without_first_pause(RECONNECT_PAUSES),
        was_heard: false,
        is_lost: false,
        owes_resync: false,
    };
    stream::try_unfold(follower, |mut follower| async {
        Ok(Some((follower.next().await?, follower)))
    })
    .boxed()
}

struct Follower<'a> {
    board: &'a dyn Board,
    start: Start,
    events: Option<(BoxStream<'a, Result<Event>>, Instant)>,
    backoff: Backoff,
    was_heard: bool,
    is_lost: bool,
    owes_resync: bool,
}

impl Follower<'_> {
    async fn next(&mut self) -> Result<News> {
        if std::mem::take(&mut self.owes_resync) {
            return Ok(News::Event(Event::resync()));
        }
        loop {
            let failed = match &mut self.events {
                None => match self.listen().await {
                    Ok(news) => return Ok(news),
                    Err(error) => error,
                },
                Some((events, since)) => match events.next().await {
                    Some(Ok(event)) => return Ok(News::Event(event)),
                    ended => {
                        if since.elapsed() >= STEADY {
                            self.backoff = Backoff::without_first_pause(RECONNECT_PAUSES);
                        }
                        self.events = None;
                        let error = ended.and_then(Result::err);
                        error.unwrap_or_else(|| {
                            BoardError::unreachable(self.board.url(), "the event stream ended")
                        })
                    }
                },
            };
            if !self.is_worth_another_attempt(&failed) {
                return Err(failed);
            }
            if !std::mem::replace(&mut self.is_lost, true) {
                return Ok(News::Lost(failed));
            }
        }
    }

    async fn listen(&mut self) -> Result<News> {
        time::sleep(self.backoff.pause()).await;
        let events = self.board.events().await?;
        self.events = Some((events.stream, Instant::now()));
        self.is_lost = false;
        if std::mem::replace(&mut self.was_heard, true) {
            self.owes_resync = true;
            return Ok(News::Back(events.lack));
        }
        Ok(News::Listening(events.lack))
    }

    fn is_worth_another_attempt(&self, error: &BoardError) -> bool {
        match self.start {
            Start::Now if !self.was_heard => false,
            // An address that never led to a board is wrong.
            Start::Whenever if !self.was_heard => matches!(error, BoardError::Unreachable { .. }),
            _ => error.is_retryable(),
        }
    }
}
