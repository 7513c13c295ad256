//! `jobboard status`.

mod screen;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use self::screen::Status;
pub(super) use self::screen::{EXPIRES, NAMES, OWNERS, ended, name_cells, owner_cells};
use super::parts::notes;
use crate::{
    board::{Board, BoardError, Detail, Query},
    context::Context,
    diagnosis::{OutcomeCounts, Survey, apart, read_snapshot},
    job::Location,
};

/// Show the board at a glance
///
/// Shows the number of jobs by state and by problem, the jobs that ended in the last 24 hours, the oldest unclaimed
/// job and the longest claim. Also lists the most frequent names (FAILING counts jobs that failed since their last
/// retry) and the owners with the most claims (HELD is the longest claim, EXPIRES the next expiry, NEVER the number
/// of claims without expiry). `doctor` shows the causes and the fixes.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Explain these jobs instead, as `explain` does.
    #[arg(value_name = "JOB", hide = true)]
    jobs: Vec<String>,
}

pub(crate) async fn run(ctx: &mut Context, args: StatusArgs) -> anyhow::Result<()> {
    if !args.jobs.is_empty() {
        return super::explain::jobs(ctx, args.jobs).await;
    }
    let board = ctx.board()?;
    let trying = || ctx.trying("read", "the board");
    let health = board.health().await.with_context(trying)?;
    notes::note_if_unused(ctx, &*board, &health);
    let snapshot = read_snapshot(&ctx.config, &*board).await?;
    let now = snapshot.now;
    let survey = Survey::take(&*board, snapshot).await.with_context(trying)?;
    let ended = recent_outcomes(&*board, now, ctx.config.history.value).await;
    let (ended, unread) = apart(ended).with_context(trying)?;
    let name = board.url().to_owned();
    let status = Status::new(name, ctx.program(), &health, survey, ended, unread);
    for what in &status.unseen {
        ctx.out.note(format!("warning: cannot read {what}"));
    }
    ctx.out.report(&status)?;
    notes::note_peers_at_terminal(ctx, &*board);
    Ok(())
}

/// Counts recent outcomes; the history returns the latest first.
async fn recent_outcomes(
    board: &dyn Board,
    now: DateTime<Utc>,
    history: u32,
) -> Result<OutcomeCounts, BoardError> {
    let mut ended = OutcomeCounts::lately(now);
    let mut entries = board.entries(Query::all(Location::History, Detail::Brief));
    while let Some(entry) = entries.try_next().await? {
        if !ended.add(&entry) {
            return Ok(ended);
        }
    }
    ended.end(history);
    Ok(ended)
}
