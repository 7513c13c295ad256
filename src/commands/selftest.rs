//! `jobboard selftest`.

mod hurt;
mod looks;
mod processes;
mod promise;
mod report;
mod site;
mod trial;
mod verbs;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use rustix::process::Signal;
use tokio::time::{self, Instant};

#[cfg(test)]
pub(super) use self::promise::{Grade, Promise};
pub(super) use self::report::Verdict;
use self::{
    report::{Findings, Leavings, Place},
    site::Site,
    trial::Trial,
};
use super::parts::under_claim;
use crate::{
    board::ground::Ground,
    context::{Consent, Context},
    duration,
    exit::{CommandError, chain},
    output::Progress,
    process::signal::Signals,
};

/// How long it takes at least: less is too little for a claim to lapse.
const SHORTEST: Duration = Duration::from_secs(2);

/// How long it takes at most.
const LONGEST: Duration = Duration::from_secs(3600);

/// Try whether the board keeps its promises where it is
///
/// Works on a board of its own beside yours: on Redis under keys that begin with the namespace of yours,
/// on ZooKeeper in a node beside it, for an embedded board in a file beside its file. Your jobs are not
/// touched, and what it made is removed, also if it is interrupted; what one left that was killed, the
/// next one removes. Asks first, unless --yes is given.
///
/// It posts, claims, keeps claims and lets them lapse, settles, trashes, restores and purges, has several
/// claim the same jobs at once, breaks its own connections off in the middle of claims, and looks what became
/// of it; and it measures how long that takes. Each promise is ok, weak (kept, but not as one might wish),
/// broken, or untried. `jobboard help triage` tells what each means.
///
/// In a pipe each line has, separated by tabs: promise, grade, why, what to do; the last ones are the
/// figures and the verdict.
#[derive(Debug, clap::Args)]
pub(crate) struct SelftestArgs {
    /// How long it may take, 2s to 1h; cleaning up comes behind it
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = bounded)]
    bound: Duration,

    /// Only show where it would work, and what earlier ones left there
    #[arg(long, conflicts_with = "clean")]
    dry_run: bool,

    /// Only remove what earlier ones left that were killed
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    consent: Consent,
}

fn bounded(text: &str) -> Result<Duration, String> {
    let bound = duration::parse(text).map_err(|error| error.to_string())?;
    match (SHORTEST..=LONGEST).contains(&bound) {
        true => Ok(bound),
        false => Err("it takes 2s to 1h".to_owned()),
    }
}

pub(crate) async fn run(ctx: &mut Context, args: SelftestArgs) -> anyhow::Result<()> {
    if args.clean {
        ctx.require_writable()?;
    }
    let (board, mut opener) = ctx.ground()?;
    // What a request waits for in vain is not there for the others.
    opener.patience = opener.patience.min(args.bound / 5);
    let trying = || ctx.trying("test", "the board");
    // It also connects.
    let health = match board.health().await {
        Err(error) if error.is_retryable() => return Err(error).with_context(trying),
        health => health.ok(),
    };
    let site = Site::new(&ctx.config.board.value.url, opener);
    if args.dry_run {
        let left = site.left(&*board).await.with_context(trying)?;
        return ctx.out.report(&Leavings::shown(&*board, &site, left));
    }
    let is_writable = ctx.require_writable();
    if is_writable.is_ok() {
        let question = match args.clean {
            true => "remove what earlier tests left?".to_owned(),
            false => format!("test the server for {}?", duration::exact(args.bound)),
        };
        ctx.consent(&args.consent, &question)?;
    }
    if args.clean {
        return clean(ctx, &*board, &site).await;
    }
    let progress = ctx.out.progress("testing", Some(args.bound.as_secs()));
    let mut findings = Findings::new(&*board, health.map(|it| it.server));
    let mut signals = Signals::ending()?;
    let start = Instant::now();
    looks::settings(&*board, &mut findings).await;
    let interrupted = match is_writable {
        Ok(()) => {
            let tested = act(&site, &board, start + args.bound, &mut findings);
            tokio::select! {
                biased;
                signal = signals.next() => Some(signal),
                () = tested => None,
                () = seconds(&progress) => None,
            }
        }
        Err(error) => {
            findings.nothing_tried(&chain(error.as_ref()));
            None
        }
    };
    findings.over(start.elapsed());
    drop(progress);
    conclude(ctx, &site, findings, interrupted, signals).await
}

/// Tells for ever how the time passes.
async fn seconds(progress: &Progress) {
    loop {
        time::sleep(Duration::from_secs(1)).await;
        progress.add(1);
    }
}

/// Cleans up, and tells what was found, unless it was interrupted.
async fn conclude(
    ctx: &mut Context,
    site: &Site,
    mut findings: Findings,
    interrupted: Option<Signal>,
    mut signals: Signals,
) -> anyhow::Result<()> {
    // A second signal does not wait.
    let cleaned = tokio::select! {
        cleaned = site.clean_up() => cleaned,
        _ = signals.next(), if interrupted.is_some() => Err("it was interrupted".to_owned()),
    };
    let place = Place::of(site, ctx.config.program());
    if let Err(why) = &cleaned {
        ctx.out.note(format!(
            "warning: {} is left behind: {why}; `{}` removes it",
            place.place, place.command
        ));
    }
    if let Some(signal) = interrupted {
        ctx.out.note("interrupted, and nothing is told");
        return Err(under_claim::code(128 + signal.as_raw()));
    }
    let denied = findings.denied.take();
    let told = findings.told(cleaned.err().map(|_| place));
    ctx.out.report(&told)?;
    if let Some(error) = denied {
        return Err(error).with_context(|| ctx.trying("test", "the board"));
    }
    match told.verdict {
        Verdict::Broken => Err(CommandError::Command(7).into()),
        Verdict::Sound | Verdict::Weak | Verdict::Unknown => Ok(()),
    }
}

/// Tries all that takes acting, on a board beside the one in use.
async fn act(site: &Site, board: &Arc<dyn Ground>, end: Instant, findings: &mut Findings) {
    match site.remove_left(&**board).await {
        Ok((removed, failed)) => {
            findings.removed = removed;
            findings.unseen.extend(failed);
        }
        Err(error) => findings
            .unseen
            .push(format!("what earlier tests left: {}", chain(&error))),
    }
    match Trial::begin(site, end).await {
        Ok(trial) => trial.run(findings).await,
        Err(error) => findings.cannot_begin(error),
    }
}

/// Removes what earlier ones left, and tells what that was.
async fn clean(ctx: &mut Context, board: &dyn Ground, site: &Site) -> anyhow::Result<()> {
    let removed = site.remove_left(board).await;
    let (removed, failed) =
        removed.with_context(|| ctx.trying("remove", "what earlier tests left"))?;
    for why in &failed {
        ctx.out.note(format!("warning: {why}"));
    }
    let total = removed.len() + failed.len();
    ctx.out.report(&Leavings::removed(board, removed))?;
    match failed.len() {
        0 => Ok(()),
        failed => Err(CommandError::Partly { failed, total }.into()),
    }
}
