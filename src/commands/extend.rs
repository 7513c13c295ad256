//! `jobboard extend`.

use std::time::Duration;

use super::{
    completions::complete,
    parts::{
        done::Done,
        select::{Chosen, named, references},
        under_claim::expiry,
        verb::{Verb, act},
    },
};
use crate::{
    context::Context,
    job::{Claim, Entry, Shelf},
};

/// Give claims a new expiry
///
/// Only the owner may, under the name that claimed the job (--who). The time counts from now.
#[derive(Debug, clap::Args)]
pub(crate) struct ExtendArgs {
    /// The jobs: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for one a
    /// line on standard input
    #[arg(add = complete::jobs(), required = true, value_name = "JOB")]
    jobs: Vec<String>,

    /// Let the claim lapse after this long, such as 15m
    #[arg(long, value_name = "DURATION", value_parser = expiry)]
    expiry: Duration,
}

pub(crate) async fn run(ctx: &mut Context, args: ExtendArgs) -> anyhow::Result<()> {
    let wanted = references(ctx, &args.jobs)?;
    let board = ctx.writable_board()?;
    let chosen = Chosen {
        jobs: named(ctx, &*board, &[Shelf::Board], &wanted).await?,
        is_bulk: false,
    };
    let verb = Verb {
        now: "extend",
        past: "extended",
    };
    let owner = ctx.who().clone();
    let extend = async |entries: &[&Entry]| {
        let claims = entries.iter().map(|entry| Claim {
            key: entry.key().clone(),
            owner: owner.clone(),
            fence: None,
            term: args.expiry,
        });
        board.renew(&claims.collect::<Vec<_>>()).await
    };
    let expires_in = args.expiry.as_secs_f64();
    let told = |(): &(), done: Done| (done.with("expires_in", expires_in), None);
    act(ctx, verb, chosen, extend, told).await
}
