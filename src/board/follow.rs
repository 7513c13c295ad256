//! Listening to a board for as long as somebody wants to know, across broken connections.

use std::time::Duration;

use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::time::{self, Instant};

use super::{Board, BoardError, Event, Result};
use crate::backoff::Backoff;

/// The shortest and the longest pause between two attempts to reach a board.
pub(super) const PAUSES: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_secs(5));

/// A connection that lasted this long was a good one: the next attempt need not wait long.
const STEADY: Duration = Duration::from_secs(5);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are events")]
pub(crate) enum News {
    /// Whoever looks at the board from here on misses nothing; what of it is told late, and why.
    Listening(Option<String>),
    Event(Event),
    /// The board cannot be heard. It is told once; listening goes on as soon as it can be.
    Lost(BoardError),
    /// The board can be heard again, but for what is told late; a
    /// [`Resync`](super::EventKind::Resync) follows.
    Back(Option<String>),
}

/// What happens if the board cannot be reached in the first place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// That is an error.
    Now,
    /// It is waited for.
    Whenever,
}

/// Streams what happens on a board, and goes on after the connection broke.
///
/// A board that refuses or is silent is tried again for ever, with pauses. That we are not let in,
/// or that the address is wrong, is an error and the last item.
pub(crate) fn follow(board: &dyn Board, start: Start) -> BoxStream<'_, Result<News>> {
    let follower = Follower {
        board,
        start,
        events: None,
        backoff: Backoff::at_once(PAUSES),
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
                            self.backoff = Backoff::at_once(PAUSES);
                        }
                        self.events = None;
                        ended.map_or_else(
                            || self.silence(),
                            |event| event.err().unwrap_or_else(|| self.silence()),
                        )
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

    /// Begins to listen, after a pause if it was tried before.
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
            // An address that never led to a board is wrong, and will be.
            Start::Whenever if !self.was_heard => matches!(error, BoardError::Unreachable { .. }),
            _ => error.is_retryable(),
        }
    }

    fn silence(&self) -> BoardError {
        BoardError::Unreachable {
            board: self.board.name().to_owned(),
            source: "the event stream ended".into(),
        }
    }
}
