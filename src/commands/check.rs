//! `jobboard check`.

mod metric;
mod range;
mod verdict;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::{SubsecRound, Utc};
use futures_util::TryStreamExt;

use self::{
    metric::{Measured, Metric},
    verdict::{Remark, Threshold, Thresholds, Verdict},
};
use super::parts::{
    liveness::{Overdue, is_silent},
    tally::{Tally, apart},
    words::Words,
};
use crate::{
    board::{
        Board, Detail, Health, Query,
        examine::{Finding, Part},
        filter::{Filter, Filters},
    },
    config::Expiry,
    context::Context,
    duration,
    exit::{CommandError, PluginState},
    job::{Origin, Shelf},
    output::{answer, answer_json},
    suggest::Suggestion,
};

/// The longest time to watch a claim for its renewal.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// Check the board for Nagios, Icinga or Sensu
///
/// Prints one line with performance data, and one line for each value outside its range, with the command that
/// shows more. The exit code follows the monitoring-plugin conventions.
///
/// A range is `[@]START:END`. A value outside the range raises the alert; with @, a value inside it. `10` means
/// 0:10, `10:` has no upper limit, `~:10` has no lower limit. Spans (oldest_unclaimed, longest_claim, rtt)
/// accept durations: `5m:15m`. Without ranges, the check warns about unreadable records, dead owners, claims
/// that are not renewed, claims without expiry held for an hour, exhausted retries, unsafe server settings, and
/// a board that never held a job. On an Octavia board, a job that blocks all posters is always critical.
///
/// owner_dead counts claims of dead processes. claim_not_renewed counts claims that expire although a process
/// should renew them; this check takes up to 5s more. retries_exhausted counts jobs at their retry limit, and
/// backing_off counts jobs that wait for their next attempt.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Warn if METRIC leaves this range
    #[arg(
        short,
        long,
        value_name = "METRIC=RANGE",
        value_parser = Words { all: Metric::names, read: Threshold::read }
    )]
    warn: Vec<Threshold>,

    /// Report CRITICAL if METRIC leaves this range
    #[arg(
        short,
        long,
        value_name = "METRIC=RANGE",
        value_parser = Words { all: Metric::names, read: Threshold::read }
    )]
    crit: Vec<Threshold>,

    /// Count only matching jobs; repeat it to narrow further (`jobboard help filters`)
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// Report CRITICAL if the board does not answer within this time
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    timeout: Duration,
}

pub(crate) async fn run(ctx: &mut Context, args: CheckArgs) -> anyhow::Result<()> {
    // Monitoring also reads standard error, and wants one line.
    let is_verbose = ctx.out.is_verbose();
    ctx.out.hush();
    for (option, thresholds) in [("--warn", &args.warn), ("--crit", &args.crit)] {
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
        let (name, limit) = (board.name(), duration::exact(args.timeout));
        let message = format!("the board {name} did not answer within {limit}");
        return Err(CommandError::TimedOut(message).into());
    };
    let verdict = looked?;
    let told = match ctx.out.is_json() {
        true => answer_json(&verdict),
        false => answer(&verdict.lines(is_verbose)),
    };
    match verdict.state {
        // An `OK` that could not be printed is an error.
        PluginState::Ok => told,
        _ => Err(CommandError::Command(verdict.code).into()),
    }
}

async fn look(ctx: &Context, board: &dyn Board, args: &CheckArgs) -> anyhow::Result<Verdict> {
    let trying = || ctx.trying("check", "the board");
    // The first exchange also connects.
    board.health().await.with_context(trying)?;
    let start = Instant::now();
    let health = board.health().await.with_context(trying)?;
    let round_trip = start.elapsed();
    let now = Utc::now().trunc_subsecs(6);
    let filters = Filters::new(args.filter.clone());
    let (conductors, problem) = apart(board.conductors().await).with_context(trying)?;
    let alive = conductors.as_deref().unwrap_or_default();
    let (mut tally, mut overdue) = (Tally::new(now), Overdue::new(board, alive));
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await.with_context(trying)? {
        if filters.matches(&entry, now) {
            tally.add(&entry);
            overdue.add(&entry);
        }
    }
    drop(entries);
    let trashed = match filters.is_empty() {
        true => health.trashed,
        false => trashed(board, &filters, now).await.with_context(trying)?,
    };
    let late = overdue.not_renewed(board, LONGEST_LOOK);
    let late = late.await.with_context(trying)?;
    let (figures, ..) = tally.finish(alive);
    let measured = Measured {
        figures,
        trashed,
        not_renewed: late.len() as u64,
        conductors: conductors.map(|all| all.iter().filter(|it| !is_silent(it)).count() as u64),
        round_trip,
        now,
    };
    let server = match board.capabilities().has_peers() {
        true => {
            board
                .examine(Part::Server)
                .await
                .with_context(trying)?
                .findings
        }
        // Looking for damage takes as long as the file is large.
        false => Vec::new(),
    };
    let found = usual(&measured, &health, server, problem);
    Ok(judge(ctx, args, board.name(), (&measured, found)))
}

fn judge(
    ctx: &Context,
    args: &CheckArgs,
    board: &str,
    (measured, found): (
        &Measured,
        impl Iterator<Item = (String, (Suggestion, bool))>,
    ),
) -> Verdict {
    let command = |(command, is_filtered): (Suggestion, bool)| {
        let filters = args.filter.iter().filter(|_| is_filtered);
        let filters = filters.flat_map(|it| ["--filter".to_owned(), it.to_string()]);
        command.with(filters).on(&ctx.program())
    };
    let (warn, crit) = (args.warn.clone(), args.crit.clone());
    let (thresholds, found) = match warn.is_empty() && crit.is_empty() {
        true => (Thresholds::usual(), found.collect()),
        false => (Thresholds { warn, crit }, Vec::new()),
    };
    // Neither a metric nor a range covers this.
    let expiry = ctx.config.board.value.octavia_expiry();
    let in_the_way = expiry.and_then(|expiry| in_the_way(measured, expiry));
    let found = (found.into_iter().map(|it| (PluginState::Warning, it)))
        .chain(in_the_way.map(|it| (PluginState::Critical, it)));
    let findings = found.map(|(state, (summary, words))| Remark {
        summary,
        state,
        command: command(words),
    });
    let findings = findings.collect();
    Verdict::new(board, measured, &thresholds, findings, command)
}

async fn trashed(
    board: &dyn Board,
    filters: &Filters,
    now: chrono::DateTime<Utc>,
) -> Result<u64, crate::board::BoardError> {
    let mut entries = board.entries(Query::all(Shelf::Trash, filters.detail()));
    let mut count = 0;
    while let Some(entry) = entries.try_next().await? {
        let is_ours = !matches!(entry.origin(), Origin::Beside(_));
        count += u64::from(is_ours && filters.matches(&entry, now));
    }
    Ok(count)
}

/// Returns findings that no metric covers, each with the command that shows it.
fn usual(
    measured: &Measured,
    health: &Health,
    server: Vec<Finding>,
    problem: Option<String>,
) -> impl Iterator<Item = (String, (Suggestion, bool))> {
    let forgotten = measured.figures.forgotten;
    let forgotten = (forgotten > 0).then(|| {
        let command = Suggestion::of("list --filter expires=none --filter held>1h");
        let summary = format!("claims without expiry, held for more than 1h: {forgotten}");
        (summary, (command, true))
    });
    let unused = (!health.is_used).then(|| "no job was ever posted on this board".to_owned());
    let conductors = problem.map(|why| format!("cannot read the conductors: {why}"));
    let others = [unused, conductors].into_iter().flatten();
    let others = others.map(|what| (what, (Suggestion::of("ping"), false)));
    let server = server.into_iter().map(|Finding { code, summary, .. }| {
        let command = Suggestion::of("doctor --only").with([code.name()]);
        (format!("{code}: {summary}"), (command, false))
    });
    forgotten.into_iter().chain(others).chain(server)
}

/// On an Octavia board: reports the age of the job that blocks posters.
fn in_the_way(measured: &Measured, expiry: Expiry) -> Option<(String, (Suggestion, bool))> {
    let oldest = measured.figures.oldest.as_ref()?;
    let age = duration::brief(expiry.in_the_way(oldest.since, measured.now)?);
    let summary =
        format!("blocks-posters: Octavia refuses new jobs because of a job that is {age} old");
    let command = (Suggestion::of("doctor --only blocks-posters"), false);
    Some((summary, command))
}
