//! `jobboard copy`.

mod broken;
mod fate;
mod moving;

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;
use uuid::Uuid;

use self::moving::Mover;
use super::{
    load::{record, refusal},
    parts::{
        done::Done,
        failures::Failures,
        loader::{Loaded, Loader, SHELVES},
        select::count,
        shared_trash::SharedArgs,
    },
};
use crate::{
    board::{
        Board, Detail, Order, Query, Which,
        filter::{Filter, Filters},
        url::BoardKind,
    },
    context::{Consent, Context, Creation},
    exit::CommandError,
    job::{Draft, Entry, Shelf},
    output::Progress,
};

/// How many jobs go from one board to the other at a time.
const BATCH: usize = 200;

/// How many bytes they may have, but for the last one of them: few enough for a slow network.
const BYTES: usize = 4 << 20;

/// Copy all jobs of the board and its trash to another board, or move them there
///
/// As `dump` and `load` do without a file, and then by reading both boards: what is missing there, or
/// another one, is told (7). It can be done again.
///
/// With --move each job is claimed here, posted there, read back, and consumed here: at no moment is
/// it on neither board. If that is broken off, a job may be on both, and stays claimed here for ten
/// minutes (on ZooKeeper as long as the session); done again on this machine, the move goes on with it.
/// What somebody has is left here, and told. What is in the trash is copied and stays. It asks first,
/// unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The other board: a URL, or a name from the configuration
    #[arg(long, value_name = "URL|NAME")]
    to: String,

    /// Read the password of the other board from this file
    ///
    /// Without it that board's own configuration says it; --password-file and the environment are about
    /// the board that is copied.
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,

    /// Take the jobs off the board that are on the other one now
    #[arg(long = "move")]
    is_move: bool,

    /// Copy only jobs for which this holds, such as 'name=backup-*'; several must all hold
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// Have their attempts begin anew, and none held back
    #[arg(long)]
    fresh: bool,

    /// Say what would be posted, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    creation: Creation,
}

pub(crate) async fn run(ctx: &mut Context, args: CopyArgs) -> anyhow::Result<()> {
    let from = match args.is_move && !args.dry_run {
        true => ctx.writable_board()?,
        false => ctx.board()?,
    };
    let password_file = args.to_password_file.as_deref();
    let (to, config) = ctx.second_board(&args.to, password_file, !args.dry_run, &args.creation)?;
    let url = &ctx.config.board.value.url;
    let kinds = (url.kind(), config.board.value.url.kind());
    let copied = match *url == config.board.value.url {
        true => Err(moving::same()),
        false => between(ctx, (&from, &*to), kinds, &args).await,
    };
    to.close().await;
    copied
}

async fn between(
    ctx: &mut Context,
    (from, to): (&Arc<dyn Board>, &dyn Board),
    kinds: (BoardKind, BoardKind),
    args: &CopyArgs,
) -> anyhow::Result<()> {
    let health = from.health().await;
    let health = health.with_context(|| ctx.trying("copy", "the jobs"))?;
    if args.is_move && !args.dry_run && health.jobs > 0 {
        let jobs = count(health.jobs);
        ctx.consent(
            &args.consent,
            &format!("move up to {jobs} to {}?", to.name()),
        )?;
    }
    let loader = Loader::new(to, kinds.1, args.dry_run).await;
    let mover = match args.is_move && !args.dry_run {
        true => Some(Mover::new(ctx, from, to).await?),
        false => None,
    };
    let mut copy = Copy {
        from: &**from,
        to,
        kinds,
        args,
        filters: Filters::new(args.filter.clone()),
        loader: loader.with_context(|| format!("cannot read the board {}", to.name()))?,
        mover,
        failures: Failures::new(ctx, if args.is_move { "move" } else { "copy" }, true),
        passed: HashSet::new(),
        total: 0,
        unreadable: 0,
    };
    ctx.out.outlive_reader();
    let progress = ctx.out.progress(
        if args.is_move { "moving" } else { "copying" },
        Some(health.jobs + health.trashed),
    );
    let mut ended = copy.all(ctx, &progress).await;
    // What was moved was read there one by one, and is here no more; what is in the trash stays.
    let shelves = match args.is_move {
        true => &[Shelf::Trash][..],
        false => &SHELVES,
    };
    if ended.is_ok() && !copy.passed.is_empty() && !args.dry_run {
        ended = copy.verify(ctx, shelves, &progress).await;
    }
    drop(progress);
    if copy.unreadable > 0 {
        ctx.out.note(format!(
            "left out, since they cannot be read: {} (`dump` and `load --malformed` take them along)",
            copy.unreadable
        ));
    }
    ended.and(copy.failures.end(ctx, copy.total))
}

/// Jobs on their way from one board to another.
struct Copy<'a> {
    from: &'a dyn Board,
    to: &'a dyn Board,
    kinds: (BoardKind, BoardKind),
    args: &'a CopyArgs,
    filters: Filters,
    loader: Loader<'a>,
    mover: Option<Mover<'a>>,
    failures: Failures,
    /// What is on the other board now, or was, as it said.
    passed: HashSet<Uuid>,
    total: usize,
    unreadable: u64,
}

/// A job as it was listed, and as it is to be posted.
type Passenger = (Entry, Draft);

impl Copy<'_> {
    async fn all(&mut self, ctx: &mut Context, progress: &Progress) -> anyhow::Result<()> {
        for shelf in SHELVES {
            let mut entries = self.from.entries(Query {
                shelf,
                which: Which::All,
                order: Order::Posted,
                detail: Detail::Stored,
            });
            loop {
                let mut batch = Vec::new();
                let (mut seen, mut bytes) = (0, 0);
                while seen < BATCH
                    && bytes < BYTES
                    && let Some(entry) = entries
                        .try_next()
                        .await
                        .with_context(|| ctx.trying("copy", "the jobs"))?
                {
                    seen += 1;
                    bytes += entry.job().map_or(0, |job| job.raw.len());
                    match self.draft(&entry) {
                        Ok(Some(draft)) => batch.push((entry, draft)),
                        Ok(None) => self.unreadable += u64::from(entry.job().is_none()),
                        Err(why) => {
                            self.total += 1;
                            self.fail(ctx, &entry, CommandError::refused(why).into(), progress);
                        }
                    }
                }
                if seen == 0 {
                    break;
                }
                if let (Some(mover), Shelf::Board) = (&self.mover, shelf) {
                    let told = mover.pass(&mut self.loader, batch).await?;
                    self.tell(ctx, told, progress)?;
                } else {
                    let told = self.pass(batch).await?;
                    self.tell(ctx, told, progress)?;
                }
                progress.add(seen as u64);
            }
        }
        Ok(())
    }

    /// Makes of a record what is to be posted; none, if it is not meant, or cannot be read.
    fn draft(&self, entry: &Entry) -> Result<Option<Draft>, String> {
        let is_meant = self.args.shared.admits(entry) && self.filters.matches(entry, Utc::now());
        let Some(job) = entry.job().filter(|_| is_meant) else {
            return Ok(None);
        };
        let kinds = (Some(self.kinds.0), self.kinds.1);
        let mut draft = record::draft(job, job.raw.clone(), kinds)?;
        if let (Some(former), true) = (&mut draft.former, self.args.fresh) {
            former.begin_anew();
        }
        Ok(Some(draft))
    }

    /// Posts jobs on the other board.
    async fn pass(&mut self, batch: Vec<Passenger>) -> anyhow::Result<Vec<Told>> {
        let loaded = self.loader.load(&borrowed(&batch)).await;
        let loaded = loaded.with_context(|| format!("cannot copy jobs to {}", self.to.name()))?;
        let done = if self.args.dry_run {
            "would-copy"
        } else {
            "copied"
        };
        let told = batch
            .into_iter()
            .zip(loaded)
            .map(|((entry, draft), loaded)| {
                if let Ok(Loaded::Posted | Loaded::Exists) = loaded {
                    self.passed.insert(draft.uuid);
                }
                let told = match loaded {
                    Ok(Loaded::Posted) => Ok(done),
                    Ok(Loaded::Exists) => Ok("exists"),
                    Ok(loaded @ (Loaded::Conflict | Loaded::Shelved)) => {
                        Err(refusal(&entry, loaded))
                    }
                    Err(error) => Err(error.into()),
                };
                (entry, told)
            });
        Ok(told.collect())
    }

    fn tell(
        &mut self,
        ctx: &mut Context,
        told: Vec<Told>,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        for (entry, told) in told {
            self.total += 1;
            match told {
                Ok(done) => progress.suspend(|| ctx.out.say(&Done::of(done, &entry)))?,
                Err(error) => self.fail(ctx, &entry, error, progress),
            }
        }
        progress.suspend(|| ctx.out.flush())
    }

    fn fail(&mut self, ctx: &Context, entry: &Entry, error: anyhow::Error, progress: &Progress) {
        let (name, reference) = (entry.name().into_owned(), entry.reference().into_owned());
        progress.suspend(|| self.failures.add(ctx, name, reference, error));
    }

    /// Reads both boards, and tells what is here and not there.
    async fn verify(
        &mut self,
        ctx: &mut Context,
        shelves: &[Shelf],
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let trying = || format!("cannot compare it with the board {}", self.to.name());
        let mut loader = Loader::new(self.to, self.kinds.1, true)
            .await
            .with_context(trying)?;
        for shelf in shelves {
            let entries = self.from.entries(Query::all(*shelf, Detail::Stored));
            let mut entries = entries.try_chunks(BATCH);
            while let Some(chunk) = entries.try_next().await? {
                let with_draft = |entry| Some((self.draft(&entry).ok()??, entry));
                let batch = chunk.into_iter().filter_map(with_draft);
                let batch: Vec<_> = batch.map(|(draft, entry)| (entry, draft)).collect();
                let known = loader.known(&borrowed(&batch)).await?;
                let is_missing = |known: &Option<Loaded>| *known != Some(Loaded::Exists);
                let missing = batch.iter().zip(known).filter(|(_, it)| is_missing(it));
                // What was posted here meanwhile was not copied.
                let missing = missing.filter(|((_, draft), _)| self.passed.contains(&draft.uuid));
                let missing: Vec<_> = missing.map(|((entry, draft), _)| (entry, draft)).collect();
                let there = loader.read_back(&missing).await?;
                for (entry, _) in missing.iter().zip(there).filter(|it| !it.1).map(|it| it.0) {
                    let message =
                        "it was copied, and is not on the other board, or is another one there";
                    self.fail(ctx, entry, CommandError::refused(message).into(), progress);
                }
            }
        }
        Ok(())
    }
}

/// A job, and what was done to it or why not.
type Told = (Entry, anyhow::Result<&'static str>);

fn borrowed(batch: &[Passenger]) -> Vec<(&Entry, &Draft)> {
    batch.iter().map(|(entry, draft)| (entry, draft)).collect()
}
