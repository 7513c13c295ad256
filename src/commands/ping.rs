//! `jobboard ping`.

use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::{bulk::shared_trash::SharedArgs, parts::notes::note_if_unused};
use crate::{
    board::{BoardExt, Part},
    context::Context,
    exit::chain,
    output::{Page, Report, Tone},
};

/// Check that the board can be reached
///
/// Prints the server and its version, the round-trip time, and the number of jobs. Warns on standard error if a
/// Redis server is full, or evicts keys, which can delete claims, or if you may not read or write the history.
#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    shared: SharedArgs,
}

#[derive(Debug, Serialize)]
struct Pong {
    board: String,
    server: String,
    /// In seconds.
    round_trip: f64,
    jobs: u64,
    trashed: u64,
    history_problem: Option<String>,
}

impl Report for Pong {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.fact("server", &self.server);
        let micros = Duration::from_secs_f64(self.round_trip).as_micros();
        page.fact(
            "round trip",
            format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10),
        );
        page.fact("jobs", self.jobs.to_string());
        page.fact("in the trash", self.trashed.to_string());
    }
}

pub(crate) async fn run(ctx: &mut Context, PingArgs { shared }: PingArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let trying = || ctx.trying("ping", "the board");
    let (health, round_trip) = board.timed_health().await.with_context(trying)?;
    note_if_unused(ctx, &*board, &health);
    if let Some(problem) = health.problem {
        ctx.out.note(problem.summary);
    }
    let history_problem = match board.examine(Part::History).await {
        Ok(_) => None,
        Err(error) if error.is_retryable() => return Err(error).with_context(trying),
        Err(error) => Some(chain(&error)),
    };
    if let Some(problem) = &history_problem {
        ctx.out.note(format!(
            "warning: the history cannot be written or read: {problem}"
        ));
    }
    ctx.out.report(&Pong {
        board: board.url().to_owned(),
        server: health.server,
        round_trip: round_trip.as_secs_f64(),
        jobs: health.jobs,
        trashed: match shared.shared {
            true => health.trashed + health.trashed_by_siblings,
            false => health.trashed,
        },
        history_problem,
    })
}
