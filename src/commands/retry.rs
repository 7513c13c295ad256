//! `jobboard retry`.

use chrono::{DateTime, Utc};

use super::parts::{
    dry_run::dry_run,
    logbook::BooklessArgs,
    reason::ReasonArgs,
    select::{Chosen, Selection, confirm_bulk, count},
    shared_trash::SharedArgs,
    verb::{Pace, Verb, act_at},
};
use crate::{
    board::BoardError,
    context::{Consent, Context},
    job::{Entry, Remark, Restore, Shelf},
};

/// Retry failed jobs now, from the trash or from back-off
///
/// Makes jobs from the trash and jobs in back-off claimable immediately. Attempts restart from zero. A claimed
/// job is refused, and so is an untried job without back-off; a filter skips both. A filter takes jobs on the
/// board before jobs in the trash.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    selection: Selection,

    /// Keep the attempt and postponement counts
    #[arg(long)]
    keep_attempts: bool,

    /// Maximum pace, for example 5/s; also per m or h
    #[arg(long, value_name = "N/s", value_parser = Pace::parse)]
    rate: Option<Pace>,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    bookless: BooklessArgs,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: RetryArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "retry",
        past: "retried",
    };
    args.selection.require()?;
    let board = args.selection.board(ctx)?;
    let shelves = [Shelf::Board, Shelf::Trash];
    let mut chosen = args.selection.look_up(ctx, &*board, &shelves).await?;
    args.shared.narrow(ctx, &*board, &mut chosen);
    refuse_others(ctx, &mut chosen, args.keep_attempts);
    let mut chosen = args.selection.bounded(ctx, chosen)?;
    args.bookless.refuse(ctx, &mut chosen).await?;
    if args.selection.dry_run {
        return dry_run(ctx, verb.now, chosen);
    }
    confirm_bulk(ctx, &args.consent, verb.now, &chosen)?;
    args.shared.confirm_unknown(ctx, &args.consent, &chosen)?;
    let remark = args.reason.who_and_why(ctx, verb);
    let retry = async |entries: &[&Entry]| {
        let again = |entry: &&Entry| again(entry, args.keep_attempts, &remark);
        let jobs: Vec<_> = entries.iter().map(again).collect();
        board.restore(&jobs).await
    };
    let pace = args.rate.unwrap_or(Pace::FULL);
    act_at(ctx, (verb, pace), chosen, retry, |(), done| (done, None)).await
}

/// Rejects jobs that cannot be retried, or drops them from a selection by filter.
fn refuse_others(ctx: &Context, chosen: &mut Chosen, keeps_attempts: bool) {
    let (now, all) = (Utc::now(), chosen.jobs.len());
    for named in &mut chosen.jobs {
        if let Ok(entry) = &named.entry
            && let Err(refusal) = judge(entry, now, keeps_attempts)
        {
            named.entry = Err(refusal.into());
        }
    }
    if chosen.is_bulk {
        chosen.jobs.retain(|named| named.entry.is_ok());
        let left_out = all - chosen.jobs.len();
        if left_out > 0 {
            ctx.out.note(format!(
                "skipped because they are claimed or not delayed: {left_out} of {}",
                count(all as u64)
            ));
        }
    }
}

pub(super) fn again(entry: &Entry, keeps_attempts: bool, remark: &Remark) -> Restore {
    Restore {
        key: entry.key().clone(),
        shelf: entry.job().map_or(Shelf::Trash, |job| job.shelf),
        keeps_attempts,
        remark: Some(remark.clone()),
        edit: None,
    }
}

/// Returns the reason why a record cannot be retried, as last seen; the board checks again.
pub(super) fn judge(
    entry: &Entry,
    now: DateTime<Utc>,
    keeps_attempts: bool,
) -> Result<(), BoardError> {
    if let Some(holding) = entry.holding() {
        let owner = holding.owner.clone();
        return Err(BoardError::AlreadyClaimed { owner });
    }
    match entry {
        Entry::Malformed(record) => Err(record.into()),
        Entry::Job(job) if job.shelf == Shelf::Trash => Ok(()),
        Entry::Job(job) if job.history.is_in_the_way(now, keeps_attempts) => Ok(()),
        Entry::Job(_) => Err(BoardError::NotHeldBack),
    }
}
