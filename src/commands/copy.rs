//! `jobboard copy`.

mod moving;
mod resume;
#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::StreamExt;
use uuid::Uuid;

use self::moving::{Mover, Route};
use super::{
    apply::ApplyArgs,
    bulk::{
        act::has_changed,
        action::{Action, MoveAction},
        plan::{self, PlannedMove, SKIPPED},
        report::{Done, Results},
        shared_trash::SharedArgs,
    },
    parts::under_claim::kept_owner,
};
use crate::{
    board::{
        Board, BoardError, Detail, JobRef, Order, Query,
        filter::{Filter, Filters},
        url::BoardKind,
    },
    config::Config,
    context::{Consent, Context, Creation},
    diagnosis::is_left_by_move,
    exit::CommandError,
    job::{Draft, Entry, MOVER, Owner, Shelf},
    lease::{Keeper, LEASE},
    output::count_jobs,
    transfer::{
        batches::{Batches, NextRecord, RecordSource, Unusable},
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
#[derive(Debug, Default, clap::Args)]
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
    #[arg(long, value_name = "EXPR", value_parser = Filter::of_fields)]
    filter: Vec<Filter>,

    /// Reset attempts and back-off
    #[arg(long)]
    fresh: bool,

    /// List the jobs that would be posted, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// With --move: write a plan for `apply` to this file, and change nothing
    ///
    /// The plan lists the jobs that would move. It has no jobs in the trash.
    #[arg(
        long,
        value_name = "FILE",
        requires = "is_move",
        conflicts_with = "dry_run"
    )]
    plan: Option<PathBuf>,

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

impl CopyArgs {
    fn is_preview(&self) -> bool {
        self.dry_run || self.plan.is_some()
    }
}

pub(crate) async fn run(ctx: &mut Context, args: CopyArgs) -> anyhow::Result<()> {
    transfer(ctx, args, None).await
}

pub(crate) async fn apply(
    ctx: &mut Context,
    planned: PlannedMove,
    args: ApplyArgs,
) -> anyhow::Result<()> {
    let copy = CopyArgs {
        to: Some(planned.action.to.clone()),
        to_password_file: args.to_password_file,
        is_move: true,
        fresh: planned.action.fresh,
        dry_run: args.dry_run,
        consent: args.consent,
        ..CopyArgs::default()
    };
    transfer(ctx, copy, Some(planned)).await
}

async fn transfer(
    ctx: &mut Context,
    args: CopyArgs,
    planned: Option<PlannedMove>,
) -> anyhow::Result<()> {
    let is_move = args.is_move && !args.is_preview();
    let here = match is_move || args.resume {
        true => ctx.writable_board()?,
        false => ctx.board()?,
    };
    let other = args.to.as_ref().or(args.from.as_ref());
    let other = other.map_or("", String::as_str);
    let password_file = args.to_password_file.as_deref();
    let (there, config) =
        ctx.second_board(other, password_file, !args.is_preview(), &args.creation)?;
    let (own, other) = (&ctx.config.board.value, &config.board.value);
    let mut ends = [
        (&*here, own.url.absolute()),
        (&*there, other.url.absolute()),
    ];
    if args.from.is_some() {
        ends.reverse();
    }
    let [(from, source), (to, target)] = ends;
    let who = planned.as_ref().map_or(ctx.who(), |it| &it.who).to_string();
    let route = Route {
        from,
        to,
        source,
        target,
        who,
    };
    let is_other = planned.as_ref();
    let is_other = is_other.is_some_and(|it| it.action.target != route.target);
    let copied = match args.is_move && other.is_of_octavia() {
        _ if own.url.is_same_board(&other.url) => Err(same()),
        true => Err(CommandError::refused(OCTAVIA).into()),
        false if is_other => {
            let message = format!("the plan is for another target than {}", route.target);
            Err(CommandError::refused(message).into())
        }
        false if args.resume => finish(ctx, &route, (&config, &args.consent)).await,
        false => between(ctx, (&here, &config), &route, (&args, planned)).await,
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

async fn resume(ctx: &mut Context, route: &Route<'_>, results: &mut Results) -> anyhow::Result<()> {
    let resumed = resume::resume(route).await;
    let resumed = resumed.with_context(|| route.failed())?;
    report(ctx, resumed, (results, false))?;
    results.flush(ctx, 0)
}

type CopyResult = (Entry, anyhow::Result<&'static str>);

fn report(
    ctx: &mut Context,
    copied: Vec<CopyResult>,
    (results, is_planned): (&mut Results, bool),
) -> anyhow::Result<()> {
    for (entry, done) in copied {
        match done {
            Ok(done) => results.say(ctx, &Done::of(done, &entry))?,
            Err(error) if is_planned && has_changed(&error) => {
                let skipped = Done::skipped(&entry.reference(), entry.name().into_owned());
                results.say(ctx, &skipped)?;
            }
            Err(error) => results.fail_entry(ctx, &entry, error),
        }
    }
    Ok(())
}

async fn between(
    ctx: &mut Context,
    (here, config): (&Arc<dyn Board>, &Config),
    route: &Route<'_>,
    (args, planned): (&CopyArgs, Option<PlannedMove>),
) -> anyhow::Result<()> {
    let (verb, doing) = match args.is_move {
        true => ("move", "moving"),
        false => ("copy", "copying"),
    };
    let health = route.from.health().await;
    let health = health.with_context(|| ctx.trying(verb, "the jobs"))?;
    let [from, to] = [&ctx.config, config].map(|it| it.board.value.url.kind());
    let is_move = args.is_move && !args.is_preview();
    let jobs = planned.as_ref().map_or(health.jobs, PlannedMove::len);
    let question = format!("{verb} up to {} to {}?", count_jobs(jobs), route.target);
    let has_left = is_move && !route.from.moves().await?.is_empty();
    match is_move && (jobs > 0 || has_left) {
        _ if args.is_preview() => {}
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
        is_move: is_move || args.plan.is_some(),
        unreadable: Cell::default(),
        planned,
    };
    let loader = Loader::new(route.to, args.is_preview()).await;
    let mut copy = Copy {
        route,
        choice: &choice,
        loader: loader.with_context(|| format!("cannot read the board {}", route.target))?,
        mover,
        results,
        posted: HashMap::new(),
    };
    if let Some(file) = &args.plan {
        return write_plan(ctx, args, copy, file).await;
    }
    ctx.out.outlive_reader();
    let mut ended = copy.all(ctx).await;
    let unreadable = choice.unreadable.get();
    if ended.is_ok() && !copy.posted.is_empty() && !args.dry_run {
        ended = copy.verify(ctx).await;
    }
    if unreadable > 0 && choice.planned.is_none() {
        let how = "(`dump` and `load --malformed` copy them)";
        let note = format!("unreadable records skipped: {unreadable} {how}");
        copy.results.suspend(|| ctx.out.note(note));
    }
    let mut results = copy.results;
    if let Some(planned) = choice.planned.filter(|_| ended.is_ok()) {
        ended = report_skipped(ctx, planned, (&mut results, jobs));
    }
    ended.and(results.end(ctx))
}

async fn write_plan(
    ctx: &mut Context,
    args: &CopyArgs,
    mut copy: Copy<'_>,
    file: &Path,
) -> anyhow::Result<()> {
    let jobs = copy.movable(ctx).await?;
    let (who, target) = (ctx.who().clone(), copy.route.target.clone());
    // A URL may have a password; the address has none.
    let named = args.to.clone().filter(|to| !to.contains(':'));
    let action = Action::Move(MoveAction {
        to: named.unwrap_or_else(|| target.clone()),
        target,
        fresh: args.fresh,
    });
    copy.results.total += jobs.len();
    plan::write_jobs(ctx, file, (action, &who, None), (jobs, copy.results))
}

fn report_skipped(
    ctx: &mut Context,
    planned: PlannedMove,
    (results, all): (&mut Results, u64),
) -> anyhow::Result<()> {
    let skipped = planned.skipped();
    if !skipped.is_empty() {
        let (skipped, all) = (skipped.len(), count_jobs(all));
        results.suspend(|| ctx.out.note(format!("{SKIPPED}: {skipped} of {all}")));
    }
    for skipped in skipped {
        results.say(ctx, &skipped)?;
    }
    results.flush(ctx, 0)
}

struct CopyChoice<'a> {
    args: &'a CopyArgs,
    filters: Filters,
    kinds: (Option<BoardKind>, BoardKind),
    is_move: bool,
    unreadable: Cell<u64>,
    planned: Option<PlannedMove>,
}

impl<'a> CopyChoice<'a> {
    fn batches(
        &'a self,
        board: &'a dyn Board,
        (shelf, order): (Shelf, Order),
    ) -> Batches<impl RecordSource<Record = Passenger>> {
        let entries = board.entries(Query {
            order,
            ..Query::all(shelf, Detail::Stored)
        });
        Batches::new(
            entries.map(|entry| anyhow::Ok(self.candidate(entry?))),
            BATCH,
        )
    }

    fn candidate(&self, entry: Entry) -> NextRecord<Passenger> {
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

    fn draft(&self, entry: &Entry) -> Result<Option<Draft>, String> {
        let is_meant = self.args.shared.admits(entry) && self.filters.matches(entry, Utc::now());
        let is_meant = is_meant && self.planned.as_ref().is_none_or(|it| it.takes(entry));
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
    /// Returns the jobs on the board that can move, and reports the other ones.
    async fn movable(&mut self, ctx: &Context) -> anyhow::Result<Vec<Entry>> {
        let board = (Shelf::Board, Order::Posted);
        let mut batches = self.choice.batches(self.route.from, board);
        let mut jobs = Vec::new();
        loop {
            let fail = |it| self.results.fail_unusable(ctx, it);
            let batch = batches.next(fail).await;
            let batch = batch.with_context(|| ctx.trying("move", "the jobs"))?;
            if batch.is_empty() {
                return Ok(jobs);
            }
            let known = self.loader.known(&borrowed(&batch)).await;
            let known = known.with_context(|| self.route.failed())?;
            for ((entry, _), known) in batch.into_iter().zip(known) {
                let holding = entry.holding().filter(|it| !is_left_by_move(it));
                let owner = holding.map(|it| it.owner.clone());
                let claimed = owner.map(|owner| BoardError::AlreadyClaimed { owner }.into());
                match claimed.or(known.map(|_| taken("there"))) {
                    Some(error) => self.results.fail_entry(ctx, &entry, error),
                    None => jobs.push(entry),
                }
            }
        }
    }

    async fn all(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        let is_planned = self.choice.planned.is_some();
        for shelf in SHELVES {
            if is_planned && shelf == Shelf::Trash {
                break;
            }
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
                report(ctx, copied, (&mut self.results, is_planned))?;
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

    async fn verify(&mut self, ctx: &mut Context) -> anyhow::Result<()> {
        let (from, to) = (self.route.from, self.route.to);
        let loader = Loader::new(to, true).await;
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

fn taken(place: &str) -> anyhow::Error {
    let message = format!("a job with this uuid is already {place}; both jobs are unchanged");
    CommandError::refused(message).into()
}

fn same() -> anyhow::Error {
    let message = "source and target are the same board; nothing changed";
    CommandError::refused(message)
        .hint("use different boards for --board and --to")
        .into()
}
