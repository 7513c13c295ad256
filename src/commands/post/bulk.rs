//! `jobboard post --from`: posts one JSON object per line.

use std::collections::{HashSet, VecDeque};

use anyhow::Context as _;
use futures_util::future::join;
use serde_json::Value;
use tokio::task::yield_now;

use super::lines::{Lines, Numbered};
use crate::{
    board::{Board, BoardError},
    commands::{parts::draft, post},
    context::Context,
    exit::CommandError,
    output::Progress,
};

const BATCH: usize = 1000;

/// The approximate size of one exchange in bytes.
const BATCH_BYTES: usize = 512 * 1024;

/// The number of lines read before the running exchange gets its turn.
const AT_A_STRETCH: usize = 16;

/// The source of a bulk post.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Post many jobs: one JSON object per line of FILE, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "facts", "details", "book",
          "uuid", "unique", "priority", "command"])]
    from: Option<String>,

    /// With --from: check every line before posting any
    #[arg(long, requires = "from", conflicts_with = "name")]
    check_first: bool,
}

#[derive(Default)]
struct Tally {
    total: usize,
    failed: usize,
}

pub(crate) async fn run(
    ctx: &mut Context,
    args: BulkArgs,
    trace: Vec<(String, Value)>,
    is_dry: bool,
) -> anyhow::Result<()> {
    let source = draft::source(&ctx.config, args.from.as_deref().unwrap_or("-"))?;
    // A dry run also works on a read-only board.
    let board = match is_dry {
        true => ctx.board()?,
        false => ctx.writable_board()?,
    };
    let mut input = Input {
        lines: Lines::open(source.as_deref(), ctx.config.max_details.value, trace)?,
        batch: Batch::default(),
        mistakes: Vec::new(),
        is_ended: false,
    };
    ctx.out.outlive_reader();
    let progress = ctx.out.progress("posting", None);
    let mut tally = Tally::default();
    while args.check_first && !input.is_ended {
        input.read().await?;
        input.report_mistakes(ctx, &progress, &mut tally);
    }
    if args.check_first {
        input.take_out_twins();
        input.report_mistakes(ctx, &progress, &mut tally);
    }
    if tally.failed > 0 {
        let (total, failed) = (tally.total + input.batch.lines.len(), tally.failed);
        ctx.out.note("nothing was posted");
        return Err(CommandError::Partly { failed, total }.into());
    }
    loop {
        while input.wants_more() {
            input.read().await?;
            input.report_mistakes(ctx, &progress, &mut tally);
        }
        if input.batch.lines.is_empty() {
            break;
        }
        let board = (!is_dry).then_some(&*board);
        send(ctx, board, &mut input, &progress, &mut tally).await?;
        input.report_mistakes(ctx, &progress, &mut tally);
    }
    drop(progress);
    match tally {
        Tally { failed: 0, .. } => Ok(()),
        Tally { failed, total } => Err(CommandError::Partly { failed, total }.into()),
    }
}

struct Input {
    lines: Lines,
    batch: Batch,
    /// Errors that are not reported yet.
    mistakes: Vec<anyhow::Error>,
    is_ended: bool,
}

impl Input {
    async fn read(&mut self) -> anyhow::Result<()> {
        match self.lines.next().await? {
            None => self.is_ended = true,
            Some(Ok(line)) => line.into_iter().for_each(|line| self.batch.add(line)),
            Some(Err(mistake)) => self.mistakes.push(mistake),
        }
        Ok(())
    }

    /// Whether the next exchange includes another line; slow input is posted as it comes.
    fn wants_more(&self) -> bool {
        !self.is_ended && (self.batch.lines.is_empty() || self.has_more_at_hand())
    }

    fn has_more_at_hand(&self) -> bool {
        !self.is_ended && !self.batch.is_full() && !self.lines.would_block()
    }

    /// Reads the available lines while the board works on the previous batch.
    async fn read_ahead(&mut self) -> anyhow::Result<()> {
        while self.has_more_at_hand() {
            // Lets the exchange continue.
            yield_now().await;
            for _ in 0..AT_A_STRETCH {
                if self.has_more_at_hand() {
                    self.read().await?;
                }
            }
        }
        Ok(())
    }

    /// Removes lines that repeat a uuid.
    fn take_out_twins(&mut self) {
        let (mut uuids, mistakes) = (HashSet::new(), &mut self.mistakes);
        self.batch.lines.retain(|line| {
            let is_twin = !uuids.insert(line.draft.uuid) && !line.is_unique;
            if is_twin {
                let (number, uuid) = (line.number, line.draft.uuid);
                let twice = format!("line {number}: the uuid {uuid} is also on another line");
                mistakes.push(CommandError::usage(twice).into());
            }
            !is_twin
        });
    }

    fn report_mistakes(&mut self, ctx: &Context, progress: &Progress, tally: &mut Tally) {
        for mistake in self.mistakes.drain(..) {
            tally.total += 1;
            tally.failed += 1;
            progress.suspend(|| ctx.tell(&mistake));
        }
    }
}

#[derive(Default)]
struct Batch {
    lines: VecDeque<Numbered>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, line: Numbered) {
        self.bytes += line.size;
        self.lines.push_back(line);
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self) -> Vec<Numbered> {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while some.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(line) = self.lines.pop_front()
        {
            bytes += line.size;
            some.push(line);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        some
    }
}

/// Posts the next batch and reads on meanwhile; without a board, only shows it.
async fn send(
    ctx: &mut Context,
    board: Option<&dyn Board>,
    input: &mut Input,
    progress: &Progress,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let (drafts, origins): (Vec<_>, Vec<_>) = input
        .batch
        .take()
        .into_iter()
        .map(|line| (line.draft, (line.number, line.is_unique)))
        .unzip();
    let Some(board) = board else {
        tally.total += drafts.len();
        return drafts.iter().try_for_each(|draft| post::show(ctx, draft));
    };
    let line_of = |origin: Option<&(u64, bool)>| origin.map_or(0, |(line, _)| *line);
    let (first, last) = (line_of(origins.first()), line_of(origins.last()));
    let count = origins.len();
    let (answers, ahead) = join(board.post(&drafts, None), input.read_ahead()).await;
    let answers = answers.with_context(|| {
        let confirmed = tally.total - tally.failed;
        let lines = match last == first {
            true => format!("line {first}"),
            false => format!("lines {first} to {last}"),
        };
        ctx.trying(
            "post",
            format!("{lines} ({confirmed} before them were posted)"),
        )
    })?;
    for ((draft, (line, is_unique)), answer) in drafts.iter().zip(origins).zip(answers) {
        tally.total += 1;
        match post::report(draft, answer, is_unique) {
            Ok(mut report) => {
                report.line = Some(line);
                progress.suspend(|| ctx.out.say(&report))?;
            }
            Err(error) => {
                tally.failed += 1;
                let is_unknown = matches!(error, BoardError::Unknown { .. });
                let mut error = anyhow::Error::from(error);
                if is_unknown {
                    // Only the poster of the job can find out.
                    error = error.context(ctx.trying("post", &draft.name).with(draft.uuid));
                }
                let error = error.context(format!("line {line}"));
                progress.suspend(|| ctx.tell(&error));
            }
        }
    }
    progress.suspend(|| ctx.out.flush())?;
    progress.add(count as u64);
    ahead
}
