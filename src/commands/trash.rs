//! `jobboard trash`.

use super::bulk::{action::Action, args::SettleArgs};
use crate::context::Context;

/// Move jobs to the trash
///
/// Without --force, acts only on your own claims (--who). --force also trashes unclaimed jobs, jobs that another
/// owner has claimed, and unreadable records. `list --trash` shows the trash, `restore` moves a job back, and `purge`
/// deletes it for good. JOB may also be a unique name.
#[derive(Debug, clap::Args)]
pub(crate) struct TrashArgs {
    /// Record that the job failed, with --reason
    ///
    /// `doctor`, `list --failed` and `retry --problem failed` then include it.
    #[arg(long)]
    pub(super) failed: bool,

    #[command(flatten)]
    pub(super) settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: TrashArgs) -> anyhow::Result<()> {
    let failed = args.failed;
    args.settle
        .run(ctx, |force| Action::Trash { force, failed })
        .await
}
