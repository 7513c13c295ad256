//! `jobboard restore`.

use super::parts::{
    dry_run::dry_run,
    logbook::BooklessArgs,
    reason::ReasonArgs,
    select::{Selection, confirm_bulk},
    shared_trash::SharedArgs,
    verb::{Verb, act},
};
use crate::{
    context::{Consent, Context},
    job::{Entry, Restore, Shelf},
};

/// Move trashed jobs back to the board
///
/// The jobs become UNCLAIMED, and their attempts restart from zero.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    bookless: BooklessArgs,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: RestoreArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "restore",
        past: "restored",
    };
    args.selection.require()?;
    let board = args.selection.board(ctx)?;
    let mut chosen = args
        .selection
        .look_up(ctx, &*board, &[Shelf::Trash])
        .await?;
    args.shared.narrow(ctx, &*board, &mut chosen);
    let mut chosen = args.selection.bounded(ctx, chosen)?;
    args.bookless.refuse(ctx, &mut chosen).await?;
    if args.selection.dry_run {
        return dry_run(ctx, verb.now, chosen);
    }
    confirm_bulk(ctx, &args.consent, verb.now, &chosen)?;
    args.shared.confirm_unknown(ctx, &args.consent, &chosen)?;
    let remark = args.reason.who_and_why(ctx, verb);
    let restore = async |entries: &[&Entry]| {
        let keys = entries.iter().map(|entry| entry.key().clone());
        let jobs: Vec<_> = keys
            .map(|key| Restore::from_trash(key, Some(remark.clone())))
            .collect();
        board.restore(&jobs).await
    };
    act(ctx, verb, chosen, restore, |(), done| (done, None)).await
}
