//! `jobboard post --from`: posts one JSON object per line.

use std::collections::HashSet;

use anyhow::Context as _;
use serde_json::Value;

use super::{DryRun, report};
use crate::{
    board::BoardError,
    commands::bulk::report::Results,
    context::Context,
    exit::CommandError,
    job::Draft,
    transfer::{
        batches::Batches,
        draft_lines::{DraftLines, NumberedDraft},
        lines::{LineReader, source},
    },
};

/// The most jobs of one exchange, and the approximate size in bytes.
const BATCH: (usize, usize) = (1000, 512 * 1024);

/// The source of a bulk post.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Post many jobs from FILE (or - for standard input), one JSON object per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "facts", "details", "book",
          "uuid", "unique", "priority", "command"])]
    from: Option<String>,

    /// With --from: check every line before posting any
    #[arg(long, requires = "from", conflicts_with = "name")]
    check_first: bool,
}

pub(crate) async fn run(
    ctx: &mut Context,
    args: BulkArgs,
    trace: Vec<(String, Value)>,
    is_dry: bool,
) -> anyhow::Result<()> {
    let source = source(&ctx.config, args.from.as_deref().unwrap_or("-"))?;
    let board = ctx.board_writable_if(!is_dry)?;
    let max_details = ctx.config.max_details.value;
    let reader = LineReader::open(source.as_deref(), max_details)?;
    let lines = DraftLines::new(reader, max_details, trace);
    let mut batches = Batches::new(lines, BATCH);
    ctx.out.outlive_reader();
    let progress = ctx.out.progress("posting", None);
    let mut results = Results::new(ctx, "post", false).with_progress(progress);
    if args.check_first {
        check_all(ctx, &mut batches, &mut results).await?;
    }
    loop {
        let batch = batches.next(|it| results.print_error(ctx, &it.error));
        let Some(batch) = batch.await? else {
            return results.end(ctx);
        };
        if is_dry {
            results.total += batch.len();
            let mut drafts = batch.iter().map(|line| &line.draft);
            drafts.try_for_each(|draft| ctx.out.report(&DryRun::from(draft)))?;
            continue;
        }
        let lines = numbers(&batch);
        let (drafts, origins): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|line| (line.draft, (line.number, line.is_unique)))
            .unzip();
        let (answers, ahead) = batches.reading_ahead(board.post(&drafts, None)).await;
        let answers = answers.with_context(|| {
            let confirmed = results.total - results.failed;
            ctx.trying(
                "post",
                format!("{lines} ({confirmed} before them were posted)"),
            )
        })?;
        for ((draft, (line, is_unique)), answer) in drafts.iter().zip(origins).zip(answers) {
            match report(draft, answer, is_unique) {
                Ok(mut report) => {
                    report.line = Some(line);
                    results.print(ctx, &report)?;
                }
                Err(error) => results.print_error(ctx, &explained(ctx, draft, line, error)),
            }
        }
        results.flush(ctx, batches.count())?;
        ahead?;
    }
}

fn numbers(batch: &[NumberedDraft]) -> String {
    match batch {
        [first, .., last] => format!("lines {} to {}", first.number, last.number),
        _ => batch
            .iter()
            .map(|it| format!("line {}", it.number))
            .collect(),
    }
}

fn explained(ctx: &Context, draft: &Draft, line: u64, error: BoardError) -> anyhow::Error {
    let is_unknown = matches!(error, BoardError::Unknown { .. });
    let mut error = anyhow::Error::from(error);
    if is_unknown {
        // Only the poster of the job can find out.
        error = error.context(ctx.trying("post", &draft.name).with(draft.uuid));
    }
    error.context(format!("line {line}"))
}

/// Reads all lines, and posts nothing if one is wrong or repeats a uuid.
async fn check_all(
    ctx: &Context,
    batches: &mut Batches<DraftLines>,
    results: &mut Results,
) -> anyhow::Result<()> {
    batches
        .read_all(|it| results.print_error(ctx, &it.error))
        .await?;
    let mut uuids = HashSet::new();
    batches.reject(|line| {
        let is_new = uuids.insert(line.draft.uuid) || line.is_unique;
        (!is_new).then(|| {
            let (number, uuid) = (line.number, line.draft.uuid);
            let twice = format!("line {number}: the uuid {uuid} is also on another line");
            anyhow::Error::from(CommandError::usage(twice)).into()
        })
    });
    let right = batches
        .read_all(|it| results.print_error(ctx, &it.error))
        .await?;
    if results.failed == 0 {
        return Ok(());
    }
    results.suspend(|| ctx.out.note("nothing was posted"));
    CommandError::partly("lines", results.failed, results.total + right)
}
