//! `jobboard abandon`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{
    context::Context,
    job::{Aftermath, Outcome},
};

/// Give claimed jobs back to the board
///
/// Only the owner may, under the name that claimed the job (--who); the job is then UNCLAIMED
/// again. `--force` frees the claim of somebody who is gone.
#[derive(Debug, clap::Args)]
pub(crate) struct AbandonArgs {
    #[command(flatten)]
    settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: AbandonArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "abandon",
        past: "abandoned",
    };
    settle(ctx, args.settle, verb, Outcome::Abandon(Aftermath::None)).await
}
