//! `jobboard abandon`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{
    context::Context,
    job::{Aftermath, Outcome},
};

/// Release claimed jobs back to the board
///
/// Requires your own claim (--who). Each job becomes UNCLAIMED. --force releases the claim of another owner.
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
