//! `jobboard purge`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    bulk::{
        action::Task,
        deed::Deed,
        select::{Named, Selection},
        shared_trash::SharedArgs,
    },
    parts::reason::ReasonArgs,
};
use crate::{
    context::{Consent, Context},
    duration,
    job::Entry,
};

/// Delete trashed jobs for good
///
/// Asks first, unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    selection: PurgeSelection,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

/// The trashed jobs to purge.
#[derive(Debug, clap::Args)]
struct PurgeSelection {
    #[command(flatten)]
    selection: Selection,

    /// Purge jobs that have been in the trash for longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, conflicts_with = "jobs")]
    older_than: Option<Duration>,

    /// Purge the whole trash
    #[arg(long, conflicts_with_all = ["jobs", "filter", "state", "with_name", "older_than"])]
    all: bool,
}

pub(crate) async fn run(ctx: &mut Context, args: PurgeArgs) -> anyhow::Result<()> {
    let PurgeSelection {
        selection,
        older_than,
        all,
    } = &args.selection;
    if !all && older_than.is_none() {
        selection.require_by("--state, --name, --filter, --older-than or --all")?;
    }
    let board = selection.preview.board(ctx)?;
    let deed = Deed::Purge;
    let mut chosen = selection.look_up(ctx, &*board, deed.shelves()).await?;
    args.shared.narrow(ctx, &*board, &mut chosen);
    if let Some(age) = older_than {
        let now = Utc::now();
        chosen.jobs.retain(|named| is_older(named, *age, now));
    }
    let chosen = selection.bounded(ctx, chosen)?;
    let task = Task::new(ctx, deed, &args.reason, chosen);
    let how = (&selection.preview, &args.consent);
    task.finish(ctx, &*board, how).await
}

/// Whether a record has been in the trash for longer; without a time it has not.
fn is_older(named: &Named, age: Duration, now: DateTime<Utc>) -> bool {
    named
        .entry
        .as_ref()
        .ok()
        .and_then(Entry::job)
        .and_then(|job| job.trashed_on)
        .is_some_and(|time| (now - time).to_std().is_ok_and(|past| past > age))
}
