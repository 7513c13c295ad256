//! `jobboard trash`.

use super::bulk::{action::Action, args::SettleArgs};
use crate::context::Context;

/// Move jobs to the trash
///
/// Requires your own claim (--who). `list --trash` shows the trash, `restore` moves a job back, `purge` deletes
/// it for good. --force trashes a job whether or not it has an owner, and unreadable records.
#[derive(Debug, clap::Args)]
pub(crate) struct TrashArgs {
    #[command(flatten)]
    pub(super) settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: TrashArgs) -> anyhow::Result<()> {
    args.settle.run(ctx, |force| Action::Trash { force }).await
}
