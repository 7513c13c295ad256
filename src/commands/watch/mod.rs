//! `jobboard watch`.

mod event_filter;
mod handler;
mod printed_event;
mod replay;

use std::{io, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, stream::BoxStream};
use rustix::process::Signal;
use tokio::time::{self, Instant};

pub(super) use self::printed_event::PrintedEvent;
use self::{
    event_filter::EventFilter,
    handler::Handler,
    replay::{ReplayedEvents, past_events},
};
use super::parts::{notes, octavia::AboutArgs, under_claim, waiting::print_news};
use crate::{
    board::{
        self, Board, Event, EventKind,
        filter::{Filter, Filters},
        follow::{News, Start, follow},
    },
    context::Context,
    duration,
    exit::CommandError,
    optional::or_never,
    output::count_jobs,
    process::signal::Signals,
    watched_fd::WatchedFd,
};

/// Stream board events
///
/// Prints one line per event, including events caused by other clients: posted claimed abandoned expired consumed
/// trashed restored purged extended conductor-joined conductor-left paused resumed. `resync` means that events may be
/// missing, for example after a broken connection: read the board again. The order of events with the same time is
/// undefined.
///
/// In a pipe, each line has these tab-separated fields: time, event, uuid, name, owner, fence, key, and for
/// interventions `by` and `reason`. If the board is unreachable, at the start or later, the command keeps retrying.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Print only events of matching jobs; repeat to narrow further
    ///
    /// Uses the filters of `list` on the job after the event. A job that is gone is matched by its last known
    /// state, or by the fields of the event: name, owner, priority, sequence, state. `resync` is always printed.
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    #[command(flatten)]
    about: AboutArgs,

    /// Print only this kind of event; repeat the option for several
    #[arg(long, value_name = "NAME")]
    event: Vec<EventKind>,

    /// First print the recorded events of this period
    ///
    /// They come from the records on the board, in the trash and in the history: when jobs were posted, last
    /// claimed, failed, trashed and ended. --filter matches the jobs as they are now. Jobs that Python services
    /// ended are not recorded.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    since: Option<Duration>,

    /// Exit after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Exit after this long, and after the commands of earlier events: with 124 if --count was not reached, else with 0
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Run this command for each event; it gets the event as JSON on standard input
    ///
    /// Commands run one at a time, in order. Up to 10,000 events are queued; beyond that, one resync replaces the
    /// rest. If a command fails, `watch` reports it, runs the next one, and finally exits with 7. After --timeout,
    /// the commands of earlier events still run. Stopping jobboard stops the command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl WatchArgs {
    pub(crate) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }
}

pub(crate) async fn run(ctx: &mut Context, args: WatchArgs) -> anyhow::Result<()> {
    let mut signals = Signals::ending()?;
    let board = ctx.board()?;
    let mut handler = match args.command.as_slice() {
        [] => None,
        command => Some(Handler::prepare(ctx, command)?),
    };
    let limit = args.timeout.map(|timeout| Instant::now() + timeout);
    // With a command, the session ends itself once the commands of the earlier events have run.
    let (own_limit, limit) = match handler {
        Some(_) => (limit, None),
        None => (None, limit),
    };
    let timed_out = || timed_out(args.count, args.timeout);
    let about = args.about.filters(ctx).await?;
    let filters = args.filter.into_iter().chain(about);
    let filters = Filters::new(filters.collect());
    let watch = WatchSession {
        board: &*board,
        news: follow(&*board, Start::Whenever),
        filter: EventFilter::new(args.event, filters),
        since: args.since.map(ago),
        replayed: ReplayedEvents::default(),
        left: args.count,
        limit: own_limit,
        is_over: false,
    };
    let reader = ctx.out.reader().and_then(io::Result::ok);
    let ended = tokio::select! {
        biased;
        ended = watch.run(ctx, handler.as_mut()) => match ended {
            Ok(true) => timed_out(),
            ended => ended.map(drop),
        },
        signal = signals.next() => interrupted(ctx, signal),
        () = or_never(limit.map(time::sleep_until)) => timed_out(),
        () = or_never(reader.as_ref().map(WatchedFd::failed)) => Ok(()),
    };
    match handler {
        None => ended,
        Some(handler) => handler.end(ended).await,
    }
}

fn interrupted(ctx: &Context, signal: Signal) -> anyhow::Result<()> {
    // The terminal echoes the pressed key, so the prompt gets a line of its own.
    ctx.out.note_at_terminal("");
    Err(under_claim::code(128 + signal.as_raw()))
}

fn timed_out(count: Option<u64>, timeout: Option<Duration>) -> anyhow::Result<()> {
    let Some(count) = count else {
        return Ok(());
    };
    let waited = duration::exact(timeout.unwrap_or_default());
    let message = format!("watched for {waited} without reaching --count {count}");
    Err(CommandError::TimedOut(message).into())
}

fn ago(since: Duration) -> DateTime<Utc> {
    let since = TimeDelta::from_std(since).ok();
    let then = since.and_then(|since| Utc::now().checked_sub_signed(since));
    then.unwrap_or(DateTime::<Utc>::MIN_UTC)
}

struct WatchSession<'a> {
    board: &'a dyn Board,
    news: BoxStream<'a, board::Result<News>>,
    filter: EventFilter,
    since: Option<DateTime<Utc>>,
    replayed: ReplayedEvents,
    /// Number of events still to print before the command ends.
    left: Option<u64>,
    limit: Option<Instant>,
    /// Whether the limit has passed, so that no further event counts.
    is_over: bool,
}

impl WatchSession<'_> {
    /// Returns whether the time limit ended it before the last event.
    async fn run(
        mut self,
        ctx: &mut Context,
        mut handler: Option<&mut Handler>,
    ) -> anyhow::Result<bool> {
        loop {
            let is_at_work = handler.as_ref().is_some_and(|it| it.is_at_work());
            let is_full = self.left == Some(0);
            if !is_at_work && (is_full || self.is_over) {
                return Ok(!is_full);
            }
            let news = match &mut handler {
                None => self.news.next().await,
                Some(handler) => tokio::select! {
                    biased;
                    handled = handler.step(), if is_at_work => {
                        handled?;
                        continue;
                    }
                    // Events that are already here count, even if the time is up.
                    news = self.news.next(), if !is_full && !self.is_over => news,
                    () = or_never(self.limit.map(time::sleep_until)), if !self.is_over => {
                        self.is_over = true;
                        continue;
                    }
                },
            };
            let Some(news) = news else { return Ok(false) };
            match news.with_context(|| ctx.trying("watch", "the jobs"))? {
                News::Event(event) => self.print(ctx, handler.as_deref_mut(), event).await?,
                news => {
                    print_news(ctx, self.board, &news);
                    if matches!(news, News::Listening(_)) {
                        self.print_start(ctx).await?;
                    }
                    if matches!(news, News::Listening(_) | News::Back(_)) {
                        self.replay(ctx, handler.as_deref_mut()).await?;
                    }
                }
            }
        }
    }

    async fn print_start(&self, ctx: &Context) -> anyhow::Result<()> {
        match self.board.health().await {
            Ok(health) => {
                ctx.out.note(format!(
                    "watching {}: {} on the board, {} in the trash",
                    self.board.url(),
                    count_jobs(health.jobs),
                    health.trashed
                ));
                notes::note_if_unused(ctx, self.board, &health);
                Ok(())
            }
            // The stream is about to report the same error.
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => Err(error).with_context(|| ctx.trying("watch", "the jobs")),
        }
    }

    async fn replay(
        &mut self,
        ctx: &mut Context,
        mut handler: Option<&mut Handler>,
    ) -> anyhow::Result<()> {
        let Some(since) = self.since else {
            return Ok(());
        };
        match past_events(ctx, self.board, &mut self.filter, since).await {
            Ok((events, read)) => {
                if let Some(handler) = &mut handler {
                    handler.expect_replay(events.len());
                }
                for event in &events {
                    let event = PrintedEvent::of(event);
                    self.deliver(ctx, handler.as_deref_mut(), event).await?;
                }
                self.replayed = ReplayedEvents::new(events, read);
                self.since = None;
                Ok(())
            }
            // The stream is about to report this error, and the reconnection.
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => Err(error).with_context(|| ctx.trying("watch", "the jobs")),
        }
    }

    async fn print(
        &mut self,
        ctx: &mut Context,
        handler: Option<&mut Handler>,
        event: Event,
    ) -> anyhow::Result<()> {
        if self.left == Some(0) || self.replayed.has(&event) {
            return Ok(());
        }
        match self.filter.admit(self.board, &event).await {
            Some(event) => self.deliver(ctx, handler, event).await,
            None => Ok(()),
        }
    }

    async fn deliver(
        &mut self,
        ctx: &mut Context,
        handler: Option<&mut Handler>,
        event: PrintedEvent,
    ) -> anyhow::Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        let counts = match handler {
            Some(handler) => handler.take(event),
            None => {
                ctx.out.report_aside(&event).await?;
                true
            }
        };
        if counts {
            self.left = self.left.map(|left| left - 1);
        }
        Ok(())
    }
}
