//! `jobboard owner`.

use anyhow::Context as _;
use serde::Serialize;

use super::{complete, select::reference};
use crate::{
    board::BoardExt,
    context::Context,
    exit::CommandError,
    job::{Entry, Shelf},
    output::{Page, Record, Report, Text},
};

/// Print who has claimed a job
///
/// Exits with 6 and prints nothing when nobody has.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnerArgs {
    /// The job: a uuid or the beginning of one, @SEQUENCE, key:TEXT, or - for standard input
    #[arg(add = complete::jobs())]
    job: String,
}

#[derive(Debug, Serialize)]
struct Ownership {
    uuid: String,
    name: String,
    owner: String,
}

impl Record for Ownership {
    fn fields(&self) -> Vec<Text> {
        vec![self.owner.as_str().into()]
    }

    fn uuid(&self) -> Option<&str> {
        Some(&self.uuid)
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
    let nobody = || CommandError::Nothing(format!("nobody has claimed {}", entry.name()));
    let Entry::Job(job) = &entry else {
        return Err(nobody().into());
    };
    let owner = job.owner().ok_or_else(nobody)?;
    ctx.out.report(&Ownership {
        uuid: job.uuid.clone(),
        name: job.name.clone(),
        owner: owner.to_string(),
    })
}
