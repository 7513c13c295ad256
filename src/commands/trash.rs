//! `jobboard trash`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{context::Context, job::Outcome};

/// Move jobs to the trash
///
/// Requires your own claim (--who). `list --trash` shows the trash, `restore` moves a job back, `purge` deletes
/// it for good. --force trashes a job with any owner or none, and unreadable records.
#[derive(Debug, clap::Args)]
pub(crate) struct TrashArgs {
    #[command(flatten)]
    settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: TrashArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "trash",
        past: "trashed",
    };
    settle(ctx, args.settle, verb, Outcome::Trash(None), None).await
}
