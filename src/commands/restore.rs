//! `jobboard restore`.

use super::bulk::{action::Action, args::RevivalArgs};
use crate::context::Context;

/// Move trashed jobs back to the board
///
/// The jobs become UNCLAIMED, and their attempts restart from zero. JOB may also be a unique name.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    revival: RevivalArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: RestoreArgs) -> anyhow::Result<()> {
    let revival = args.revival;
    revival.selection.require()?;
    let board = revival.selection.preview.board(ctx)?;
    let task = revival.task(ctx, &*board, Action::Restore, |_| Ok(()));
    let task = task.await?;
    match revival.agreed(ctx, &*board, task).await? {
        Some(task) => task.carry_out(ctx, &*board).await,
        None => Ok(()),
    }
}
