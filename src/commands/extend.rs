//! `jobboard extend`.

use std::time::Duration;

use super::parts::{
    done::Done,
    octavia::refuse_to_hold,
    select::{Chosen, confirm, named, references},
    settle::stated_owner,
    under_claim::expiry,
    verb::{Verb, act},
};
use crate::{
    board::BoardError,
    context::{Consent, Context},
    exit::CommandError,
    job::{Claim, Entry, Shelf},
};

/// Give claims a new expiry
///
/// Only the owner may, under the name that claimed the job (--who). The time counts from now. With
/// --force an operator keeps a claim from lapsing whose holder cannot: nobody else has the job meanwhile.
/// A command under it that `jobboard` runs ends all the same, when its own lease is over.
#[derive(Debug, clap::Args)]
pub(crate) struct ExtendArgs {
    /// The jobs: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for one a
    /// line on standard input
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,

    /// Let the claim lapse after this long, such as 15m
    #[arg(long, value_name = "DURATION", value_parser = expiry)]
    expiry: Duration,

    /// Do it for whoever has the jobs, whom --owner names
    #[arg(long, requires = "owner")]
    force: bool,

    /// With --force: act only on jobs that are claimed by this name, whatever the board showed before
    #[arg(long, value_name = "NAME", requires = "force")]
    owner: Option<String>,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: ExtendArgs) -> anyhow::Result<()> {
    let stated = stated_owner(args.owner.as_deref())?;
    let wanted = references(ctx, &args.jobs)?;
    let board = ctx.writable_board()?;
    refuse_to_hold(ctx, Some(args.expiry), "an --expiry of 1h is the longest")?;
    let chosen = Chosen {
        jobs: named(ctx, &*board, &[Shelf::Board], &wanted).await?,
        is_bulk: false,
    };
    let verb = Verb {
        now: "extend",
        past: "extended",
    };
    if let Some(owner) = &stated {
        let question = format!("extend {{}} of {owner} by force?");
        confirm(ctx, &args.consent, &question, &chosen)?;
    }
    let owner = stated.as_ref().unwrap_or(ctx.who()).clone();
    let extend = async |entries: &[&Entry]| {
        let claims = entries.iter().map(|entry| Claim {
            key: entry.key().clone(),
            owner: owner.clone(),
            fence: None,
            term: args.expiry,
        });
        let renewed = board.renew(&claims.collect::<Vec<_>>()).await?;
        let renewed = renewed.into_iter().map(|renewed| match (renewed, &stated) {
            (Err(BoardError::NotOwner { .. }), Some(owner)) => {
                Err(CommandError::NotHeldBy(owner.clone()).into())
            }
            (renewed, _) => renewed.map_err(anyhow::Error::from),
        });
        Ok(renewed.collect())
    };
    let expires_in = args.expiry.as_secs_f64();
    let told = |(): &(), done: Done| (done.with("expires_in", expires_in), None);
    act(ctx, verb, chosen, extend, told).await
}
