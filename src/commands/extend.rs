//! `jobboard extend`.

use std::time::Duration;

use super::{
    bulk::{
        act::{Effect, Pace, Verb, act},
        references::{Scope, references},
        select::{Choice, Chosen, confirm, named},
        settle::{refuse_process_name, stated_owner},
    },
    parts::{octavia::refuse_to_hold, under_claim::expiry},
};
use crate::{
    board::BoardError,
    context::{Consent, Context},
    exit::CommandError,
    job::{Claim, Entry, Location},
};

/// Set a new expiry on claims
///
/// Without --force, acts only on your own claims (--who). The expiry counts from now. With --force, an operator can
/// extend the claim of an owner that cannot do so itself, so that no one else claims the job in the meantime. If
/// `jobboard` runs a command under that claim, the command still ends when its lease ends, not at the new expiry.
#[derive(Debug, clap::Args)]
pub(crate) struct ExtendArgs {
    /// Jobs: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,

    /// Release the claim after this long, for example 15m
    #[arg(long, value_name = "DURATION", value_parser = expiry)]
    expiry: Duration,

    /// Extend the claim of another owner, named by --owner
    #[arg(long, requires = "owner")]
    force: bool,

    /// With --force: act only if this owner holds the claim
    #[arg(long, value_name = "NAME", requires = "force")]
    owner: Option<String>,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: ExtendArgs) -> anyhow::Result<()> {
    let stated = stated_owner(args.owner.as_deref())?;
    if stated.is_none() {
        refuse_process_name(ctx)?;
    }
    let board = ctx.writable_board()?;
    let wanted = references(ctx, &*board, Scope::board("extend"), &args.jobs).await?;
    refuse_to_hold(ctx, Some(args.expiry), "use an --expiry of at most 1h")?;
    let chosen = Chosen {
        jobs: named(ctx, &*board, &[Location::Board], &wanted).await?,
        choice: Choice::Named,
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
        let effect = || Effect {
            field: Some(("expires_in", args.expiry.as_secs_f64().into())),
            note: None,
        };
        let renewed = renewed.into_iter().map(|renewed| match (renewed, &stated) {
            (Err(BoardError::NotOwner { .. }), Some(owner)) => {
                Err(CommandError::NotHeldBy(owner.clone()).into())
            }
            (renewed, _) => Ok(renewed.map(|()| effect())?),
        });
        Ok(renewed.collect())
    };
    act(ctx, verb, Pace::FULL, None, chosen, extend).await
}
