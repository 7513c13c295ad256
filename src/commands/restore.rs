//! `jobboard restore`.

use chrono::Utc;

use super::bulk::{action::Action, args::RevivalArgs, settle::require_end_of_command};
use crate::{context::Context, job::Entry};

/// Move trashed jobs back to the board
///
/// The jobs become UNCLAIMED, and their attempts restart from zero.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    revival: RevivalArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: RestoreArgs) -> anyhow::Result<()> {
    let revival = args.revival;
    revival.selection.require()?;
    let board = revival.selection.preview.board(ctx)?;
    let (now, ends_wait) = (Utc::now(), revival.now);
    let fits = |entry: &Entry| match ends_wait {
        true => Ok(()),
        false => require_end_of_command(entry, now),
    };
    let task = revival.task(ctx, &*board, Action::Restore, fits).await?;
    match revival.agreed(ctx, &*board, task).await? {
        Some(task) => task.carry_out(ctx, &*board).await,
        None => Ok(()),
    }
}
