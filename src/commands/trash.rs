//! `jobboard trash`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{context::Context, job::Outcome};

/// Move jobs to the trash
///
/// Only the owner may, under the name that claimed the job (--who). `list --trash` shows what is
/// there, `restore` puts it back, `purge` removes it for good. `--force` trashes a job whoever owns
/// it, or nobody, and also records that cannot be read.
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
    settle(ctx, args.settle, verb, Outcome::Trash(None)).await
}
