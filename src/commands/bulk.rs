//! `jobboard post --from`: many jobs, one JSON object a line.

use std::collections::{HashSet, VecDeque};

use anyhow::Context as _;
use serde_json::Value;

use super::{
    draft,
    lines::{Lines, Numbered},
    post,
};
use crate::{board::Board, context::Context, exit::CommandError, output::Progress};

/// How many jobs go to the board in one exchange.
const BATCH: usize = 500;

/// How many bytes of details go to the board in one exchange, roughly.
const BATCH_BYTES: usize = 512 * 1024;

/// Where many jobs come from.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Post many jobs: one JSON object a line of FILE, or of standard input (-)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "facts", "details", "book",
          "uuid", "unique", "priority", "command"])]
    from: Option<String>,

    /// With --from: read and check every line before posting any
    #[arg(long, requires = "from", conflicts_with = "name")]
    check_first: bool,
}

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    total: usize,
    failed: usize,
}

pub(crate) async fn run(ctx: &mut Context, args: BulkArgs, is_dry: bool) -> anyhow::Result<()> {
    let source = args.from.as_deref().and_then(draft::source);
    if source.is_none() && ctx.config.takes_stdin() {
        return Err(CommandError::usage("standard input can be read only once").into());
    }
    // A dry run changes nothing, wherever that is forbidden.
    let board = match is_dry {
        true => ctx.board()?,
        false => ctx.writable_board()?,
    };
    let mut lines = Lines::open(source.as_deref(), ctx.config.max_details.value)?;
    ctx.out.outlive_reader();
    let progress = ctx.out.progress("posting", None);
    let mut tally = Tally::default();
    let mut batch = Batch::default();
    let mut uuids = HashSet::new();
    loop {
        let next = lines.next().await?;
        let is_end = next.is_none();
        match next {
            None => {}
            Some(Ok(line))
                if args.check_first && !uuids.insert(line.draft.uuid) && !line.is_unique =>
            {
                tally.total += 1;
                tally.failed += 1;
                let twice = format!(
                    "line {}: the uuid {} is in another line as well",
                    line.number, line.draft.uuid
                );
                progress.suspend(|| ctx.tell(&CommandError::usage(twice).into()));
            }
            Some(Ok(line)) => batch.add(line),
            Some(Err(error)) => {
                tally.total += 1;
                tally.failed += 1;
                progress.suspend(|| ctx.tell(&error));
            }
        }
        // Lines that come slowly are posted as they come.
        let is_due = batch.is_full() || lines.would_block();
        if is_end && args.check_first && tally.failed > 0 {
            let total = tally.total + batch.lines.len();
            let failed = tally.failed;
            ctx.out.note("nothing was posted");
            return Err(CommandError::Partly { failed, total }.into());
        }
        if is_end || (is_due && !args.check_first) {
            while !batch.lines.is_empty() {
                let some = batch.take();
                send(ctx, &*board, some, is_dry, &progress, &mut tally).await?;
            }
        }
        if is_end {
            break;
        }
    }
    drop(progress);
    match tally {
        Tally { failed: 0, .. } => Ok(()),
        Tally { failed, total } => Err(CommandError::Partly { failed, total }.into()),
    }
}

/// Lines that wait to be posted together.
#[derive(Default)]
struct Batch {
    lines: VecDeque<Numbered>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, line: Numbered) {
        self.bytes += weight(&line);
        self.lines.push_back(line);
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    /// Takes as many as go to the board in one exchange.
    fn take(&mut self) -> Vec<Numbered> {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while some.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(line) = self.lines.pop_front()
        {
            bytes += weight(&line);
            some.push(line);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        some
    }
}

/// Estimates the bytes that a job takes on its way, without writing it out.
fn weight(line: &Numbered) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(of).sum::<usize>() + 2,
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| name.len() + 4 + of(member))
                .sum(),
            _ => 8,
        }
    }
    of(&line.draft.details) + line.draft.name.len() + 64
}

async fn send(
    ctx: &mut Context,
    board: &dyn Board,
    lines: Vec<Numbered>,
    is_dry: bool,
    progress: &Progress,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let (drafts, origins): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .map(|line| (line.draft, (line.number, line.is_unique)))
        .unzip();
    if is_dry {
        tally.total += drafts.len();
        return drafts.iter().try_for_each(|draft| post::show(ctx, draft));
    }
    let line_of = |origin: Option<&(u64, bool)>| origin.map_or(0, |(line, _)| *line);
    let (first, last) = (line_of(origins.first()), line_of(origins.last()));
    let count = origins.len();
    let answers = board.post(&drafts, None).await.with_context(|| {
        let confirmed = tally.total - tally.failed;
        let lines = match last == first {
            true => format!("line {first}"),
            false => format!("lines {first} to {last}"),
        };
        let tried = ctx.trying("post", lines);
        format!("{tried} ({confirmed} before them were posted)")
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
                let error = anyhow::Error::from(error).context(format!("line {line}"));
                progress.suspend(|| ctx.tell(&error));
            }
        }
    }
    progress.suspend(|| ctx.out.flush())?;
    progress.add(count as u64);
    Ok(())
}
