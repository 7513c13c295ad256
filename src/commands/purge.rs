//! `jobboard purge`.

use super::{
    bulk::{action::Action, select::Selection, shared_trash::SharedArgs, task::Task},
    parts::reason::ReasonArgs,
};
use crate::{
    board::filter::{Filter, InvalidFilter},
    context::{Consent, Context},
    duration,
};

/// Delete trashed jobs for good
///
/// Asks first, unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    selection: Selection,

    /// Purge jobs that have been in the trash for longer than this
    #[arg(long, value_name = "DURATION", value_parser = trashed_before, conflicts_with = "jobs")]
    older_than: Option<Filter>,

    /// Purge the whole trash
    #[arg(long, conflicts_with_all = ["jobs", "filter", "state", "with_name", "older_than"])]
    all: bool,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: PurgeArgs) -> anyhow::Result<()> {
    let mut selection = args.selection;
    selection.filter.extend(args.older_than);
    if !args.all {
        selection.require_by("--state, --name, --filter, --older-than or --all")?;
    }
    let board = selection.preview.board(ctx)?;
    let action = Action::Purge;
    let mut chosen = selection.look_up(ctx, &*board, action.scope()).await?;
    args.shared.narrow(ctx, &*board, &mut chosen);
    let chosen = selection.bounded(ctx, chosen)?;
    let task = Task::new(ctx, action, &args.reason, chosen);
    task.finish(ctx, &*board, &selection.preview, &args.consent)
        .await
}

fn trashed_before(age: &str) -> Result<Filter, String> {
    duration::parse(age).map_err(|error| error.to_string())?;
    let filter = format!("trashed>{age}").parse();
    filter.map_err(|error: InvalidFilter| error.to_string())
}
