//! `jobboard consume`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{context::Context, job::Outcome};

/// Remove finished jobs from the board
///
/// Only the owner may, under the name that claimed the job (--who). The board remembers
/// it without its details (`list --past`); to keep those, use `trash`. `--force` consumes a job
/// whoever owns it, or nobody.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsumeArgs {
    #[command(flatten)]
    settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: ConsumeArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "consume",
        past: "consumed",
    };
    settle(ctx, args.settle, verb, Outcome::Consume).await
}
