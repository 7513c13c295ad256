//! `jobboard show`.

use anyhow::Context as _;
use chrono::{DateTime, Utc};

use super::{
    bulk::references::{NONE_PREFERRED, Scope, references_or_names},
    parts::{notes, octavia::AboutArgs},
};
use crate::{
    board::{Board, BoardError, BoardExt, JobRef},
    context::Context,
    exit::CommandError,
    job::{Entry, Location, Pauses, State},
    output::JobView,
};

/// Show everything known about jobs
///
/// Looks on the board, in the trash and in the history, in this order. In a pipe, prints the same text as on a
/// terminal; -o tsv prints one line per job: uuid, name, state, priority, age, owner, held, expires, key. With
/// --json, each job is one object on its own line. Text output masks secrets in details and in command output. JSON
/// does so only for Octavia boards.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Jobs: uuid, prefix, name, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(value_name = "JOB", required_unless_present_any = ["lb", "amphora"],
          conflicts_with_all = ["lb", "amphora"])]
    jobs: Vec<String>,

    #[command(flatten)]
    about: AboutArgs,

    /// Print the output of the last failed attempts; with --json, as an array
    #[arg(long)]
    output: bool,

    /// Show secrets, too
    #[arg(long)]
    reveal: bool,
}

pub(crate) async fn run(ctx: &mut Context, args: ShowArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let preferred = match args.output {
        true => has_failed,
        false => NONE_PREFERRED,
    };
    let scope = Scope::everywhere("show");
    let (named, unnamed) = references_or_names(ctx, &*board, scope, preferred, &args.jobs).await?;
    let wanted = args.about.jobs_or(named, ctx, &*board).await?;
    let found = find_everywhere(&*board, &wanted)
        .await
        .with_context(|| ctx.trying("show", "the jobs"))?;
    let is_unknown = |found: &Result<_, _>| matches!(found, Err(BoardError::NoSuchJob));
    if found.iter().any(is_unknown) {
        notes::note_peers(ctx, &*board);
    } else if found
        .iter()
        .flatten()
        .filter_map(Entry::job)
        .any(|it| it.location == Location::History)
    {
        notes::note_peers_at_terminal(ctx, &*board);
    }
    let total = found.len() + unnamed;
    let mut entries = Vec::new();
    for (wanted, found) in wanted.iter().zip(found) {
        match found.with_context(|| ctx.trying("show", wanted).with(wanted)) {
            Ok(entry) => entries.push(entry),
            Err(error) if total == 1 => return Err(error),
            Err(error) => ctx.print_error(&error),
        }
    }
    let now = Utc::now();
    let pauses = match entries
        .iter()
        .any(|entry| entry.state() == State::Unclaimed)
    {
        true => board.lasting_pauses(now).await.unwrap_or_default(),
        false => Pauses::default(),
    };
    let view = |entry| JobView {
        is_revealed: args.reveal,
        is_covered: ctx.hides_secrets(),
        ..JobView::of(entry, now).under(&pauses)
    };
    let views: Vec<_> = entries.iter().map(view).collect();
    match args.output {
        true => output(ctx, &views)?,
        false => views.iter().try_for_each(|view| ctx.out.print(view))?,
    }
    ctx.out.flush()?;
    CommandError::partly("jobs", total - entries.len(), total)
}

fn output(ctx: &mut Context, views: &[JobView<'_>]) -> anyhow::Result<()> {
    for view in views.iter().filter(|it| it.attempts().next().is_none()) {
        let name = view.entry.name();
        ctx.out.note(format!(
            "{name}: no failed attempt, and the board keeps the output of failed attempts only; \
             `jobboard conduct --output DIR` keeps all output"
        ));
    }
    let attempts: Vec<_> = views.iter().flat_map(|view| view.attempts()).collect();
    ctx.out.reports(&attempts)
}

fn has_failed(entry: &Entry) -> bool {
    entry
        .job()
        .is_some_and(|job| !job.attempts.failures.is_empty())
}

pub(crate) async fn find_everywhere(
    board: &dyn Board,
    wanted: &[JobRef],
) -> Result<Vec<Result<Entry, BoardError>>, BoardError> {
    let locations = Location::LIVE;
    let mut found = board.resolve_on(&locations, wanted).await?;
    // A job in the trash may have been posted again under its uuid, and have ended since.
    let may_have_ended = |entry: &Result<Entry, _>| match entry {
        Ok(entry) => trashed_on(entry).is_some(),
        Err(error) => matches!(error, BoardError::NoSuchJob),
    };
    if !found.iter().any(may_have_ended) {
        return Ok(found);
    }
    let history = match board.resolve(Location::History, wanted).await {
        Ok(history) => history,
        // Without the right to read the history, the other results still count.
        Err(error) if !error.is_retryable() => return Ok(found),
        Err(error) => return Err(error),
    };
    for (entry, history) in found.iter_mut().zip(history) {
        let is_later = match (&entry, &history) {
            (Err(BoardError::NoSuchJob), _) => true,
            (Ok(entry), Ok(history)) => ended_later(history, entry),
            _ => false,
        };
        if is_later {
            *entry = history;
        }
    }
    Ok(found)
}

pub(crate) fn ended_later(ended: &Entry, trashed: &Entry) -> bool {
    let uuids = [ended, trashed].map(|it| it.job().map(|job| &job.uuid));
    let ended_on = ended.job().and_then(|it| Some(it.ended.as_ref()?.on));
    // A prefix may mean different jobs in the trash and in the history.
    uuids[0] == uuids[1] && trashed_on(trashed).is_some_and(|on| ended_on > Some(on))
}

fn trashed_on(entry: &Entry) -> Option<DateTime<Utc>> {
    entry
        .job()
        .filter(|it| it.location == Location::Trash)?
        .trashed_on
}
