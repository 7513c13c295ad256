//! `jobboard wait`.

mod outcomes;

use std::{collections::HashSet, future::ready, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use serde::Serialize;

use self::outcomes::{AwaitedEnd, EndedJob, outcomes};
use super::{
    bulk::{
        references::{NONE_PREFERRED, Scope, references, references_or_names},
        report::Done,
    },
    parts::{
        notes,
        waiting::{NO_REPLY, NOT_CLAIMABLE, print_news, until, waiter, within},
        words::of_fields,
    },
    show,
};
use crate::{
    board::{
        self, Board, BoardError, BoardExt, Deadline, JobRef,
        filter::{Filter, Filters},
        wait::{Awaited, Ending, Waiter},
    },
    context::Context,
    duration,
    exit::{CommandError, NOT_FOUND},
    job::{Entry, Job, JobKey, Location},
    output::{Page, Report},
};

/// Wait until jobs end, the board is empty, or a job is claimable
///
/// If a job failed, was trashed or was purged, prints the reason. If the server loses a job, `wait` exits with 9.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// Jobs: uuid, prefix, name, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,

    /// Wait until no job is on the board
    #[arg(long, conflicts_with_all = ["jobs", "any"])]
    empty: bool,

    /// Wait until a job is claimable, and print it
    #[arg(long, conflicts_with = "jobs")]
    any: bool,

    /// With --any: consider only matching jobs
    #[arg(long, value_name = "EXPR", value_parser = of_fields, requires = "any", conflicts_with_all = ["jobs", "empty"])]
    filter: Vec<Filter>,

    /// Count a job as complete if its full uuid is unknown
    #[arg(long, conflicts_with_all = ["empty", "any"])]
    gone_ok: bool,

    /// Wait at most this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(ctx: &mut Context, args: WaitArgs) -> anyhow::Result<()> {
    if args.jobs.is_empty() && !args.empty && !args.any {
        let message = "no job given: name one or use --empty or --any";
        return Err(CommandError::usage(message).into());
    }
    let limit = args.timeout.map(Deadline::after);
    let board = ctx.board()?;
    let scope = Scope::everywhere("wait");
    let wanted = async {
        anyhow::Ok(match args.jobs.len() {
            0 | 1 => (references(ctx, &*board, scope, &args.jobs).await?, 0),
            _ => references_or_names(ctx, &*board, scope, NONE_PREFERRED, &args.jobs).await?,
        })
    };
    let (wanted, unnamed) = within(limit, NO_REPLY, wanted).await?;
    if args.empty {
        let empty = async |waiter: &mut Waiter<'_>| waiter.until_empty().await;
        let waiter = waiter(ctx, &*board);
        until(limit, "the board was not empty after", waiter, empty)
            .await
            .with_context(|| ctx.trying("wait for", "an empty board"))?;
        return ctx.out.report(&EmptyBoard { done: "empty" });
    }
    if args.any {
        let filters = Filters::new(args.filter.clone());
        let nothing = HashSet::new();
        let claimable =
            async |waiter: &mut Waiter<'_>| waiter.until_claimable(&filters, &nothing).await;
        let job = until(limit, NOT_CLAIMABLE, waiter(ctx, &*board), claimable)
            .await
            .with_context(|| ctx.trying("wait for", "a job"))?;
        return ctx.out.report(&Done::of_job("claimable", &job));
    }
    for_named(ctx, &*board, &wanted, args.gone_ok, limit).await?;
    match unnamed {
        0 => Ok(()),
        _ => Err(CommandError::Command(NOT_FOUND).into()),
    }
}

#[derive(Debug, Serialize)]
struct EmptyBoard {
    done: &'static str,
}

impl Report for EmptyBoard {
    fn fields(&self) -> Vec<String> {
        vec![self.done.into()]
    }

    fn human(&self, page: &mut Page) {
        page.line().plain("the board is empty");
    }
}

/// Waits for a job that was posted after the waiter subscribed, and reports its end.
pub(crate) async fn for_posted(
    ctx: &mut Context,
    board: &dyn Board,
    waiter: Waiter<'_>,
    name: &str,
    job: Awaited,
    timeout: Option<Duration>,
) -> anyhow::Result<()> {
    let jobs = std::slice::from_ref(&job);
    let limit = timeout.map(Deadline::after);
    let endings = finished(ctx, board, waiter, jobs, limit).await?;
    let Some(Some(ending)) = endings.first() else {
        return Ok(());
    };
    let ended = EndedJob {
        name: name.into(),
        job: &job,
        ending: *ending,
    };
    let (ends, bad_ends) = within(limit, NO_REPLY, outcomes(ctx, board, &[ended]))
        .await
        .with_context(|| ctx.trying("wait for", name))?;
    if let (true, Some(end), Some(uuid)) = (ctx.out.is_json(), ends.into_iter().next(), &job.uuid) {
        let done = Done::named(end.word, uuid, name.to_owned());
        ctx.out.report(&end.add_to(done))?;
    }
    bad_ends.end()
}

/// Finds a job by the uuid that it had on the board at a given time.
pub(crate) async fn awaited_by_uuid(
    board: &dyn Board,
    uuid: &str,
    at: DateTime<Utc>,
) -> board::Result<Awaited> {
    let wanted = [JobRef::Uuid(uuid.to_owned())];
    let found = board.resolve_on(&Location::LIVE, &wanted);
    match found.await?.into_iter().next() {
        // The history entry of this uuid may belong to an earlier job.
        None | Some(Err(BoardError::NoSuchJob)) => Ok(Awaited {
            key: JobKey::new(uuid),
            uuid: Some(uuid.to_owned()),
            sequence: None,
            created_on: Some(at),
        }),
        Some(entry) => Ok(Awaited::of(&entry?)),
    }
}

async fn finished(
    ctx: &Context,
    board: &dyn Board,
    waiter: Waiter<'_>,
    awaited: &[Awaited],
    limit: Option<Deadline>,
) -> anyhow::Result<Vec<Option<Ending>>> {
    let (whom, what) = match awaited {
        [job] => (job.key.text(), "the job did not end within"),
        _ => ("the jobs".into(), "the jobs did not end within"),
    };
    let waiter = waiter.on_news(|news| print_news(ctx, board, news));
    let trying = || {
        let trying = ctx.trying("wait for", &whom);
        match awaited {
            [job] => trying.with(job.uuid.as_deref().unwrap_or(&whom)),
            _ => trying,
        }
    };
    let finished = async |waiter: &mut Waiter<'_>| waiter.until_finished(awaited).await;
    until(limit, what, ready(Ok(waiter)), finished)
        .await
        .with_context(trying)
}

async fn for_named(
    ctx: &mut Context,
    board: &dyn Board,
    wanted: &[JobRef],
    gone_ok: bool,
    limit: Option<Deadline>,
) -> anyhow::Result<()> {
    // From here on the waiter hears every end, also before the lookup.
    let waiter = within(limit, NO_REPLY, Waiter::begin(board))
        .await
        .with_context(|| ctx.trying("wait for", "the jobs"))?;
    let looked = look_up(ctx, board, wanted, gone_ok);
    let (there, unrecorded, mut missing) = within(limit, NO_REPLY, looked)
        .await
        .with_context(|| ctx.trying("wait for", "the jobs"))?;
    for uuid in unrecorded {
        let done = Done::unnamed("complete", &uuid);
        ctx.out.report(&AwaitedEnd::UNKNOWN.add_to(done))?;
    }
    for entry in &there {
        ctx.out.detail(format!("waiting for {}", entry.name()));
    }
    if ctx.out.is_watched() {
        // Python services, which do not register, may run a flow.
        let is_for_conductors =
            |it: &&Job| it.location == Location::Board && it.holding.is_none() && it.book.is_none();
        let jobs = there
            .iter()
            .filter_map(Entry::job)
            .filter(is_for_conductors);
        let names: Vec<_> = jobs.map(|it| it.name.as_str()).collect();
        let note = async {
            notes::note_without_conductor(ctx, board, &names).await;
            Ok::<_, BoardError>(())
        };
        within(limit, NO_REPLY, note)
            .await
            .with_context(|| ctx.trying("wait for", "the jobs"))?;
    }
    let waited = match there.as_slice() {
        [] => Ok(()),
        there => for_existing(ctx, board, waiter, there, limit).await,
    };
    let worst = match waited {
        Ok(()) => missing.pop().map_or(Ok(()), Err),
        Err(error) => Err(error),
    };
    missing.iter().for_each(|error| ctx.print_error(error));
    worst
}

async fn for_existing(
    ctx: &mut Context,
    board: &dyn Board,
    waiter: Waiter<'_>,
    entries: &[Entry],
    limit: Option<Deadline>,
) -> anyhow::Result<()> {
    let awaited: Vec<_> = entries.iter().map(Awaited::of).collect();
    let endings = finished(ctx, board, waiter, &awaited, limit).await?;
    let jobs = entries.iter().zip(&awaited).zip(endings);
    // A trashed job ends the wait; the other jobs then have no ending.
    let ended = jobs.filter_map(|((entry, job), ending)| {
        let (name, ending) = (entry.name(), ending?);
        Some((entry, EndedJob { name, job, ending }))
    });
    let (entries, ended): (Vec<_>, Vec<_>) = ended.unzip();
    let (ends, bad_ends) = within(limit, NO_REPLY, outcomes(ctx, board, &ended))
        .await
        .with_context(|| ctx.trying("wait for", "the jobs"))?;
    for (entry, end) in entries.into_iter().zip(ends) {
        let done = Done::of(end.word, entry);
        ctx.out.report(&end.add_to(done))?;
    }
    bad_ends.end()
}

/// Finds the jobs, also in the trash. Returns the existing jobs, the uuids without a job that count as complete, and an
/// error for each missing job.
async fn look_up(
    ctx: &Context,
    board: &dyn Board,
    wanted: &[JobRef],
    gone_ok: bool,
) -> board::Result<(Vec<Entry>, Vec<String>, Vec<anyhow::Error>)> {
    let name = board.url();
    let found = show::find_everywhere(board, wanted).await?;
    if found
        .iter()
        .any(|it| matches!(it, Err(BoardError::NoSuchJob)))
    {
        notes::note_if_unused(ctx, board, &board.health().await?);
    }
    let is_any_there = found.iter().any(Result::is_ok);
    let (mut there, mut unrecorded, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (wanted, found) in wanted.iter().zip(found) {
        let error = match (found, wanted) {
            (Ok(entry), _) => {
                there.push(entry);
                continue;
            }
            (Err(BoardError::NoSuchJob), JobRef::Uuid(uuid)) if wanted.is_exact() && gone_ok => {
                ctx.out.note(format!(
                    "no record of {} on {name}; counting the job as complete",
                    ctx.as_typed(uuid)
                ));
                unrecorded.push(uuid.clone());
                continue;
            }
            (Err(BoardError::NoSuchJob), JobRef::Uuid(_)) if wanted.is_exact() => {
                let has_peers = board.capabilities().has_peers();
                CommandError::NotKnown { has_peers }.into()
            }
            (Err(error), _) => anyhow::Error::from(error),
        };
        let error = error.context(ctx.trying("wait for", wanted).with(wanted));
        // Reported now as well: the other jobs may take long.
        if is_any_there {
            ctx.out.note(format!(
                "cannot wait for {}; waiting for the other jobs",
                ctx.as_typed(wanted)
            ));
        }
        missing.push(error);
    }
    Ok((there, unrecorded, missing))
}
