//! `jobboard abandon`.

use super::parts::{
    release::Release,
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{
    context::Context,
    job::{Aftermath, Outcome},
};

/// Release claimed jobs back to the board
///
/// Requires your own claim (--who). Each job becomes UNCLAIMED. --force releases the claim of another owner: if
/// its process and its commands are certainly gone, conductors retry the job immediately; otherwise they wait
/// until the claim would have expired.
#[derive(Debug, clap::Args)]
pub(crate) struct AbandonArgs {
    #[command(flatten)]
    settle: SettleArgs,

    /// With --force: end the wait for the old command, which must have ended
    #[arg(long, requires = "force")]
    now: bool,
}

pub(crate) async fn run(ctx: &mut Context, args: AbandonArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "abandon",
        past: "abandoned",
    };
    let release = args.now.then_some(Release::Now);
    settle(
        ctx,
        args.settle,
        verb,
        Outcome::Abandon(Aftermath::None),
        release,
    )
    .await
}
