//! `jobboard copy`.

mod moving;
mod resume;
#[cfg(test)]
mod tests;

use std::{cell::Cell, collections::HashMap, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::{TryStreamExt, stream::BoxStream};
use uuid::Uuid;

use self::moving::{Mover, Route};
use super::{
    bulk::{
        report::{Done, Failures},
        shared_trash::SharedArgs,
    },
    load::{record, refusal},
    parts::{
        loader::{Loaded, Loader, SHELVES},
        under_claim::kept_owner,
    },
};
use crate::{
    board::{
        self, Board, Detail, JobRef, Order, Query, Which,
        filter::{Filter, Filters},
        url::BoardKind,
    },
    config::Config,
    context::{Consent, Context, Creation},
    exit::CommandError,
    job::{Draft, Entry, MOVER, Owner, Shelf},
    lease::{Keeper, LEASE},
    output::{Progress, count_jobs},
};

const BATCH: usize = 200;

/// The size of a batch but for its last record, in bytes: small enough for a slow network.
const BYTES: usize = 4 << 20;

/// Copy or move all jobs of the board and its trash to another board
///
/// Reads both boards afterwards and reports each difference (7). A copy can be repeated: jobs that are
/// there already are skipped.
///
/// With --move, each job is claimed here, posted there under a claim, read back, consumed here, and then
/// released there. An interruption never loses a job, and never leaves both copies claimable. A job that
/// another owner holds, or whose uuid is taken on the other board, stays here and is reported. Jobs in
/// the trash are copied and stay.
///
/// --resume finishes moves that were interrupted: it releases the copies of jobs that were consumed here,
/// and removes the others. The next --move between the same boards does this first.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// The target board: a URL, or a name from the configuration
    #[arg(long, value_name = "URL|NAME", required_unless_present = "from")]
    to: Option<String>,

    /// With --resume: the board that the jobs come from, if this board is the target
    #[arg(
        long,
        value_name = "URL|NAME",
        requires = "resume",
        conflicts_with = "to"
    )]
    from: Option<String>,

    /// File with the password of the other board [default: that board's own configuration]
    ///
    /// --password-file and the environment apply to --board only.
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,

    /// Take jobs off this board once they are on the other one
    #[arg(long = "move")]
    is_move: bool,

    /// Finish interrupted moves, and move nothing else
    #[arg(long, conflicts_with_all = ["is_move", "filter", "fresh", "dry_run"])]
    resume: bool,

    /// Copy only matching jobs, for example 'name=backup-*'; repeat it to narrow further
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// Reset attempts and back-off
    #[arg(long)]
    fresh: bool,

    /// List the jobs that would be posted, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    shared: SharedArgs,

    #[command(flatten)]
    creation: Creation,
}

/// A copy is claimed without an expiry until its job is consumed.
const OCTAVIA: &str =
    "cannot move jobs to an Octavia board: a claim without an expiry blocks all its posters";

pub(crate) async fn run(ctx: &mut Context, args: CopyArgs) -> anyhow::Result<()> {
    let is_move = args.is_move && !args.dry_run;
    let here = match is_move || args.resume {
        true => ctx.writable_board()?,
        false => ctx.board()?,
    };
    let other = args.to.as_ref().or(args.from.as_ref());
    let other = other.map_or("", String::as_str);
    let password_file = args.to_password_file.as_deref();
    let (there, config) = ctx.second_board(other, password_file, !args.dry_run, &args.creation)?;
    let (own, other) = (&ctx.config.board.value, &config.board.value);
    let mut ends = [
        (&*here, own.url.absolute()),
        (&*there, other.url.absolute()),
    ];
    if args.from.is_some() {
        ends.reverse();
    }
    let [(from, source), (to, target)] = ends;
    let who = ctx.who().to_string();
    let route = Route {
        from,
        to,
        source,
        target,
        who,
    };
    let copied = match args.is_move && other.is_of_octavia() {
        _ if own.url.is_same_board(&other.url) => Err(same()),
        true => Err(CommandError::refused(OCTAVIA).into()),
        false if args.resume => finish(ctx, &route, (&config, &args.consent)).await,
        false => between(ctx, (&here, &config), &route, &args).await,
    };
    there.close().await;
    copied
}

async fn finish(
    ctx: &mut Context,
    route: &Route<'_>,
    (config, consent): (&Config, &Consent),
) -> anyhow::Result<()> {
    let (from, to) = (&route.source, &route.target);
    let question = format!("finish interrupted moves from {from} to {to}?");
    ctx.consent_on(&[&ctx.config, config], consent, &question)?;
    let mut failures = Failures::new(ctx, "move", true);
    let resumed = resume(ctx, route, &mut failures).await?;
    if resumed == 0 {
        ctx.out
            .note(format!("found no interrupted move from {from} to {to}"));
    }
    failures.end(ctx, resumed)
}

/// Resolves the copies that interrupted moves left; returns their number.
async fn resume(
    ctx: &mut Context,
    route: &Route<'_>,
    failures: &mut Failures,
) -> anyhow::Result<usize> {
    let resumed = resume::resume(route)
        .await
        .with_context(|| route.failed())?;
    let count = resumed.len();
    for (entry, done) in resumed {
        match done {
            Ok(done) => ctx.out.say(&Done::of(done, &entry))?,
            Err(error) => {
                let (name, reference) = (entry.name().into_owned(), entry.reference().into_owned());
                failures.add(ctx, name, reference, error);
            }
        }
    }
    ctx.out.flush()?;
    Ok(count)
}

async fn between(
    ctx: &mut Context,
    (here, config): (&Arc<dyn Board>, &Config),
    route: &Route<'_>,
    args: &CopyArgs,
) -> anyhow::Result<()> {
    let verb = if args.is_move { "move" } else { "copy" };
    let health = route.from.health().await;
    let health = health.with_context(|| ctx.trying(verb, "the jobs"))?;
    let kinds = [&ctx.config, config].map(|it| it.board.value.url.kind());
    let kinds = (kinds[0], kinds[1]);
    let is_move = args.is_move && !args.dry_run;
    let question = format!(
        "{verb} up to {} to {}?",
        count_jobs(health.jobs),
        route.target
    );
    let has_left = is_move && !route.from.moves().await?.is_empty();
    match is_move && (health.jobs > 0 || has_left) {
        _ if args.dry_run => {}
        true => ctx.consent_on(&[&ctx.config, config], &args.consent, &question)?,
        false => ctx.require_names(&[config], &args.consent, &question)?,
    }
    let mut failures = Failures::new(ctx, verb, true);
    let (mut mover, mut total) = (None, 0);
    if is_move {
        total = resume(ctx, route, &mut failures).await?;
        let lease = route.from.lease_term(LEASE).await;
        mover = Some(Mover {
            route,
            owner: Owner::new(&format!("{MOVER}{}", kept_owner(ctx.who())?))?,
            lease: lease.with_context(|| ctx.trying(verb, "the jobs"))?,
            keeper: Keeper::start(Arc::clone(here)),
            is_unfinished: Cell::default(),
        });
    }
    let loader = Loader::new(route.to, kinds.1, args.dry_run).await;
    let mut copy = Copy {
        route,
        kinds,
        args,
        filters: Filters::new(args.filter.clone()),
        loader: loader.with_context(|| format!("cannot read the board {}", route.target))?,
        mover,
        failures,
        posted: HashMap::new(),
        total,
        unreadable: 0,
    };
    ctx.out.outlive_reader();
    let progress = ctx.out.progress(
        if args.is_move { "moving" } else { "copying" },
        Some(health.jobs + health.trashed),
    );
    let mut ended = copy.all(ctx, &progress).await;
    if ended.is_ok() && !copy.posted.is_empty() && !args.dry_run {
        ended = copy.verify(ctx, &progress).await;
    }
    drop(progress);
    if copy.unreadable > 0 {
        ctx.out.note(format!(
            "unreadable records skipped: {} (`dump` and `load --malformed` copy them)",
            copy.unreadable
        ));
    }
    ended.and(copy.failures.end(ctx, copy.total))
}

async fn next_batch(
    entries: &mut BoxStream<'_, board::Result<Entry>>,
) -> board::Result<Vec<Entry>> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < BATCH
        && bytes < BYTES
        && let Some(entry) = entries.try_next().await?
    {
        bytes += match &entry {
            Entry::Job(job) => job.raw.len(),
            Entry::Malformed(record) => record.raw.len(),
        };
        batch.push(entry);
    }
    Ok(batch)
}

struct Copy<'a> {
    route: &'a Route<'a>,
    kinds: (BoardKind, BoardKind),
    args: &'a CopyArgs,
    filters: Filters,
    loader: Loader<'a>,
    mover: Option<Mover<'a>>,
    failures: Failures,
    /// The jobs that the target board accepted, with their sequence numbers there.
    posted: HashMap<Uuid, i64>,
    total: usize,
    unreadable: u64,
}

type Passenger = (Entry, Draft);

impl Copy<'_> {
    async fn all(&mut self, ctx: &mut Context, progress: &Progress) -> anyhow::Result<()> {
        for shelf in SHELVES {
            let mut entries = self.route.from.entries(Query {
                shelf,
                which: Which::All,
                order: Order::Posted,
                detail: Detail::Stored,
            });
            loop {
                let read = next_batch(&mut entries).await;
                let read = read.with_context(|| ctx.trying("copy", "the jobs"))?;
                let (seen, mut batch) = (read.len(), Vec::new());
                for entry in read {
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
                let told = match (&self.mover, shelf) {
                    (Some(mover), Shelf::Board) => mover.pass(&self.loader, batch).await?,
                    _ => self.pass(batch).await?,
                };
                self.tell(ctx, told, progress)?;
                progress.add(seen as u64);
            }
        }
        Ok(())
    }

    /// Returns the draft of a record; `None` if the filters exclude the record.
    fn draft(&self, entry: &Entry) -> Result<Option<Draft>, String> {
        let is_meant = self.args.shared.admits(entry) && self.filters.matches(entry, Utc::now());
        let Some(job) = entry.job().filter(|_| is_meant) else {
            return Ok(None);
        };
        if self.mover.is_some() && job.is_misnamed {
            return Err("another record has the same uuid".to_owned());
        }
        let kinds = (Some(self.kinds.0), self.kinds.1);
        let mut draft = record::draft(job, job.raw.clone(), kinds)?;
        if let (Some(former), true) = (&mut draft.former, self.args.fresh) {
            former.begin_anew();
        }
        Ok(Some(draft))
    }

    async fn pass(&mut self, batch: Vec<Passenger>) -> anyhow::Result<Vec<Told>> {
        let loaded = self.loader.load(&borrowed(&batch)).await;
        let loaded =
            loaded.with_context(|| format!("cannot copy jobs to {}", self.route.to.name()))?;
        let done = if self.args.dry_run {
            "would-copy"
        } else {
            "copied"
        };
        let told = batch
            .into_iter()
            .zip(loaded)
            .map(|((entry, draft), loaded)| {
                if let Ok(Loaded::Posted { sequence }) = loaded {
                    self.posted.insert(draft.uuid, sequence);
                }
                let told = match loaded {
                    Ok(Loaded::Posted { .. }) => Ok(done),
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

    /// Reads both boards again, and reports posted jobs that are missing or different.
    async fn verify(&mut self, ctx: &mut Context, progress: &Progress) -> anyhow::Result<()> {
        let trying = || {
            format!(
                "cannot compare the copy with the board {}",
                self.route.to.name()
            )
        };
        let mut loader = Loader::new(self.route.to, self.kinds.1, true)
            .await
            .with_context(trying)?;
        for shelf in SHELVES {
            let mut entries = self.route.from.entries(Query::all(shelf, Detail::Stored));
            loop {
                let chunk = next_batch(&mut entries).await?;
                if chunk.is_empty() {
                    break;
                }
                let with_draft = |entry| Some((self.draft(&entry).ok()??, entry));
                let batch = chunk.into_iter().filter_map(with_draft);
                let batch = batch.filter(|(draft, _)| self.posted.contains_key(&draft.uuid));
                let batch: Vec<_> = batch.map(|(draft, entry)| (entry, draft)).collect();
                let known = loader.known(&borrowed(&batch)).await?;
                let is_missing = |known: &Option<Loaded>| *known != Some(Loaded::Exists);
                let missing = batch.iter().zip(known).filter(|(_, it)| is_missing(it));
                let missing: Vec<_> = missing.map(|(it, _)| it).collect();
                for (entry, _) in self.unperformed(missing).await? {
                    let message = "the copy was posted, but it is now missing or a different job";
                    self.fail(ctx, entry, CommandError::refused(message).into(), progress);
                }
            }
        }
        Ok(())
    }

    /// Drops the jobs that have left the target board since: history has their sequence numbers.
    async fn unperformed<'p>(
        &self,
        jobs: Vec<&'p Passenger>,
    ) -> anyhow::Result<Vec<&'p Passenger>> {
        if jobs.is_empty() {
            return Ok(jobs);
        }
        let wanted = jobs
            .iter()
            .map(|(_, draft)| JobRef::Uuid(draft.uuid.to_string()));
        let past = self
            .route
            .to
            .find(Shelf::Past, &wanted.collect::<Vec<_>>())
            .await?;
        let left = jobs.into_iter().zip(past).filter(|((_, draft), past)| {
            let number = self.posted.get(&draft.uuid);
            let mut numbers = past.iter().filter_map(|it| it.job()?.sequence);
            !numbers.any(|it| Some(&it) == number)
        });
        Ok(left.map(|(job, _)| job).collect())
    }
}

/// A job, and the action on it or the error.
type Told = (Entry, anyhow::Result<&'static str>);

fn borrowed(batch: &[Passenger]) -> Vec<(&Entry, &Draft)> {
    batch.iter().map(|(entry, draft)| (entry, draft)).collect()
}

fn same() -> anyhow::Error {
    let message = "source and target are the same board; nothing changed";
    CommandError::refused(message)
        .hint("use different boards for --board and --to")
        .into()
}
