//! `jobboard copy`.

mod moving;
mod resume;
#[cfg(test)]
mod tests;

use std::{cell::Cell, collections::HashMap, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::StreamExt;
use uuid::Uuid;

use self::moving::{Mover, Route};
use super::{
    bulk::{
        report::{Done, Results},
        shared_trash::SharedArgs,
    },
    parts::under_claim::kept_owner,
};
use crate::{
    board::{
        Board, Detail, JobRef, Order, Query, Which,
        filter::{Filter, Filters},
        url::BoardKind,
    },
    config::Config,
    context::{Consent, Context, Creation},
    exit::CommandError,
    job::{Draft, Entry, MOVER, Owner, Shelf},
    lease::{Keeper, LEASE},
    output::count_jobs,
    transfer::{
        batches::{Batches, Candidate, Source, Unusable},
        loader::{Loaded, Loader, SHELVES},
        record,
    },
};

/// The most records of a batch, and their size but for the last one, in bytes: small enough for a slow network.
const BATCH: (usize, usize) = (200, 4 << 20);

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
    let mut results = Results::new(ctx, "move", true);
    resume(ctx, route, &mut results).await?;
    if results.total == 0 {
        ctx.out
            .note(format!("found no interrupted move from {from} to {to}"));
    }
    results.end(ctx)
}

/// Resolves the copies that interrupted moves left.
async fn resume(ctx: &mut Context, route: &Route<'_>, results: &mut Results) -> anyhow::Result<()> {
    let resumed = resume::resume(route).await;
    report(ctx, resumed.with_context(|| route.failed())?, results)?;
    results.flush(ctx, 0)
}

/// A job, and the action on it or the error.
type CopyResult = (Entry, anyhow::Result<&'static str>);

fn report(ctx: &mut Context, copied: Vec<CopyResult>, results: &mut Results) -> anyhow::Result<()> {
    for (entry, done) in copied {
        match done {
            Ok(done) => results.say(ctx, &Done::of(done, &entry))?,
            Err(error) => results.fail_entry(ctx, &entry, error),
        }
    }
    Ok(())
}

async fn between(
    ctx: &mut Context,
    (here, config): (&Arc<dyn Board>, &Config),
    route: &Route<'_>,
    args: &CopyArgs,
) -> anyhow::Result<()> {
    let (verb, doing) = match args.is_move {
        true => ("move", "moving"),
        false => ("copy", "copying"),
    };
    let health = route.from.health().await;
    let health = health.with_context(|| ctx.trying(verb, "the jobs"))?;
    let [from, to] = [&ctx.config, config].map(|it| it.board.value.url.kind());
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
    let progress = ctx.out.progress(doing, Some(health.jobs + health.trashed));
    let mut results = Results::new(ctx, verb, true).with_progress(progress);
    let mut mover = None;
    if is_move {
        resume(ctx, route, &mut results).await?;
        let lease = route.from.lease_term(LEASE).await;
        mover = Some(Mover {
            route,
            owner: Owner::new(&format!("{MOVER}{}", kept_owner(ctx.who())?))?,
            lease: lease.with_context(|| ctx.trying(verb, "the jobs"))?,
            keeper: Keeper::start(Arc::clone(here)),
            is_unfinished: Cell::default(),
        });
    }
    let choice = CopyChoice {
        args,
        filters: Filters::new(args.filter.clone()),
        kinds: (Some(from), to),
        is_move,
        unreadable: Cell::default(),
    };
    let loader = Loader::new(route.to, to, args.dry_run).await;
    let mut copy = Copy {
        route,
        choice: &choice,
        loader: loader.with_context(|| format!("cannot read the board {}", route.target))?,
        mover,
        results,
        posted: HashMap::new(),
    };
    ctx.out.outlive_reader();
    let mut ended = copy.all(ctx).await;
    let unreadable = choice.unreadable.get();
    if ended.is_ok() && !copy.posted.is_empty() && !args.dry_run {
        ended = copy.verify(ctx).await;
    }
    if unreadable > 0 {
        let how = "(`dump` and `load --malformed` copy them)";
        let note = format!("unreadable records skipped: {unreadable} {how}");
        copy.results.suspend(|| ctx.out.note(note));
    }
    ended.and(copy.results.end(ctx))
}

/// The records to copy.
struct CopyChoice<'a> {
    args: &'a CopyArgs,
    filters: Filters,
    kinds: (Option<BoardKind>, BoardKind),
    is_move: bool,
    unreadable: Cell<u64>,
}

impl<'a> CopyChoice<'a> {
    /// Reads the records of the source board in batches.
    fn batches(
        &'a self,
        board: &'a dyn Board,
        (shelf, order): (Shelf, Order),
    ) -> Batches<impl Source<Record = Passenger>> {
        let entries = board.entries(Query {
            shelf,
            which: Which::All,
            order,
            detail: Detail::Stored,
        });
        Batches::new(
            entries.map(|entry| anyhow::Ok(self.candidate(entry?))),
            BATCH,
        )
    }

    fn candidate(&self, entry: Entry) -> Candidate<Passenger> {
        let size = entry.job().map(|job| job.raw.len());
        match self.draft(&entry) {
            Ok(Some(draft)) => Ok(Some(((entry, draft), size.unwrap_or_default()))),
            Ok(None) => {
                self.unreadable.update(|it| it + u64::from(size.is_none()));
                Ok(None)
            }
            Err(why) => Err(Unusable {
                job: (entry.name().into_owned(), entry.reference().into_owned()),
                error: CommandError::refused(why).into(),
            }),
        }
    }

    /// Returns the draft of a record; `None` for a record that is not to be copied.
    fn draft(&self, entry: &Entry) -> Result<Option<Draft>, String> {
        let is_meant = self.args.shared.admits(entry) && self.filters.matches(entry, Utc::now());
        let Some(job) = entry.job().filter(|_| is_meant) else {
            return Ok(None);
        };
        if self.is_move && job.is_misnamed {
            return Err("another record has the same uuid".to_owned());
        }
        let mut draft = record::draft(job, job.raw.clone(), self.kinds)?;
        if let (Some(former), true) = (&mut draft.former, self.args.fresh) {
            former.begin_anew();
        }
        Ok(Some(draft))
    }
}

type Passenger = (Entry, Draft);

struct Copy<'a> {
    route: &'a Route<'a>,
    choice: &'a CopyChoice<'a>,
    loader: Loader<'a>,
    mover: Option<Mover<'a>>,
    results: Results,
    /// The jobs that the target board accepted, with their sequence numbers there.
    posted: HashMap<Uuid, i64>,
}

impl Copy<'_> {
    async fn all(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        for shelf in SHELVES {
            let order = Order::Posted;
            let mut batches = self.choice.batches(self.route.from, (shelf, order));
            loop {
                let fail = |it| self.results.fail_unusable(ctx, it);
                let batch = batches.next(fail).await;
                let batch = batch.with_context(|| ctx.trying("copy", "the jobs"))?;
                if batch.is_empty() {
                    break;
                }
                let copied = match (&self.mover, shelf) {
                    (Some(mover), Shelf::Board) => mover.pass(&self.loader, batch).await?,
                    _ => self.pass(batch).await?,
                };
                report(ctx, copied, &mut self.results)?;
                self.results.flush(ctx, batches.count())?;
            }
        }
        Ok(())
    }

    async fn pass(&mut self, batch: Vec<Passenger>) -> anyhow::Result<Vec<CopyResult>> {
        let loaded = self.loader.load(&borrowed(&batch)).await;
        let loaded =
            loaded.with_context(|| format!("cannot copy jobs to {}", self.route.to.name()))?;
        let copied = match self.choice.args.dry_run {
            true => "would-copy",
            false => "copied",
        };
        let results = batch.into_iter().zip(loaded);
        let results = results.map(|((entry, draft), loaded)| {
            if let Ok(Loaded::Posted { sequence }) = loaded {
                self.posted.insert(draft.uuid, sequence);
            }
            let done = loaded.map_err(Into::into);
            let done = done.and_then(|it: Loaded| it.done(copied, &entry));
            (entry, done)
        });
        Ok(results.collect())
    }

    /// Reads both boards again, and reports posted jobs that are missing or different.
    async fn verify(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        let (from, to) = (self.route.from, self.route.to);
        let loader = Loader::new(to, self.choice.kinds.1, true).await;
        let mut loader = loader
            .with_context(|| format!("cannot compare the copy with the board {}", to.name()))?;
        for shelf in SHELVES {
            let mut batches = self.choice.batches(from, (shelf, Order::Any));
            loop {
                let mut batch = batches.next(drop).await?;
                if batch.is_empty() {
                    break;
                }
                batch.retain(|(_, draft)| self.posted.contains_key(&draft.uuid));
                let known = loader.known(&borrowed(&batch)).await?;
                let missing = batch.iter().zip(known);
                let missing = missing.filter(|(_, known)| *known != Some(Loaded::Exists));
                let missing = missing.map(|(it, _)| it).collect();
                for (entry, _) in self.unperformed(missing).await? {
                    let message = "the copy was posted, but it is now missing or a different job";
                    // It is counted already.
                    self.results.total -= 1;
                    let error = CommandError::refused(message).into();
                    self.results.fail_entry(ctx, entry, error);
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
        let uuid = |(_, draft): &&Passenger| JobRef::Uuid(draft.uuid.to_string());
        let wanted: Vec<_> = jobs.iter().map(uuid).collect();
        let past = self.route.to.find(Shelf::Past, &wanted).await?;
        let left = jobs.into_iter().zip(past).filter(|((_, draft), past)| {
            let number = self.posted.get(&draft.uuid);
            let mut numbers = past.iter().filter_map(|it| it.job()?.sequence);
            !numbers.any(|it| Some(&it) == number)
        });
        Ok(left.map(|(job, _)| job).collect())
    }
}

fn borrowed(batch: &[Passenger]) -> Vec<(&Entry, &Draft)> {
    batch.iter().map(|(entry, draft)| (entry, draft)).collect()
}

fn same() -> anyhow::Error {
    let message = "source and target are the same board; nothing changed";
    CommandError::refused(message)
        .hint("use different boards for --board and --to")
        .into()
}
