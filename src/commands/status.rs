//! `jobboard status`.

mod screen;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound, Utc};
use futures_util::TryStreamExt;

use self::screen::Status;
pub(super) use self::screen::{NAMES, OWNERS, ended, name_cells, owner_cells};
use super::parts::{
    liveness::is_silent,
    peers,
    tally::{Departures, Tally, apart},
    unused,
};
use crate::{
    board::{Board, BoardError, BoardExt as _, Detail, Query},
    context::Context,
    job::Shelf,
};

/// Show the board at a glance
///
/// Shows jobs by state, departures in the last 24 hours, the oldest unclaimed job and the longest claim, the
/// most frequent names (FAILED counts jobs with a failed attempt), and the owners with the most claims (HELD is
/// the longest claim, EXPIRES the next expiry, NEVER the number of claims without expiry). Each problem ends
/// with the command that lists its jobs. A poison job has failed so often that at most one attempt remains; the
/// limit is max_attempts in its details, or 5. -o tsv prints the JSON values, one per line: the name and the
/// tab-separated values.
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
    unused::note_if_unused(ctx, &*board, &health);
    if let Some(warning) = &health.warning {
        ctx.out.note(warning);
    }
    let now = Utc::now().trunc_subsecs(6);
    let mut tally = Tally::new(now);
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await.with_context(trying)? {
        tally.add(&entry);
    }
    drop(entries);
    let (past, history_problem) =
        apart(past(&*board, now, ctx.config.history.value).await).with_context(trying)?;
    let (conductors, conductors_problem) = apart(board.conductors().await).with_context(trying)?;
    let pauses = board.lasting_pauses(now).await.with_context(trying)?;
    for (what, problem) in [
        ("the history", &history_problem),
        ("the conductors", &conductors_problem),
        ("the pauses", &pauses.unseen().map(str::to_owned)),
    ] {
        if let Some(problem) = problem {
            ctx.out
                .note(format!("warning: cannot read {what}: {problem}"));
        }
    }
    let (figures, names, owners) = tally.finish(conductors.as_deref().unwrap_or_default());
    let known = || conductors.iter().flatten();
    let unsettled = known().map(|conductor| conductor.told.unsettled.len() as u64);
    let (unsettled, silent) = (unsettled.sum(), known().filter(|it| is_silent(it)).count());
    let alive = known().filter(|it| !is_silent(it) && it.told.slots.is_some());
    let slots_free = alive.map(|it| it.free() as u64).sum();
    let status = Status {
        board: board.name().to_owned(),
        server: health.server,
        figures,
        trashed: health.trashed,
        history: past,
        history_problem,
        unsettled,
        conductors: conductors.map(|conductors| conductors.len() - silent),
        slots_free,
        silent: silent as u64,
        conductors_problem,
        pauses: pauses.all().cloned().collect(),
        names,
        owners,
        findings: Vec::new(),
        now,
    };
    ctx.out.report(&status.judged(&ctx.program()))?;
    peers::remark(ctx, &*board);
    Ok(())
}

/// Counts recent departures; the history returns the latest first.
async fn past(
    board: &dyn Board,
    now: DateTime<Utc>,
    history: u32,
) -> Result<Departures, BoardError> {
    let mut ended = Departures::lately(now);
    let mut entries = board.entries(Query::all(Shelf::Past, Detail::Brief));
    while let Some(entry) = entries.try_next().await? {
        if !ended.add(&entry) {
            return Ok(ended);
        }
    }
    ended.end(history);
    Ok(ended)
}
