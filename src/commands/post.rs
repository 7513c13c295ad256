//! `jobboard post`.

mod bulk;
mod mistakes;

use std::{borrow::Cow, time::Duration};

use anyhow::Context as _;
use chrono::Utc;
use serde::Serialize;
use serde_json::Value;

use self::{
    bulk::BulkArgs,
    mistakes::{likely_mistakes, refuse_shell_line},
};
use super::{
    parts::{draft::DraftArgs, notes::note_without_conductor, octavia::warn_of_workers},
    wait,
};
use crate::{
    board::{
        Board, BoardError, BoardExt, JobRef, Posted, Result,
        wait::{Awaited, Waiter},
    },
    context::{Context, Creation},
    duration,
    job::{Book, Draft, Entry, Location, Priority},
    output::{Page, Report, short},
    trace,
    transfer::limits,
};

/// Post a job
///
/// Prints the uuid of the job. Words after -- become `command` in the details. With --from, posts one job per
/// line of JSON, with `name` and optionally `details`, `priority`, `book`, `uuid` and `unique`; other keys that
/// `list -o jsonl` prints are ignored.
#[derive(Debug, clap::Args)]
pub(crate) struct PostArgs {
    /// Job name; names need not be unique
    #[arg(required_unless_present = "from")]
    name: Option<String>,

    #[command(flatten)]
    draft: DraftArgs,

    /// Command to run; stored as `command` in the details
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    /// Store TRACEPARENT with the job, so that its attempts are linked to the trace
    #[arg(long)]
    trace: bool,

    #[command(flatten)]
    bulk: BulkArgs,

    #[command(flatten)]
    creation: Creation,

    /// Print the record that would be posted, without posting it
    #[arg(long)]
    dry_run: bool,

    /// Wait until the job ends, and exit as `wait` does
    #[arg(long, conflicts_with_all = ["from", "dry_run"])]
    wait: bool,

    /// With --wait: wait at most this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "wait")]
    timeout: Option<Duration>,
}

#[derive(Debug, Serialize)]
struct PostReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    uuid: String,
    name: String,
    done: &'static str,
    sequence: Option<i64>,
    #[serde(skip)]
    posted: Option<Posted>,
}

impl Report for PostReport {
    fn fields(&self) -> Vec<String> {
        vec![self.uuid.as_str().into()]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.uuid))
    }

    fn human(&self, page: &mut Page) {
        page.line().plain(&self.uuid);
    }
}

#[derive(Debug, Serialize)]
struct DryRun<'a> {
    uuid: String,
    name: &'a str,
    priority: Priority,
    details: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<&'a Book>,
}

impl<'a> From<&'a Draft> for DryRun<'a> {
    fn from(draft: &'a Draft) -> Self {
        Self {
            uuid: draft.uuid.to_string(),
            name: &draft.name,
            priority: draft.priority,
            details: draft.details.value(),
            book: draft.book.as_ref(),
        }
    }
}

impl Report for DryRun<'_> {
    fn fields(&self) -> Vec<String> {
        vec![serde_json::json!(self).to_string()]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.uuid))
    }

    fn human(&self, page: &mut Page) {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        for line in text.lines() {
            page.line().plain(line);
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: PostArgs) -> anyhow::Result<()> {
    ctx.create_directory(&args.creation);
    let trace = if args.trace {
        kept_trace(ctx)
    } else {
        Vec::new()
    };
    let Some(name) = &args.name else {
        return bulk::run(ctx, args.bulk, trace, args.dry_run).await;
    };
    refuse_shell_line(name, &args.command)?;
    let mut draft = args.draft.draft(&ctx.config, name, &args.command)?;
    limits::check_command(&draft.details)?;
    trace::add(&trace, &mut draft.details);
    let mistakes = likely_mistakes(name, &draft.details.value());
    mistakes.iter().for_each(|it| ctx.out.note(it.to_string()));
    if args.dry_run {
        return ctx.out.report(&DryRun::from(&draft));
    }
    let board = ctx.writable_board()?;
    warn_of_workers(ctx);
    // Subscribe before posting, so that an early end is not missed.
    let waiter = match args.wait {
        true => Some(Waiter::begin(&*board).await),
        false => None,
    };
    let waiter = waiter
        .transpose()
        .with_context(|| ctx.trying("post", name))?;
    let began = Utc::now();
    let answer = board.post_one(&draft, None).await;
    let report = report(&draft, answer, args.draft.is_unique())
        .with_context(|| ctx.trying("post", name).with(draft.uuid))?;
    // Without a uuid the poster may well post the job again.
    ctx.out.report(&report).with_context(|| {
        let uuid = &report.uuid;
        format!("{name} is posted as {uuid}, but printing that failed")
    })?;
    if !mistakes.is_empty() {
        let remove = ctx
            .program()
            .with(["trash", "--force", short(&report.uuid)]);
        ctx.out.note(format!("to remove this job: `{remove}`"));
    }
    if args.draft.is_unique() {
        note_namesake(ctx, &*board, &report).await;
    }
    let Some(waiter) = waiter else { return Ok(()) };
    if draft.book.is_none() {
        note_without_conductor(ctx, &*board, &[&draft.name]).await;
    }
    let job = match report.posted {
        Some(posted) => Awaited {
            key: posted.key,
            uuid: Some(report.uuid),
            sequence: Some(posted.sequence),
            created_on: None,
        },
        None => wait::awaited_by_uuid(&*board, &report.uuid, began)
            .await
            .with_context(|| ctx.trying("wait for", name))?,
    };
    wait::for_posted(ctx, &*board, waiter, name, job, args.timeout).await
}

async fn note_namesake(ctx: &Context, board: &dyn Board, report: &PostReport) {
    if report.posted.is_none() {
        return ctx
            .out
            .note_at_terminal(format!("{} is already on the board", report.name));
    }
    let wanted = JobRef::Uuid(report.uuid.clone());
    // A trash that cannot be read is no reason to fail: the job is posted.
    if let Ok(Entry::Job(trashed)) = board.resolve_one(Location::Trash, &wanted).await {
        let failure = trashed.attempts.failures.last();
        let failure = failure.map_or_else(String::new, |it| format!(" ({})", it.headline()));
        ctx.out.note(format!(
            "an earlier {} is in the trash{failure}; if this job is trashed, it replaces the earlier one",
            trashed.name
        ));
    }
}

/// Returns the current trace for the details of a job; warns if it is missing.
fn kept_trace(ctx: &Context) -> Vec<(String, Value)> {
    let variable = |name| ctx.environment.variable(name)?.into_string().ok();
    let parent = variable(trace::PARENT);
    let state = variable(trace::STATE);
    let kept = parent
        .as_deref()
        .map(|it| trace::kept(it, state.as_deref()));
    match kept {
        Some(Some(kept)) => return kept,
        Some(None) => ctx
            .out
            .note("TRACEPARENT is invalid; the job has no trace context"),
        None => ctx
            .out
            .note("TRACEPARENT is not set; the job has no trace context"),
    }
    Vec::new()
}

fn report(draft: &Draft, answer: Result<Posted>, is_unique: bool) -> Result<PostReport> {
    let posted = match answer {
        Ok(posted) => Some(posted),
        Err(BoardError::Exists { .. }) if is_unique => None,
        Err(error) => return Err(error),
    };
    Ok(PostReport {
        line: None,
        uuid: draft.uuid.to_string(),
        name: draft.name.clone(),
        done: if posted.is_some() { "posted" } else { "exists" },
        sequence: posted.as_ref().map(|posted| posted.sequence),
        posted,
    })
}
