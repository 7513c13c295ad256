//! `jobboard load`.

pub(super) mod record;

use anyhow::Context as _;
use chrono::Utc;

use self::record::Loadable;
use super::{
    bulk::report::{Done, Failures},
    parts::{
        draft, dump_format,
        line_reader::{LineReader, weight},
        loader::{Loaded, Loader},
        sealed::{self, Kind},
    },
};
use crate::{
    board::{
        filter::{Filter, Filters},
        url::BoardKind,
    },
    context::{Consent, Context, Creation},
    exit::CommandError,
    job::{Entry, Shelf},
    output::{Progress, count_jobs},
    suggest::Hint,
};

const BATCH: usize = 500;

/// The approximate memory of the lines in one exchange.
const BATCH_WEIGHT: usize = 8 << 20;

/// Load jobs from a dump onto the board
///
/// Each job keeps its uuid, name, priority, details, book, creation time, attempts, failures and back-off. Jobs
/// from the trash go to the trash. Claims are not restored. Jobs are posted in their old order, and keep their
/// numbers unless the board has already assigned higher ones. On the same kind of board the stored bytes are
/// equal, too.
///
/// A job whose uuid is already on the board or in the trash is skipped; if the two jobs differ, the difference
/// is reported. An interrupted load can therefore be repeated. A truncated or altered dump is refused as a
/// whole.
///
/// The output of `list -o jsonl` can be loaded, too.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Dump to load, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: String,

    /// Load only matching jobs, for example 'name=backup-*'; repeat it to narrow further
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// Reset attempts and back-off
    #[arg(long)]
    fresh: bool,

    /// Load unreadable records, too, onto the same kind of board
    ///
    /// Python services on that board may fail on such a record or delete it.
    #[arg(long)]
    malformed: bool,

    /// Show what would be posted, and post nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    creation: Creation,
}

struct Source {
    lines: LineReader,
    first: Option<Vec<u8>>,
    /// The kind of the dumped board; `None` for a listing.
    from: Option<BoardKind>,
    /// The number of records, if known.
    total: Option<u64>,
}

pub(crate) async fn run(ctx: &mut Context, args: LoadArgs) -> anyhow::Result<()> {
    ctx.create_folder(&args.creation);
    let path = draft::source(&ctx.config, &args.file)?;
    // A dry run also works on a read-only board.
    let board = match args.dry_run {
        true => ctx.board()?,
        false => ctx.writable_board()?,
    };
    let max_details = ctx.config.max_details.value;
    let source = Source::open(LineReader::open(path.as_deref(), max_details)?).await?;
    if !args.dry_run {
        let jobs = source.total.map_or("jobs".to_owned(), count_jobs);
        ctx.require_names(&[&ctx.config], &args.consent, &format!("load {jobs}?"))?;
    }
    let kind = ctx.config.board.value.url.kind();
    let loader = Loader::new(&*board, kind, args.dry_run)
        .await
        .with_context(|| ctx.trying("load", "jobs"))?;
    ctx.out.outlive_reader();
    let progress = ctx.out.progress("loading", source.total);
    let mut load = Load {
        kinds: (source.from, kind),
        filters: Filters::new(args.filter.clone()),
        loader,
        failures: Failures::new(ctx, "load", true),
        tally: Tally::default(),
        args,
    };
    let ended = load.all(ctx, source, &progress).await;
    drop(progress);
    let ended = ended.and(load.failures.end(ctx, load.tally.total));
    load.tally.tell(ctx, &load.args);
    ended
}

impl Source {
    async fn open(mut lines: LineReader) -> anyhow::Result<Self> {
        let first = sealed::first(&mut lines).await?;
        let header = first
            .as_deref()
            .map(dump_format::header)
            .transpose()?
            .flatten();
        let (Some(header), Some(line)) = (header, &first) else {
            let (from, total) = (None, None);
            return Ok(Self {
                lines,
                first,
                from,
                total,
            });
        };
        let (lines, trailer) = sealed::whole(lines, line, Kind::Dump).await?;
        Ok(Self {
            lines,
            first: None,
            from: header.backend,
            total: Some(trailer.total()),
        })
    }

    /// Returns the next line and its number; `None` after the last record.
    async fn next(&mut self) -> anyhow::Result<Option<(u64, anyhow::Result<Vec<u8>>)>> {
        let line = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.lines.next().await?,
        };
        let is_end = |line: &anyhow::Result<Vec<u8>>| {
            let is_trailer = |line: &Vec<u8>| line.starts_with(b"{\"end\":true");
            line.as_ref().is_ok_and(is_trailer)
        };
        let line = line.filter(|line| !is_end(line));
        Ok(line.map(|line| (self.lines.number(), line)))
    }
}

#[derive(Debug, Default)]
struct Tally {
    total: usize,
    posted: u64,
    trashed: u64,
    exist: u64,
    were_claimed: u64,
    left_out: u64,
}

impl Tally {
    fn tell(&self, ctx: &Context, args: &LoadArgs) {
        let would = if args.dry_run { "would be " } else { "" };
        if self.left_out > 0 {
            ctx.out.note(format!(
                "unreadable records skipped: {} (--malformed loads them)",
                self.left_out
            ));
        }
        if self.were_claimed > 0 {
            ctx.out.note(format!(
                "{} of these were claimed; claims are not restored",
                count_jobs(self.were_claimed)
            ));
        }
        ctx.out.note(format!(
            "{would}posted: {}, to the trash: {}, already there: {}",
            self.posted, self.trashed, self.exist
        ));
    }
}

struct Load<'a> {
    args: LoadArgs,
    kinds: (Option<BoardKind>, BoardKind),
    filters: Filters,
    loader: Loader<'a>,
    failures: Failures,
    tally: Tally,
}

impl Load<'_> {
    async fn all(
        &mut self,
        ctx: &mut Context,
        mut source: Source,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let mut is_ended = false;
        while !is_ended {
            let (mut batch, mut heavy, mut lines) = (Vec::new(), 0, 0);
            while lines < BATCH && heavy < BATCH_WEIGHT {
                let Some((number, line)) = source.next().await? else {
                    is_ended = true;
                    break;
                };
                lines += 1;
                let line = line.and_then(|line| {
                    heavy += weight(&line);
                    self.read(number, &line)
                });
                match line {
                    Ok(record) => batch.extend(record),
                    Err(error) => {
                        self.tally.total += 1;
                        let name = format!("line {number}");
                        progress.suspend(|| self.failures.add(ctx, name, String::new(), error));
                    }
                }
                if source.lines.would_block() && !batch.is_empty() {
                    break;
                }
            }
            self.send(ctx, batch, progress).await?;
            progress.add(lines as u64);
        }
        Ok(())
    }

    /// Returns `None` for a line without a job.
    fn read(&mut self, number: u64, line: &[u8]) -> anyhow::Result<Option<Loadable>> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut record = record::read(line, self.kinds).map_err(CommandError::usage)?;
        if !self.filters.matches(&record.entry, Utc::now()) {
            return Ok(None);
        }
        record.line = Some(number);
        let former = record.draft.former.as_deref_mut();
        if let (Some(former), true) = (former, self.args.fresh) {
            former.begin_anew();
        }
        if let Entry::Malformed(malformed) = &record.entry {
            if !self.args.malformed {
                self.tally.left_out += 1;
                return Ok(None);
            }
            if self.kinds.0 != Some(self.kinds.1) || malformed.raw.is_empty() {
                let message = "an unreadable record can only go to the same kind of board";
                return Err(CommandError::refused(message).into());
            }
        }
        Ok(Some(record))
    }

    async fn send(
        &mut self,
        ctx: &mut Context,
        batch: Vec<Loadable>,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let jobs: Vec<_> = batch
            .iter()
            .map(|record| (&record.entry, &record.draft))
            .collect();
        let answers = self.loader.load(&jobs).await.with_context(|| {
            let line = batch
                .first()
                .and_then(|record| record.line)
                .unwrap_or_default();
            ctx.trying("load", format!("jobs from line {line} on"))
        })?;
        for (record, answer) in batch.iter().zip(answers) {
            self.tally.total += 1;
            let done = match answer {
                Ok(Loaded::Posted { .. }) => {
                    self.tally.were_claimed += u64::from(record.was_claimed);
                    *match record.draft.shelf() {
                        Shelf::Trash => &mut self.tally.trashed,
                        Shelf::Board | Shelf::Past => &mut self.tally.posted,
                    } += 1;
                    if self.args.dry_run {
                        "would-post"
                    } else {
                        "posted"
                    }
                }
                Ok(Loaded::Exists) => {
                    self.tally.exist += 1;
                    "exists"
                }
                Ok(loaded @ (Loaded::Conflict | Loaded::Shelved)) => {
                    self.fail(ctx, record, refusal(&record.entry, loaded), progress);
                    continue;
                }
                Err(error) => {
                    self.fail(ctx, record, error.into(), progress);
                    continue;
                }
            };
            let done = Done::of(done, &record.entry).with("line", record.line);
            progress.suspend(|| ctx.out.say(&done))?;
        }
        progress.suspend(|| ctx.out.flush())
    }

    fn fail(
        &mut self,
        ctx: &Context,
        record: &Loadable,
        error: anyhow::Error,
        progress: &Progress,
    ) {
        let (name, reference) = (record.entry.name(), record.entry.reference());
        progress.suspend(|| {
            self.failures
                .add(ctx, name.into_owned(), reference.into_owned(), error);
        });
    }
}

pub(super) fn refusal(entry: &Entry, found: Loaded) -> anyhow::Error {
    let message = match (found, entry.job().map(|job| job.shelf)) {
        (Loaded::Shelved, Some(Shelf::Trash)) => {
            "the job is on the board already, not in the trash; skipped"
        }
        (Loaded::Shelved, _) => "the job is in the trash already, not on the board; skipped",
        _ => "the board has a different job with this uuid; skipped",
    };
    let hint = Hint::new(
        "`jobboard show {}` prints the existing job",
        [&[&entry.reference()]],
    );
    CommandError::refused(message).hint(hint).into()
}
