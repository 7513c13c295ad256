//! `jobboard wait`.

use std::{collections::HashSet, time::Duration};

use anyhow::Context as _;
use serde::Serialize;

use super::{complete, done::Done, select::references};
use crate::{
    board::{
        self, Board, BoardError, BoardExt, JobRef,
        filter::{Filter, Filters},
        wait::{Ending, until_claimable, until_empty, until_finished},
    },
    context::Context,
    duration,
    exit::CommandError,
    job::{Entry, JobKey, Shelf},
    output::{Page, Record, Report, Text},
};

/// Wait until jobs are finished, the board is empty, or a job can be claimed
///
/// Exits with 9 if a job that was waited for ended in the trash, and with 124 at the timeout.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// The jobs to wait for: a uuid or the beginning of one, @SEQUENCE, key:TEXT, or - for one a
    /// line on standard input
    #[arg(add = complete::jobs(), value_name = "JOB", required_unless_present_any = ["empty", "any"])]
    jobs: Vec<String>,

    /// Wait until no job is on the board
    #[arg(long, conflicts_with_all = ["jobs", "any"])]
    empty: bool,

    /// Wait until a job can be claimed, and print it
    #[arg(long, conflicts_with = "jobs")]
    any: bool,

    /// With --any: wait for a job for which this holds
    #[arg(long, value_name = "EXPR", requires = "any", conflicts_with_all = ["jobs", "empty"])]
    filter: Vec<Filter>,

    /// Wait no longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(ctx: &mut Context, args: WaitArgs) -> anyhow::Result<()> {
    let wanted = references(ctx, &args.jobs)?;
    let board = ctx.board()?;
    if args.empty {
        within(args.timeout, "the board to be empty", until_empty(&*board))
            .await
            .with_context(|| ctx.trying("wait for", "the end of all jobs"))?;
        return ctx.out.report(&Emptied { done: "empty" });
    }
    if args.any {
        let filters = Filters::new(args.filter);
        let nothing = HashSet::new();
        let claimable = until_claimable(&*board, &filters, 1, &nothing);
        let jobs = within(args.timeout, "a job that can be claimed", claimable)
            .await
            .with_context(|| ctx.trying("wait for", "a job"))?;
        return jobs.first().map_or(Ok(()), |job| {
            ctx.out
                .report(&Done::new("claimable", &job.uuid, &job.name))
        });
    }
    for_named(ctx, &*board, &wanted, args.timeout).await
}

/// There is no job on the board; people and scripts learn it by the end of the command.
#[derive(Debug, Serialize)]
struct Emptied {
    done: &'static str,
}

impl Record for Emptied {
    fn fields(&self) -> Vec<Text> {
        vec![self.done.into()]
    }
}

impl Report for Emptied {
    fn human(&self, page: &mut Page) {
        page.line().plain("the board is empty");
    }
}

/// Waits for a job that was just posted, and reports how it ended.
pub(crate) async fn for_posted(
    ctx: &mut Context,
    board: &dyn Board,
    key: &JobKey,
    timeout: Option<Duration>,
) -> anyhow::Result<()> {
    let finished = until_finished(board, std::slice::from_ref(key));
    let endings = within(timeout, "the job to be finished", finished)
        .await
        .with_context(|| ctx.trying("wait for", key))?;
    match endings.first() {
        Some(Ending::Trashed) => Err(CommandError::Trashed(format!("the job {key}")).into()),
        _ => Ok(()),
    }
}

/// A job that is waited for.
struct Awaited {
    key: JobKey,
    uuid: String,
    name: String,
}

async fn for_named(
    ctx: &mut Context,
    board: &dyn Board,
    wanted: &[JobRef],
    timeout: Option<Duration>,
) -> anyhow::Result<()> {
    let awaited = look_up(ctx, board, wanted).await?;
    let keys: Vec<_> = awaited.iter().map(|job| job.key.clone()).collect();
    let endings = within(
        timeout,
        "the jobs to be finished",
        until_finished(board, &keys),
    )
    .await
    .with_context(|| ctx.trying("wait for", "the jobs"))?;
    let mut trashed = Vec::new();
    for (job, ending) in awaited.into_iter().zip(endings) {
        let done = match ending {
            Ending::Complete => "complete",
            Ending::Trashed => {
                trashed.push(job.name.clone());
                "trashed"
            }
        };
        ctx.out.report(&Done::new(done, job.uuid, job.name))?;
    }
    if trashed.is_empty() {
        return Ok(());
    }
    Err(CommandError::Trashed(trashed.join(", ")).into())
}

/// Finds the jobs, also those that are already in the trash; a whole uuid may be long gone.
async fn look_up(
    ctx: &Context,
    board: &dyn Board,
    wanted: &[JobRef],
) -> anyhow::Result<Vec<Awaited>> {
    let trying = || ctx.trying("wait for", "the jobs");
    let on_board = board
        .resolve(Shelf::Board, wanted)
        .await
        .with_context(trying)?;
    let trashed = board
        .resolve(Shelf::Trash, wanted)
        .await
        .with_context(trying)?;
    let mut awaited = Vec::new();
    for ((wanted, found), trashed) in wanted.iter().zip(on_board).zip(trashed) {
        let found = match found {
            Err(BoardError::NoSuchJob) => trashed,
            found => found,
        };
        awaited.push(match (found, wanted) {
            (Ok(entry), _) => of_entry(&entry),
            (Err(BoardError::NoSuchJob), JobRef::Uuid(uuid)) if wanted.is_exact() => {
                ctx.out
                    .note(format!("{uuid} is not on the board, and so it is complete"));
                Awaited {
                    key: JobKey::new(uuid),
                    uuid: uuid.clone(),
                    name: String::new(),
                }
            }
            (Err(error), _) => return Err(error).with_context(|| ctx.trying("wait for", wanted)),
        });
    }
    Ok(awaited)
}

fn of_entry(entry: &Entry) -> Awaited {
    Awaited {
        key: entry.key().clone(),
        uuid: entry.job().map(|job| job.uuid.clone()).unwrap_or_default(),
        name: entry.name().to_owned(),
    }
}

/// Waits, but no longer than it is told.
pub(crate) async fn within<T>(
    timeout: Option<Duration>,
    what: &str,
    wait: impl Future<Output = board::Result<T>>,
) -> anyhow::Result<T> {
    let Some(timeout) = timeout else {
        return Ok(wait.await?);
    };
    match tokio::time::timeout(timeout, wait).await {
        Ok(ended) => Ok(ended?),
        Err(_) => Err(CommandError::TimedOut(format!(
            "waited {} for {what}",
            duration::exact(timeout)
        ))
        .into()),
    }
}
