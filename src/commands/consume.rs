//! `jobboard consume`.

use super::parts::{
    settle::{SettleArgs, settle},
    verb::Verb,
};
use crate::{
    context::Context,
    job::{Failure, Outcome},
};

/// Remove finished jobs from the board
///
/// Requires your own claim (--who). The history keeps the job without its details (`list --history`); to keep
/// the details, use `trash`. --force consumes a job with any owner, or none.
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
    let verb = Verb {
        // The suggestion repeats the option.
        now: match args.failed {
            true => "consume --failed",
            false => "consume",
        },
        past: "consumed",
    };
    let outcome = match args.failed {
        true => {
            let reason = args.settle.reason.given();
            let reason = reason.as_deref().unwrap_or("marked as failed by hand");
            Outcome::GiveUp(Failure::told(reason, &ctx.who().text()))
        }
        false => Outcome::Consume,
    };
    settle(ctx, args.settle, verb, outcome, None).await
}
