//! `jobboard selftest`.

mod actor;
mod examinations;
mod fault_tests;
mod processes;
mod promise;
mod report;
mod scratch;
mod trial;
mod verbs;

use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use tokio::time::{self, Instant};

#[cfg(test)]
pub(super) use self::promise::{Grade, Promise};
pub(super) use self::report::BoardGrade;
pub(super) use self::scratch::Scratch;
use self::{
    report::{Findings, LeftoverBoard, RemovalReport},
    trial::Trial,
};
use super::parts::under_claim;
use crate::{
    board::scratch::Testable,
    context::{Consent, Context},
    duration,
    exit::{CommandError, PARTLY, chain},
    output::Progress,
    process::signal::Signals,
    suggest::Suggestion,
};

/// The shortest test: less is too short for a claim to expire.
const MIN_DURATION: Duration = Duration::from_secs(2);

const MAX_DURATION: Duration = Duration::from_secs(3600);

/// Test whether this server can be trusted with jobs
///
/// Works on a scratch board next to yours: under keys that begin with your namespace on Redis, in a sibling
/// node on ZooKeeper, in a second file for an embedded board. Your jobs are not touched. The scratch board is
/// removed afterwards, even after an interruption; the next run removes the leftovers of a killed run. Asks
/// first, unless --yes is given.
///
/// The test posts, claims, renews, expires, settles, trashes, restores and purges jobs, lets several claimants
/// compete, breaks its own connections during claims, and measures latencies. Each promise is ok, weak (kept
/// with limitations), broken, or untried. `jobboard help troubleshooting` explains each.
#[derive(Debug, clap::Args)]
pub(crate) struct SelftestArgs {
    /// Time limit, 2s to 1h; cleanup takes up to 10s more
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = bounded)]
    bound: Duration,

    /// Show where the test would write, and what earlier runs left there
    #[arg(long, conflicts_with = "clean")]
    dry_run: bool,

    /// Only remove the leftovers of killed runs
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    consent: Consent,
}

fn bounded(text: &str) -> Result<Duration, String> {
    duration::within(
        text,
        (MIN_DURATION, MAX_DURATION),
        "use a duration from 2s to 1h",
    )
}

pub(crate) async fn run(ctx: &mut Context, args: SelftestArgs) -> anyhow::Result<()> {
    if args.clean {
        ctx.require_writable()?;
    }
    let (board, mut opener) = ctx.testable_board()?;
    // A request that waits without success takes its time from the other tests.
    opener.op_timeout = opener.op_timeout.min(MIN_DURATION.max(args.bound / 4));
    let scratch = Scratch::new(ctx.config.board.value.url.resolved(), opener);
    if !args.clean {
        scratch.require_short_name()?;
    }
    let trying = || ctx.trying("test", "the board");
    // Includes the time to connect.
    let health = match board.health().await {
        Err(error) if error.is_retryable() => return Err(error).with_context(trying),
        health => health.ok(),
    };
    if args.dry_run {
        let place = Some(scratch.url.to_string());
        return tidy(ctx, &*board, &scratch, place).await;
    }
    let is_writable = ctx.require_writable();
    if is_writable.is_ok() {
        let question = match args.clean {
            true => "remove leftovers of earlier tests?".to_owned(),
            false => format!("run a {} server test?", duration::exact(args.bound)),
        };
        ctx.ask(&args.consent, &question)?;
    }
    if args.clean {
        return tidy(ctx, &*board, &scratch, None).await;
    }
    let progress = ctx.out.progress("testing", Some(args.bound.as_secs()));
    let mut findings = Findings::new(&*board, health.map(|it| it.server));
    let mut signals = Signals::ending()?;
    let start = Instant::now();
    let tested = async {
        examinations::settings(&*board, start + args.bound / 4, &mut findings).await;
        match is_writable {
            Ok(()) => act(&scratch, &*board, start + args.bound, &mut findings).await,
            Err(error) => findings.nothing_tried(&chain(error.as_ref())),
        }
    };
    let interrupted = tokio::select! {
        biased;
        signal = signals.next() => Some(signal),
        () = tested => None,
        () = seconds(&progress) => None,
    };
    findings.seconds = start.elapsed().as_secs_f64();
    drop(progress);
    conclude(ctx, &scratch, findings, interrupted, signals).await
}

async fn seconds(progress: &Progress) {
    loop {
        time::sleep(Duration::from_secs(1)).await;
        progress.add(1);
    }
}

async fn act(scratch: &Scratch, board: &dyn Testable, last: Instant, findings: &mut Findings) {
    let begun = Instant::now();
    let swept = time::timeout_at(begun + (last - begun) / 4, scratch.sweep(board)).await;
    match swept {
        Ok(Ok((removed, failed))) => {
            findings.removed = removed;
            findings.unseen.extend(failed);
        }
        Ok(Err(error)) => {
            let why = chain(&error);
            findings
                .unseen
                .push(format!("leftovers of earlier tests: {why}"));
        }
        Err(_) => findings
            .unseen
            .push("leftovers of earlier tests: out of time".to_owned()),
    }
    match time::timeout_at(last, Trial::begin(scratch, last)).await {
        Ok(Ok(trial)) => trial.run(findings).await,
        Ok(Err(error)) => findings.cannot_begin(error),
        Err(_) => {}
    }
}

async fn conclude(
    ctx: &mut Context,
    scratch: &Scratch,
    mut findings: Findings,
    interrupted: Option<Signal>,
    mut signals: Signals,
) -> anyhow::Result<()> {
    // A second signal ends the clean-up.
    let cleaned = tokio::select! {
        cleaned = scratch.clean_up() => cleaned,
        _ = signals.next(), if interrupted.is_some() => Err("interrupted".to_owned()),
    };
    if let Err(why) = cleaned {
        let command = Suggestion::of("selftest --clean -y").on(&ctx.program());
        let place = scratch.url.to_string();
        ctx.out.note(format!(
            "warning: {place} was not removed: {why}; `{command}` removes the test board"
        ));
        findings.left = Some(LeftoverBoard { place, command });
    }
    if let Some(signal) = interrupted {
        ctx.out.note("interrupted; no result");
        return Err(under_claim::code(128 + signal.as_raw()));
    }
    findings.conclude();
    let denied = findings.denied.take();
    ctx.out.report(&findings)?;
    if let Some(error) = denied {
        return Err(error).with_context(|| ctx.trying("test", "the board"));
    }
    match findings.verdict {
        BoardGrade::Broken => Err(CommandError::Command(PARTLY).into()),
        BoardGrade::Sound | BoardGrade::Weak | BoardGrade::Unknown => Ok(()),
    }
}

async fn tidy(
    ctx: &mut Context,
    board: &dyn Testable,
    scratch: &Scratch,
    place: Option<String>,
) -> anyhow::Result<()> {
    let found = match place {
        Some(_) => scratch.leftovers(board).await,
        None => scratch.sweep(board).await,
    };
    let (names, failed) =
        found.with_context(|| ctx.trying("look for", "leftovers of earlier tests"))?;
    for why in &failed {
        ctx.out.note(format!("warning: {why}"));
    }
    let total = names.len() + failed.len();
    let failed = if place.is_some() { 0 } else { failed.len() };
    let (left, removed) = match place {
        Some(_) => (names, Vec::new()),
        None => (Vec::new(), names),
    };
    ctx.out.report(&RemovalReport {
        board: board.url().to_owned(),
        place,
        left,
        removed,
    })?;
    CommandError::partly("test boards", failed, total)
}
