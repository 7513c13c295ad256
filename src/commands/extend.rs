//! `jobboard extend`.

use std::time::Duration;

use anyhow::Context as _;

use super::{claim::expiry, complete, done::Done, select::reference};
use crate::{
    board::BoardExt,
    context::Context,
    job::{Claim, Shelf},
};

/// Give a claim a new expiry
///
/// Only the owner may, under the name that claimed the job (--who). The time counts from now.
#[derive(Debug, clap::Args)]
pub(crate) struct ExtendArgs {
    /// The job: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for standard
    /// input
    #[arg(add = complete::jobs())]
    job: String,

    /// Let the claim lapse after this long, such as 15m
    #[arg(long, value_name = "DURATION", value_parser = expiry)]
    expiry: Duration,
}

pub(crate) async fn run(ctx: &mut Context, args: ExtendArgs) -> anyhow::Result<()> {
    let wanted = reference(ctx, &args.job)?;
    let board = ctx.writable_board()?;
    let entry = board
        .resolve_one(Shelf::Board, &wanted)
        .await
        .with_context(|| ctx.trying("extend", &wanted))?;
    let claim = Claim {
        key: entry.key().clone(),
        owner: ctx.who().clone(),
        fence: None,
        term: args.expiry,
    };
    board
        .renew_one(&claim)
        .await
        .with_context(|| ctx.trying("extend", entry.name()))?;
    let uuid = entry.job().map(|job| job.uuid.as_str()).unwrap_or_default();
    ctx.out.report(
        &Done::new("extended", uuid, entry.name()).with("expires_in", args.expiry.as_secs_f64()),
    )
}
