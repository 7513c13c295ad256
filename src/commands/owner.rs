//! `jobboard owner`.

use std::borrow::Cow;

use anyhow::Context as _;
use serde::Serialize;

use super::{complete, select::reference};
use crate::{
    board::BoardExt,
    context::Context,
    exit::CommandError,
    job::Shelf,
    output::{Page, Record, Report},
};

/// Print who has claimed a job
///
/// Exits with 6 and prints nothing when nobody has.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnerArgs {
    /// The job: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for standard
    /// input
    #[arg(add = complete::jobs())]
    job: String,
}

#[derive(Debug, Serialize)]
struct Ownership {
    uuid: Option<String>,
    name: String,
    owner: String,
    #[serde(skip)]
    reference: String,
}

impl Record for Ownership {
    fn fields(&self) -> Vec<String> {
        vec![self.owner.as_str().into()]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.reference))
    }
}

impl Report for Ownership {
    fn human(&self, page: &mut Page) {
        page.line().plain(&self.owner);
    }
}

pub(crate) async fn run(ctx: &mut Context, args: OwnerArgs) -> anyhow::Result<()> {
    let wanted = reference(ctx, &args.job)?;
    let board = ctx.board()?;
    let entry = board
        .resolve_one(Shelf::Board, &wanted)
        .await
        .with_context(|| ctx.trying("tell the owner of", &wanted))?;
    let Some(holding) = entry.holding() else {
        return Err(CommandError::Nothing(format!("nobody has claimed {}", entry.name())).into());
    };
    let Some(owner) = &holding.owner else {
        return Err(CommandError::UnreadableOwner(entry.name().to_owned()).into());
    };
    ctx.out.report(&Ownership {
        uuid: entry.job().map(|job| job.uuid.clone()),
        name: entry.name().to_owned(),
        owner: owner.to_string(),
        reference: entry.reference().into_owned(),
    })
}
