//! `jobboard post --from`: many jobs, one JSON object a line.

use std::{collections::VecDeque, path::Path};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use uuid::Uuid;

use super::{draft, post};
use crate::{
    board::Board,
    context::Context,
    exit::CommandError,
    job::{Book, Draft, Priority},
    output::Progress,
};

/// How many jobs go to the board in one exchange.
const BATCH: usize = 500;

/// How many bytes of details go to the board in one exchange, roughly.
const BATCH_BYTES: usize = 512 * 1024;

/// How much is read at a time.
const READ: usize = 256 * 1024;

/// Room for what a line has beside the details.
const BESIDE_DETAILS: u64 = 64 * 1024;

/// Where many jobs come from.
#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Post many jobs: one JSON object a line of FILE, or of standard input (-)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "facts", "details", "book",
          "uuid", "unique", "command"])]
    from: Option<String>,

    /// With --from: read and check every line before posting any
    #[arg(long, requires = "from")]
    check_first: bool,
}

/// A line of a bulk post.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    #[serde(default)]
    details: Map<String, Value>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    book: Option<Book>,
    #[serde(default)]
    uuid: Option<Uuid>,
    #[serde(default)]
    unique: Option<String>,
}

/// A line that can be posted, and its number.
struct Numbered {
    number: u64,
    draft: Draft,
    is_unique: bool,
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
    let board = ctx.writable_board()?;
    let mut lines = Lines::open(source.as_deref(), ctx.config.max_details.value)?;
    let progress = ctx.out.progress("posting", None);
    let mut tally = Tally::default();
    let mut batch = Batch::default();
    loop {
        let next = lines.next().await?;
        let is_end = next.is_none();
        match next {
            None => {}
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
    let drafts: Vec<_> = lines.iter().map(|line| line.draft.clone()).collect();
    if is_dry {
        tally.total += drafts.len();
        return drafts.iter().try_for_each(|draft| post::show(ctx, draft));
    }
    let (first, count) = (lines.first().map_or(0, |line| line.number), lines.len());
    let answers = board.post(&drafts, None).await.with_context(|| {
        let confirmed = tally.total - tally.failed;
        let tried = ctx.trying("post", format!("the {count} jobs from line {first} on"));
        format!("{tried} ({confirmed} before them were posted)")
    })?;
    for (line, answer) in lines.iter().zip(answers) {
        tally.total += 1;
        match post::report(&line.draft, answer, line.is_unique) {
            Ok(mut report) => {
                report.line = Some(line.number);
                ctx.out.say(&report)?;
            }
            Err(error) => {
                tally.failed += 1;
                let error = anyhow::Error::from(error).context(format!("line {}", line.number));
                progress.suspend(|| ctx.tell(&error));
            }
        }
    }
    progress.suspend(|| ctx.out.flush())?;
    progress.add(count as u64);
    Ok(())
}

/// Reads lines, each of bounded length, and makes drafts of them.
struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Unpin>>,
    source: String,
    number: u64,
    max_details: u64,
}

impl Lines {
    fn open(path: Option<&Path>, max_details: u64) -> anyhow::Result<Self> {
        let (source, input): (_, Box<dyn AsyncRead + Unpin>) = match path {
            None => ("standard input".to_owned(), Box::new(tokio::io::stdin())),
            Some(path) => {
                let file = crate::context::on_file(path, "read", std::fs::File::open(path))
                    .map_err(|error| CommandError::usage(format!("{error:#}")))?;
                let name = path.display().to_string();
                (name, Box::new(tokio::fs::File::from_std(file)))
            }
        };
        Ok(Self {
            reader: BufReader::with_capacity(READ, input),
            source,
            number: 0,
            max_details,
        })
    }

    /// Whether the next line has yet to come.
    fn would_block(&self) -> bool {
        !self.reader.buffer().contains(&b'\n')
    }

    /// Returns the next job; an `Err` inside is about that line alone.
    async fn next(&mut self) -> anyhow::Result<Option<anyhow::Result<Numbered>>> {
        loop {
            let Some(line) = self.read().await? else {
                return Ok(None);
            };
            self.number += 1;
            let read = line.and_then(|line| match line.trim_ascii().is_empty() {
                true => Ok(None),
                false => numbered(&line, self.number, self.max_details).map(Some),
            });
            match read {
                Ok(None) => {}
                Ok(Some(line)) => return Ok(Some(Ok(line))),
                Err(error) => {
                    let place = format!("{}, line {}", self.source, self.number);
                    return Ok(Some(Err(error.context(place))));
                }
            }
        }
    }

    /// Reads up to the end of the line; of one that is too long only the end is found.
    async fn read(&mut self) -> anyhow::Result<Option<anyhow::Result<Vec<u8>>>> {
        // Escapes may make text up to six times as long as it is.
        let longest = self.max_details.saturating_mul(6) + BESIDE_DETAILS;
        let (mut line, mut length, mut is_any) = (Vec::new(), 0_u64, false);
        loop {
            let chunk = self
                .reader
                .fill_buf()
                .await
                .with_context(|| format!("cannot read {}", self.source))?;
            if chunk.is_empty() {
                break;
            }
            is_any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(chunk.len());
            length += part as u64;
            if length <= longest {
                line.extend_from_slice(&chunk[..part]);
            }
            let used = end.map_or(part, |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if length > longest {
            let error = CommandError::usage(format!(
                "the line has {length} bytes, and the limit is {longest}"
            ));
            return Ok(Some(Err(error.into())));
        }
        Ok(is_any.then_some(Ok(line)))
    }
}

fn numbered(line: &[u8], number: u64, max_details: u64) -> anyhow::Result<Numbered> {
    let line: Line = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => return Err(CommandError::usage(explain(line, &error)).into()),
    };
    let priority = match &line.priority {
        Some(text) => text
            .parse()
            .map_err(|error| CommandError::usage(format!("{error}")))?,
        None => Priority::default(),
    };
    let (uuid, chosen) = draft::identity(line.uuid, line.unique.as_deref())?;
    let draft = Draft {
        uuid,
        chosen,
        name: draft::checked_name(&line.name)?,
        priority,
        book: line.book,
        details: Value::Object(line.details),
    };
    draft::check_size(&draft.details, max_details)?;
    Ok(Numbered {
        number,
        draft,
        is_unique: line.unique.is_some(),
    })
}

/// Says what is wrong with a line, and what would be right.
fn explain(line: &[u8], error: &serde_json::Error) -> String {
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(_)) => format!("{error}"),
        Ok(other) => format!(
            "a line must be a JSON object such as {{\"name\": \"resize\"}}, and this is {}",
            draft::kind(&other)
        ),
        Err(error) => format!("not valid JSON: {error}"),
    }
}
