//! `jobboard consume`.

use super::bulk::{action::Action, args::SettleArgs};
use crate::context::Context;

/// Remove finished jobs from the board
///
/// Requires your own claim (--who). The history keeps the job without its details (`list --history`); to keep
/// the details, use `trash`. --force consumes a job that another owner holds, and an
/// unclaimed job.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsumeArgs {
    /// Record the outcome `failed` instead of `consumed`
    ///
    /// `wait` and `post --wait` then exit with 9 and print --reason.
    #[arg(long)]
    failed: bool,

    #[command(flatten)]
    settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: ConsumeArgs) -> anyhow::Result<()> {
    let failed = args.failed;
    args.settle
        .run(ctx, |force| Action::Consume { force, failed })
        .await
}
