//! `jobboard run`.

use std::time::Duration;

use anyhow::Context as _;

use super::{
    draft::DraftArgs,
    perform::{Held, OnFailure, Performer, lease, ours},
};
use crate::{
    board::{BoardError, BoardExt},
    conductor::clock::Boottime,
    context::Context,
};

/// Post a job, run its command here, and consume it
///
/// The job is on the board, claimed, while its command runs on this terminal. When the command
/// succeeds the job is consumed; otherwise it goes back to the board. Exits as the command does,
/// with 125 for what is about the board and not about the command.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The name of the job; names need not be unique
    name: String,

    #[command(flatten)]
    draft: DraftArgs,

    /// What becomes of the job if the command fails
    #[arg(long, value_enum, value_name = "FATE", default_value_t)]
    on_failure: OnFailure,

    /// How long the claim outlives us if we die; it is renewed all the while
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<Duration>,

    /// The command that performs the job
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn run(ctx: &mut Context, args: RunArgs) -> anyhow::Result<()> {
    perform(ctx, args).await.map_err(ours)
}

async fn perform(ctx: &mut Context, args: RunArgs) -> anyhow::Result<()> {
    let draft = args.draft.draft(&ctx.config, &args.name, &args.command)?;
    let board = ctx.writable_board()?;
    let performer =
        Performer::prepare(ctx, &*board, &args.command, args.lease, args.on_failure).await?;
    let asked = Boottime::now();
    let posted = board.post_one(&draft, Some(performer.claimant())).await;
    let posted = match posted {
        Err(BoardError::Exists { uuid, .. }) if args.draft.is_unique() => {
            ctx.out
                .note(format!("{uuid} is still on the board, and nothing was run"));
            return Ok(());
        }
        posted => posted.with_context(|| ctx.trying("post", &args.name))?,
    };
    let job = Held {
        key: posted.key,
        uuid: draft.uuid.to_string(),
        name: draft.name,
        fence: posted.fence.context("the job was posted without a claim")?,
        attempt: 1,
        asked,
    };
    performer.perform(ctx, board, job).await
}
