//! `jobboard load`.

use anyhow::Context as _;
use chrono::Utc;

use super::{
    bulk::report::{Done, Results},
    parts::words::of_fields,
};
use crate::{
    board::{
        filter::{Filter, Filters},
        url::BoardKind,
    },
    context::{Consent, Context, Creation},
    exit::CommandError,
    job::Location,
    output::count_jobs,
    transfer::{
        batches::{Batches, NextRecord, RecordSource, Unusable},
        dump::header,
        lines::{LineReader, refuse_array, source, weight},
        loader::{Loaded, Loader},
        record::{self, Conversion, Loadable},
        sealed::{self, SealedKind},
    },
};

/// The most records of one exchange, and their approximate memory.
const BATCH: (usize, usize) = (500, 4 << 20);

/// Load jobs from a dump onto the board
///
/// Each job keeps its uuid, name, priority, details, book, creation time, attempts, failures and back-off. Jobs from
/// the trash go to the trash. Claims are not restored. Jobs are posted in their original order. They keep their
/// numbers unless the board has already assigned higher ones, or is on ZooKeeper, which numbers jobs itself. If both
/// boards are of the same kind, the stored bytes are also identical.
///
/// A job whose uuid is already on the board or in the trash is skipped; if the two jobs differ, the difference
/// is reported. Details above max_details are not compared. A job that has ended on this board is skipped, too, if
/// the board's history still lists it. An interrupted load can therefore be repeated. A truncated or altered dump is
/// refused as a whole.
///
/// The output of `list -o jsonl` can be loaded, too. Unreadable records are skipped.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Dump to load, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: String,

    /// Load only matching jobs, for example 'name=backup-*'; repeat to narrow further
    #[arg(long, value_name = "EXPR", value_parser = of_fields)]
    filter: Vec<Filter>,

    /// Also load jobs that have ended on this board, so that they run again
    #[arg(long)]
    again: bool,

    /// Reset attempts and back-off
    #[arg(long)]
    fresh: bool,

    /// Show what would be posted, and post nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    creation: Creation,
}

pub(crate) async fn run(ctx: &mut Context, args: LoadArgs) -> anyhow::Result<()> {
    ctx.create_directory(&args.creation);
    let path = source(&ctx.config, &args.file)?;
    let board = ctx.board_writable_if(!args.dry_run)?;
    let kind = ctx.config.board.value.url.kind();
    let max_details = ctx.config.max_details.value;
    let lines = LineReader::open(path.as_deref(), max_details)?;
    let lines = DumpLines::open(lines, kind, max_details, &args).await?;
    if !args.dry_run {
        let jobs = lines.total.map_or("jobs".to_owned(), count_jobs);
        ctx.confirm_protected(&[&ctx.config], &args.consent, &format!("load {jobs}?"))?;
    }
    let mut loader = Loader::new(&*board, args.dry_run)
        .await
        .with_context(|| ctx.trying("load", "jobs"))?;
    loader.skips_ended = !args.again;
    ctx.out.outlive_reader();
    let progress = ctx.out.progress("loading", lines.total);
    let mut results = Results::new(ctx, "load", true).with_progress(progress);
    let mut batches = Batches::new(lines, BATCH);
    let mut counts = LoadCounts::default();
    let ended = load(ctx, &mut batches, loader, &mut results, &mut counts).await;
    let ended = ended.and(results.end(ctx));
    counts.note(ctx, &batches.source);
    ended
}

#[derive(Debug, Default)]
struct LoadCounts {
    posted: u64,
    trashed: u64,
    exist: u64,
    ended: u64,
    were_claimed: u64,
}

impl LoadCounts {
    fn add(&mut self, record: &Loadable, loaded: Loaded) {
        match (loaded, record.draft.location()) {
            (Loaded::Posted { .. }, location) => {
                self.were_claimed += u64::from(record.was_claimed);
                *match location {
                    Location::Trash => &mut self.trashed,
                    Location::Board | Location::History => &mut self.posted,
                } += 1;
            }
            (Loaded::Exists, _) => self.exist += 1,
            (Loaded::Ended, _) => self.ended += 1,
            (Loaded::Conflict(_) | Loaded::OtherLocation, _) => {}
        }
    }

    fn note(&self, ctx: &Context, lines: &DumpLines) {
        let would = if lines.args.dry_run { "would be " } else { "" };
        if lines.left_out > 0 {
            (ctx.out).note(format!("unreadable records skipped: {}", lines.left_out));
        }
        if self.were_claimed > 0 {
            ctx.out.note(format!(
                "{} had claims, which are not restored",
                count_jobs(self.were_claimed)
            ));
        }
        if self.ended > 0 {
            ctx.out.note(format!(
                "{} already ended on this board; skipped (--again loads them)",
                count_jobs(self.ended)
            ));
        }
        ctx.out.note(format!(
            "{would}posted: {}, to the trash: {}, already there: {}",
            self.posted, self.trashed, self.exist
        ));
    }
}

async fn load(
    ctx: &mut Context,
    batches: &mut Batches<DumpLines<'_>>,
    mut loader: Loader<'_>,
    results: &mut Results,
    counts: &mut LoadCounts,
) -> anyhow::Result<()> {
    let posted = match batches.source.args.dry_run {
        true => "would-post",
        false => "posted",
    };
    while let Some(batch) = batches.next(|it| results.fail_unusable(ctx, it)).await? {
        let first = batch[0].line;
        let jobs: Vec<_> = batch.iter().map(|it| (&it.entry, &it.draft)).collect();
        let (answers, ahead) = batches.reading_ahead(loader.load(&jobs)).await;
        let answers =
            answers.with_context(|| ctx.trying("load", format!("jobs from line {first} on")))?;
        for (record, answer) in batch.iter().zip(answers) {
            answer.iter().for_each(|it| counts.add(record, *it));
            let answer = answer.map_err(Into::into);
            match answer.and_then(|it: Loaded| it.done(posted, &record.draft, None)) {
                Ok(done) => {
                    let done = Done::of(done, &record.entry).with("line", record.line);
                    results.print(ctx, &done)?;
                }
                Err(error) => results.fail_entry(ctx, &record.entry, error),
            }
        }
        results.flush(ctx, batches.count())?;
        ahead?;
    }
    Ok(())
}

struct DumpLines<'a> {
    lines: LineReader,
    first: Option<Vec<u8>>,
    conversion: Conversion,
    total: Option<u64>,
    args: &'a LoadArgs,
    filters: Filters,
    left_out: u64,
}

impl<'a> DumpLines<'a> {
    /// Verifies a dump as a whole first.
    async fn open(
        mut lines: LineReader,
        to: BoardKind,
        max_details: u64,
        args: &'a LoadArgs,
    ) -> anyhow::Result<Self> {
        let first = sealed::first(&mut lines).await?;
        first.as_deref().map_or(Ok(()), refuse_array)?;
        let header = first.as_deref().map(header).transpose()?.flatten();
        let (lines, first, from, total) = match (header, first) {
            (Some(header), Some(line)) => {
                let (lines, trailer) = sealed::whole(lines, &line, SealedKind::Dump).await?;
                (lines, None, header.backend, Some(trailer.total()))
            }
            // A listing may be empty.
            (_, None) if args.file != "-" => {
                let message = format!("{} is empty: neither a dump nor jobs", lines.source());
                return Err(CommandError::refused(message).into());
            }
            (_, first) => (lines, first, None, None),
        };
        Ok(Self {
            lines,
            first,
            conversion: Conversion {
                from,
                to,
                max_details,
            },
            total,
            args,
            filters: Filters::new(args.filter.clone()),
            left_out: 0,
        })
    }

    fn read(&mut self, line: &[u8]) -> anyhow::Result<Option<Loadable>> {
        if line.trim_ascii().is_empty() || is_trailer(line) {
            return Ok(None);
        }
        let record = record::read(line, self.conversion).map_err(CommandError::usage)?;
        let Some(mut record) = record else {
            // A filter matches no unreadable record.
            self.left_out += u64::from(self.args.filter.is_empty());
            return Ok(None);
        };
        if !self.filters.matches(&record.entry, Utc::now()) {
            return Ok(None);
        }
        record.line = self.lines.number();
        let former = record.draft.former.as_deref_mut();
        if let (Some(former), true) = (former, self.args.fresh) {
            former.begin_anew();
        }
        Ok(Some(record))
    }
}

fn is_trailer(line: &[u8]) -> bool {
    line.starts_with(b"{\"end\":true")
}

impl RecordSource for DumpLines<'_> {
    type Record = Loadable;

    async fn next(&mut self) -> anyhow::Result<Option<NextRecord<Loadable>>> {
        let line = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => self.lines.next().await?,
        };
        // Without a header, dumps may follow each other.
        let is_end = |line: &Vec<u8>| self.total.is_some() && is_trailer(line);
        let line = line.filter(|line| !line.as_ref().is_ok_and(is_end));
        Ok(line.map(|line| {
            let measured = |line: Vec<u8>| Ok(self.read(&line)?.map(|it| (it, weight(&line))));
            line.and_then(measured).map_err(|error| {
                let job = (format!("line {}", self.lines.number()), String::new());
                Unusable { job, error }
            })
        }))
    }

    fn would_block(&self) -> bool {
        self.lines.would_block()
    }
}
