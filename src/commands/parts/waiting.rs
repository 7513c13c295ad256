//! Limits waits, and reports the state of the connection meanwhile.

use std::time::Duration;

use crate::{
    board::{self, Board, Deadline, follow::News, wait::Waiter},
    context::Context,
    duration,
    exit::{CommandError, chain},
};

pub(crate) const NOT_CLAIMABLE: &str = "no job was claimable within";

pub(crate) const UNREACHABLE: &str = "the board is still unreachable after a wait of";

pub(crate) const NO_REPLY: &str = "the board did not reply within";

pub(crate) async fn waiter<'a>(
    ctx: &'a Context,
    board: &'a dyn Board,
) -> board::Result<Waiter<'a>> {
    let waiter = Waiter::begin(board).await?;
    Ok(waiter.on_news(|news| print_news(ctx, board, news)))
}

pub(crate) fn print_news(ctx: &Context, board: &dyn Board, news: &News) {
    match news {
        News::Lost(error) => ctx.out.note(format!("{}; retrying", chain(error))),
        News::Back(lack) => {
            ctx.out.note(format!("reconnected to {}", board.url()));
            lack.iter().for_each(|lack| ctx.out.note(lack));
        }
        News::Listening(Some(lack)) => ctx.out.note(lack),
        News::Listening(None) | News::Event(_) => {}
    }
}

/// Limits a wait; `what` begins the error, and the time ends it.
pub(crate) async fn within<T, E: Into<anyhow::Error>>(
    limit: Option<Deadline>,
    what: &str,
    wait: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<T> {
    let wait = async { wait.await.map_err(Into::into) };
    match limit {
        Some(limit) => limit.bound(|waited| out_of_time(waited, what), wait).await,
        None => wait.await,
    }
}

/// Limits a wait from the subscription on. If the board is unreachable when the time ends, that is the error.
pub(crate) async fn until<'a, T>(
    limit: Option<Deadline>,
    what: &str,
    waiter: impl Future<Output = board::Result<Waiter<'a>>>,
    wait: impl AsyncFnOnce(&mut Waiter<'a>) -> board::Result<T>,
) -> anyhow::Result<T> {
    let mut begun = None;
    let ended = within(limit, what, async {
        let waiter = begun.insert(waiter.await?);
        wait(waiter).await
    });
    let ended = ended.await;
    match (limit, begun) {
        (Some(limit), None) => ended.map_err(|error| blamed(error, limit.length, NO_REPLY)),
        (Some(limit), Some(waiter)) if waiter.is_lost() => {
            ended.map_err(|error| blamed(error, limit.length, UNREACHABLE))
        }
        _ => ended,
    }
}

pub(crate) fn blamed(error: anyhow::Error, timeout: Duration, what: &str) -> anyhow::Error {
    match error.downcast_ref() {
        Some(CommandError::TimedOut(_)) => {
            let waited = duration::exact(timeout);
            CommandError::OutOfReach(format!("{what} {waited}")).into()
        }
        _ => error,
    }
}

pub(crate) fn out_of_time(timeout: Duration, what: &str) -> anyhow::Error {
    let waited = duration::exact(timeout);
    CommandError::TimedOut(format!("{what} {waited}")).into()
}
