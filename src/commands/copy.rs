//! `jobboard copy`.

mod choice;
mod run;

use std::{
    cell::Cell,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;

use self::{
    choice::CopyChoice,
    run::{CopyRun, report},
};
use super::{
    bulk::{
        plan::{self, MoveAction, PlannedAction, PlannedMove, SKIPPED},
        report::Results,
        shared_trash::SharedArgs,
    },
    parts::{under_claim::lease_owner, words::of_fields},
};
use crate::{
    board::filter::{Filter, Filters},
    config::Config,
    context::{Consent, Context, Creation},
    exit::CommandError,
    lease::USUAL_LEASE,
    output::count_jobs,
    transfer::{
        loader::Loader,
        moving::{self, Mover, Route},
        record::Conversion,
    },
};

/// Copy or move all jobs, including trashed ones, to another board
///
/// After copying, compares both boards and reports each difference (exit code 7). Details above max_details are not
/// compared. A copy can be repeated: jobs that are already on the target board are skipped.
///
/// With --move, each job is claimed on this board, posted on the target board as claimed, read back, consumed on this
/// board, and released on the target board. An interruption never loses a job, and never leaves both copies claimable.
/// A job that another owner holds, or whose uuid is taken on the target board, stays on this board and is reported.
/// Jobs in the trash are copied, and the originals stay.
///
/// --resume finishes moves that were interrupted: it releases the copies of jobs that were consumed on this board, and
/// deletes the other copies. The next --move between the same boards does this first.
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

    /// File with the password of the target board [default: that board's own configuration]
    ///
    /// --password-file and the environment apply to --board only.
    #[arg(long, value_name = "FILE")]
    to_password_file: Option<PathBuf>,

    /// Take jobs off this board once they are on the target board
    #[arg(long = "move")]
    is_move: bool,

    /// Finish interrupted moves, and move nothing else
    #[arg(long, conflicts_with_all = ["is_move", "filter", "fresh", "dry_run"])]
    resume: bool,

    /// Copy only matching jobs, for example 'name=backup-*'; repeat to narrow further
    #[arg(long, value_name = "EXPR", value_parser = of_fields)]
    filter: Vec<Filter>,

    /// Reset attempts and back-off
    #[arg(long)]
    fresh: bool,

    /// List the jobs that would be posted, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// With --move: write a plan for `apply` to this file, and change nothing
    ///
    /// The plan lists the jobs that would move. It does not include jobs in the trash.
    #[arg(
        long,
        value_name = "FILE",
        requires = "is_move",
        conflicts_with = "dry_run"
    )]
    plan: Option<PathBuf>,

    /// The plan that `apply` carries out.
    #[arg(skip)]
    planned: Option<PlannedMove>,

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

    fn moves_now(&self) -> bool {
        self.is_move && !self.is_preview()
    }
}

pub(crate) async fn apply(
    ctx: &mut Context,
    planned: PlannedMove,
    to_password_file: Option<PathBuf>,
    consent: Consent,
    dry_run: bool,
) -> anyhow::Result<()> {
    let args = CopyArgs {
        to: Some(planned.action.to.clone()),
        to_password_file,
        is_move: true,
        fresh: planned.action.fresh,
        dry_run,
        consent,
        planned: Some(planned),
        ..CopyArgs::default()
    };
    run(ctx, args).await
}

pub(crate) async fn run(ctx: &mut Context, args: CopyArgs) -> anyhow::Result<()> {
    let here = ctx.board_writable_if(args.moves_now() || args.resume)?;
    let other = args.to.as_ref().or(args.from.as_ref());
    let other = other.map_or("", String::as_str);
    let password_file = args.to_password_file.as_deref();
    let (there, config) =
        ctx.second_board(other, password_file, !args.is_preview(), &args.creation)?;
    let (own, other) = (&ctx.config.board.value, &config.board.value);
    let mut ends = [
        (here, own.url.absolute()),
        (Arc::clone(&there), other.url.absolute()),
    ];
    if args.from.is_some() {
        ends.reverse();
    }
    let [(from, source), (to, target)] = ends;
    let planned = args.planned.as_ref();
    let who = planned.map_or(ctx.who(), |it| &it.who).to_string();
    let route = Route {
        from,
        to,
        source,
        target,
        who,
    };
    let is_other = planned.is_some_and(|it| it.action.target != route.target);
    let copied = match args.is_move && other.is_of_octavia() {
        _ if own.url.is_same_board(&other.url) => Err(moving::same_board().into()),
        true => Err(CommandError::refused(OCTAVIA).into()),
        false if is_other => {
            let message = format!("the plan is for a target other than {}", route.target);
            Err(CommandError::refused(message).into())
        }
        false if args.resume => finish(ctx, &route, &config, &args.consent).await,
        false => between(ctx, &config, &route, &args).await,
    };
    there.close().await;
    copied
}

async fn finish(
    ctx: &mut Context,
    route: &Route,
    config: &Config,
    consent: &Consent,
) -> anyhow::Result<()> {
    let (from, to) = (&route.source, &route.target);
    let question = format!("finish interrupted moves from {from} to {to}?");
    ctx.ask_on(&[&ctx.config, config], consent, &question)?;
    let mut results = Results::new(ctx, "move", true);
    resume(ctx, route, &mut results).await?;
    if results.total == 0 {
        ctx.out
            .note(format!("found no interrupted move from {from} to {to}"));
    }
    results.end(ctx)
}

async fn resume(ctx: &mut Context, route: &Route, results: &mut Results) -> anyhow::Result<()> {
    let resumed = moving::resume(route).await;
    let resumed = resumed.with_context(|| route.failed())?;
    report(ctx, resumed, results, false)?;
    results.flush(ctx, 0)
}

/// Asks before a move, and before a copy to a protected board.
fn ask(ctx: &Context, config: &Config, args: &CopyArgs, question: &str) -> anyhow::Result<()> {
    // A peer may post jobs to an empty board meanwhile.
    match args.moves_now() {
        _ if args.is_preview() => Ok(()),
        true => ctx.ask_on(&[&ctx.config, config], &args.consent, question),
        false => ctx.confirm_protected(&[config], &args.consent, question),
    }
}

async fn prepare_mover<'a>(ctx: &Context, route: &'a Route) -> anyhow::Result<Mover<'a>> {
    let lease = route.from.lease_term(USUAL_LEASE).await;
    let lease = lease.with_context(|| ctx.trying("move", "the jobs"))?;
    Mover::new(route, &lease_owner(ctx.who())?, lease)
}

async fn between(
    ctx: &mut Context,
    config: &Config,
    route: &Route,
    args: &CopyArgs,
) -> anyhow::Result<()> {
    let (verb, doing) = match args.is_move {
        true => ("move", "moving"),
        false => ("copy", "copying"),
    };
    let health = route.from.health().await;
    let health = health.with_context(|| ctx.trying(verb, "the jobs"))?;
    let [from, to] = [&ctx.config, config].map(|it| it.board.value.url.kind());
    let planned = args.planned.as_ref();
    let jobs = planned.map_or(health.jobs, PlannedMove::len);
    let most = match jobs {
        0 => "jobs".to_owned(),
        _ => format!("up to {}", count_jobs(jobs)),
    };
    let question = format!("{verb} {most} to {}?", route.target);
    ask(ctx, config, args, &question)?;
    let progress = ctx.out.progress(doing, Some(health.jobs + health.trashed));
    let mut results = Results::new(ctx, verb, true).with_progress(progress);
    let mut mover = None;
    if args.moves_now() {
        resume(ctx, route, &mut results).await?;
        mover = Some(prepare_mover(ctx, route).await?);
    }
    let choice = CopyChoice {
        args,
        filters: Filters::new(args.filter.clone()),
        conversion: Conversion {
            from: Some(from),
            to,
            max_details: ctx.config.max_details.value,
        },
        unreadable: Cell::default(),
    };
    let loader = Loader::new(&*route.to, args.is_preview()).await;
    let mut copy = CopyRun {
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
    if unreadable > 0 && planned.is_none() {
        let note = format!("unreadable records skipped: {unreadable} (a dump keeps them)");
        copy.results.suspend(|| ctx.out.note(note));
    }
    let mut results = copy.results;
    if results.total == 0 && unreadable == 0 && planned.is_none() && ended.is_ok() {
        results.suspend(|| ctx.out.note("no job matches; nothing changed"));
    }
    if let Some(planned) = planned.filter(|_| ended.is_ok()) {
        ended = report_skipped(ctx, planned, &mut results, jobs);
    }
    ended.and(results.end(ctx))
}

async fn write_plan(
    ctx: &mut Context,
    args: &CopyArgs,
    mut copy: CopyRun<'_>,
    file: &Path,
) -> anyhow::Result<()> {
    let jobs = copy.movable(ctx).await?;
    let (who, target) = (ctx.who().clone(), copy.route.target.clone());
    // A URL may have a password; the address has none.
    let named = args.to.clone().filter(|to| !to.contains(':'));
    let action = PlannedAction::Move(MoveAction {
        to: named.unwrap_or_else(|| target.clone()),
        target,
        fresh: args.fresh,
    });
    copy.results.total += jobs.len();
    plan::write(ctx, file, action, &who, None, jobs, copy.results)
}

fn report_skipped(
    ctx: &mut Context,
    planned: &PlannedMove,
    results: &mut Results,
    all: u64,
) -> anyhow::Result<()> {
    let skipped = planned.skipped();
    if !skipped.is_empty() {
        let (skipped, all) = (skipped.len(), count_jobs(all));
        results.suspend(|| ctx.out.note(format!("{SKIPPED}: {skipped} of {all}")));
    }
    for skipped in skipped {
        results.print(ctx, &skipped)?;
    }
    results.flush(ctx, 0)
}
