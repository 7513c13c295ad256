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
/// Only the owner may, under the name that claimed the job (--who). The board remembers
/// it without its details (`list --past`); to keep those, use `trash`. `--force` consumes a job
/// whoever owns it, or nobody.
#[derive(Debug, clap::Args)]
pub(crate) struct ConsumeArgs {
    /// They are finished because they failed: so they are remembered, and who waits for one is told
    ///
    /// `wait` and `post --wait` exit with 9 then, with the --reason.
    #[arg(long)]
    failed: bool,

    #[command(flatten)]
    settle: SettleArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: ConsumeArgs) -> anyhow::Result<()> {
    let verb = Verb {
        // So that what is proposed instead says it, too.
        now: match args.failed {
            true => "consume --failed",
            false => "consume",
        },
        past: "consumed",
    };
    let outcome = match args.failed {
        true => {
            let reason = args.settle.reason.given();
            let reason = reason.as_deref().unwrap_or("somebody said so");
            Outcome::GiveUp(Failure::told(reason, &ctx.who().text()))
        }
        false => Outcome::Consume,
    };
    settle(ctx, args.settle, verb, outcome).await
}
