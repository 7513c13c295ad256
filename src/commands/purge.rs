//! `jobboard purge`.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::parts::{
    dry_run::dry_run,
    forgotten::Forgotten,
    reason::ReasonArgs,
    select::{Named, Selection, confirm},
    shared_trash::SharedArgs,
    verb::{Verb, act},
};
use crate::{
    board::Settled,
    context::{Consent, Context},
    duration,
    job::{Entry, Identity, Origin, Purge, Remark, Shelf},
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
    let verb = Verb {
        now: "purge",
        past: "purged",
    };
    let PurgeSelection {
        selection,
        older_than,
        all,
    } = &args.selection;
    if !all && older_than.is_none() {
        selection.require_by("--state, --name, --filter, --older-than or --all")?;
    }
    let board = selection.board(ctx)?;
    let mut chosen = selection.look_up(ctx, &*board, &[Shelf::Trash]).await?;
    args.shared.narrow(ctx, &*board, &mut chosen);
    if let Some(age) = older_than {
        let now = Utc::now();
        chosen.jobs.retain(|named| is_older(named, *age, now));
    }
    let chosen = selection.bounded(ctx, chosen)?;
    if selection.dry_run {
        return dry_run(ctx, verb.now, chosen);
    }
    confirm(ctx, &args.consent, "purge {} permanently?", &chosen)?;
    let remark = args.reason.who_and_why(ctx, verb);
    let purge = async |entries: &[&Entry]| {
        let purges = entries.iter().map(|entry| Purge {
            key: entry.key().clone(),
            // Another board's job does not belong into this board's history.
            job: entry
                .job()
                .filter(|job| !matches!(job.origin, Origin::Beside(_)))
                .map(Identity::from),
            remark: Some(with_reason(&remark, entry)),
        });
        board.purge(&purges.collect::<Vec<_>>()).await
    };
    let forgotten = Forgotten::default();
    let told = |settled: &Settled, done| (done, forgotten.warning(settled));
    act(ctx, verb, chosen, purge, told).await
}

/// Adds the reason of the trashing if the purge has none.
fn with_reason(remark: &Remark, entry: &Entry) -> Remark {
    let given_up = entry.job().and_then(|job| job.history.remark.as_ref());
    let reason = remark.reason.as_ref();
    Remark {
        reason: reason
            .or(given_up.and_then(|it| it.reason.as_ref()))
            .cloned(),
        ..remark.clone()
    }
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
