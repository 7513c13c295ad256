//! `jobboard consume`.

use super::bulk::{action::Action, args::SettleArgs};
use crate::context::Context;

/// Remove finished jobs from the board
///
/// Without --force, acts only on your own claims (--who). The history keeps the job without its details (`list
/// --history`); to keep the details, use `trash`. --force also consumes unclaimed jobs and jobs that another owner
/// has claimed.
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
