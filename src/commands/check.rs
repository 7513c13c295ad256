//! `jobboard check`.

pub(crate) mod metric;
mod range;
mod verdict;

use std::time::Duration;

use anyhow::Context as _;
use chrono::{SubsecRound, Utc};

use self::{
    metric::{BoardMeasures, Metric},
    verdict::{CheckFinding, CheckVerdict, Thresholds},
};
use super::parts::{notes::unused, words::of_fields};
use crate::{
    board::{
        Board, BoardExt, Health,
        examine::Part,
        filter::{Filter, Filters},
    },
    context::Context,
    diagnosis::{BOARD, Snapshot, Surveyor},
    duration,
    exit::{CommandError, PluginState},
    job::{Entry, Location},
    problem::{Code, CodeCount, Problem, sort},
    suggest::Suggestion,
};

/// Report the health of the board to Nagios, Icinga or Sensu
///
/// Prints one line with performance data, and one line for each value outside its range, with the command that
/// shows more. The exit code follows the monitoring-plugin conventions.
///
/// A range is `[@]START:END`. A value outside the range raises the alert; with @, a value inside it. `10` means
/// 0:10, `10:` has no upper limit, `~:10` has no lower limit. Times (oldest_unclaimed, longest_claim, rtt)
/// accept durations: `5m:15m`. Without ranges, the check reports WARNING for every error and warning that `doctor`
/// finds with the jobs, conductors, pauses, moves and counters of the board or with a Redis server, including failed
/// jobs in the trash, and for a board that has never held a job. Only `doctor` checks the connection, this machine,
/// Octavia, board files and stray keys. Use --crit to report an error as CRITICAL, for example `--crit owner_dead=0`;
/// ranges replace the check for all problems. On an Octavia board, a job that blocks all posters is always CRITICAL.
///
/// A problem metric, such as owner_dead, counts the same jobs as `doctor`. Common metrics are always printed, the
/// others only if a range names them. Counting `failed` requires reading the trash. Measuring claim_not_renewed takes
/// up to 2s longer. backing_off counts jobs that wait for their next attempt.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    thresholds: Thresholds,

    /// Count only matching jobs; repeat to narrow further (`jobboard help filters`)
    #[arg(long, value_name = "EXPR", value_parser = of_fields)]
    filter: Vec<Filter>,

    /// Report CRITICAL if the board does not answer within this time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    timeout: Duration,
}

pub(crate) async fn run(ctx: &mut Context, args: CheckArgs) -> anyhow::Result<()> {
    // Monitoring also reads standard error, and wants one line.
    let is_verbose = ctx.out.is_verbose();
    ctx.out.silence();
    let given = &args.thresholds;
    for (option, thresholds) in [("--warn", &given.warn), ("--crit", &given.crit)] {
        let metrics = thresholds.iter().map(|it| it.metric).enumerate();
        let mut twice =
            metrics.filter(|(at, it)| thresholds[..*at].iter().any(|one| one.metric == *it));
        if let Some((_, metric)) = twice.next() {
            let message = format!("{option} sets {metric} twice");
            return Err(CommandError::usage(message).into());
        }
    }
    // Requests must not outlast the plugin's own timeout.
    let op_timeout = &mut ctx.config.op_timeout.value;
    *op_timeout = args.timeout.clamp(Duration::from_millis(1), *op_timeout);
    let board = ctx.board()?;
    let look = look(ctx, &*board, &args);
    let Ok(looked) = tokio::time::timeout(args.timeout, look).await else {
        let (name, limit) = (board.url(), duration::exact(args.timeout));
        let message = format!("the board {name} did not answer within {limit}");
        return Err(CommandError::TimedOut(message).into());
    };
    let verdict = looked?;
    let printed = ctx.out.answer(&verdict.lines(is_verbose), &verdict);
    match verdict.state {
        // An `OK` that could not be printed is an error.
        PluginState::Ok => printed,
        _ => Err(CommandError::Command(verdict.code).into()),
    }
}

async fn look(ctx: &Context, board: &dyn Board, args: &CheckArgs) -> anyhow::Result<CheckVerdict> {
    let trying = || ctx.trying("check", "the board");
    let (health, round_trip) = board.timed_health().await.with_context(trying)?;
    let now = Utc::now().trunc_subsecs(6);
    let filters = Filters::new(args.filter.clone());
    let expiry = ctx.config.board.value.octavia_expiry();
    let snapshot = Snapshot::read(board, expiry, now).await;
    let mut surveyor = Surveyor::new(snapshot.with_context(trying)?);
    let reads_trash = args
        .thresholds
        .or_usual()
        .shown()
        .any(|it| it == Metric::Failed);
    let matches = |it: &Entry| filters.matches(it, now);
    let jobs = surveyor.read(board, BOARD, |it| matches(&it).then_some(it));
    jobs.await.with_context(trying)?;
    let mut trashed = 0;
    if reads_trash || !filters.is_empty() {
        let trash = (Location::Trash, filters.detail());
        let trash = surveyor.read(board, trash, |it| {
            let is_counted = matches(&it);
            trashed += u64::from(is_counted);
            (is_counted && reads_trash).then_some(it)
        });
        trash.await.with_context(trying)?;
    }
    if filters.is_empty() {
        trashed = health.trashed;
    }
    let survey = surveyor.finish(board).await.with_context(trying)?;
    let server = match board.capabilities().has_peers() {
        true => {
            board
                .examine(Part::Server)
                .await
                .with_context(trying)?
                .problems
        }
        // The search for damage reads the whole file.
        false => Vec::new(),
    };
    let mut problems = survey.problems();
    // The other problems would be found from a part of the jobs.
    problems.retain(|it| filters.is_empty() || it.jobs > 0);
    problems.extend(server);
    sort(&mut problems);
    let measured = BoardMeasures {
        trashed,
        survey,
        problems,
        round_trip,
    };
    Ok(judge(ctx, args, board, &measured, &health))
}

fn judge(
    ctx: &Context,
    args: &CheckArgs,
    board: &dyn Board,
    measured: &BoardMeasures,
    health: &Health,
) -> CheckVerdict {
    let command = |(command, is_filtered): (Suggestion, bool)| {
        let filters = args.filter.iter().filter(|_| is_filtered);
        let filters = filters.flat_map(|it| ["--filter".to_owned(), it.to_string()]);
        command.with(filters).on(&ctx.program())
    };
    let (thresholds, are_usual) = (args.thresholds.or_usual(), args.thresholds.is_empty());
    // Neither a metric nor a range covers these.
    let has_metric = |it: &Problem| {
        let mut shown = thresholds.shown();
        it.jobs > 0 && shown.any(|metric| metric.code() == Some(it.code))
    };
    let others = measured
        .problems
        .iter()
        .filter(|it| it.is_wrong() && !has_metric(it));
    let others: Vec<_> = others.collect();
    let finding = |state, count, summary, look| CheckFinding {
        count,
        summary,
        state,
        command: command((look, false)),
    };
    let mut findings = Vec::new();
    for of in CodeCount::of(others.iter().copied()) {
        let state = match of.code {
            Code::BlocksPosters => PluginState::Critical,
            _ if !are_usual => continue,
            _ => PluginState::Warning,
        };
        let look = Suggestion::of("doctor --only").with([of.code.name()]);
        let first = others.iter().find(|it| it.code == of.code);
        let summary = first.map(|it| it.summary.clone()).unwrap_or_default();
        findings.push(finding(state, Some(of), summary, look));
    }
    let unseen = measured.survey.snapshot.unseen.iter();
    let unseen = unseen.map(|what| format!("cannot read {what}"));
    let unseen = unseen.map(|what| (what, Suggestion::of("ping")));
    let unused = || (unused(board, "this board"), Suggestion::of("config"));
    let unused = (!health.is_used).then(unused).into_iter();
    let others = unused.chain(unseen).filter(|_| are_usual);
    let warning = |(what, look)| finding(PluginState::Warning, None, what, look);
    findings.extend(others.map(warning));
    CheckVerdict::new(board.url(), measured, &thresholds, findings, command)
}
