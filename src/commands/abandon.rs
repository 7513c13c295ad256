//! `jobboard abandon`.

use super::bulk::{action::Action, args::SettleArgs};
use crate::context::Context;

/// Release claimed jobs back to the board
///
/// Without --force, acts only on your own claims (--who). Each job becomes UNCLAIMED. --force releases the claim of
/// another owner: if its process and its commands are known to be gone, conductors retry the job immediately;
/// otherwise they wait until the claim would have expired.
#[derive(Debug, clap::Args)]
pub(crate) struct AbandonArgs {
    #[command(flatten)]
    pub(super) settle: SettleArgs,

    /// With --force: do not wait for the old command; use only if you know that it has ended
    #[arg(long, requires = "force")]
    pub(super) now: bool,
}

pub(crate) async fn run(ctx: &mut Context, args: AbandonArgs) -> anyhow::Result<()> {
    let now = args.now;
    args.settle
        .run(ctx, |force| Action::Abandon { force, now })
        .await
}
