//! `jobboard claim`.

mod search;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;

use self::search::{Search, WaitLimits};
use super::{
    bulk::{
        references::{Scope, find, reference},
        report::Done,
    },
    parts::{
        octavia::{refuse_to_hold, refuse_to_perform},
        unconfirmed::claim_confirmed,
        under_claim::{Performer, WonJob, expiry, lease, lease_owner, ours},
        words::of_fields,
    },
};
use crate::{
    board::{
        Board, BoardError, ClaimRules, Deadline, JobRef,
        error::Unsupported,
        filter::{Filter, Filters},
    },
    config::Source,
    context::Context,
    duration,
    exit::{CommandError, NO_JOB, verb},
    job::{Aftermath, Authority, Claimant, Claimed, Decision, Location, Settlement, Term},
    lease::{Keeper, USUAL_LEASE},
    process::{clock::Boottime, signal::Signals},
    retry::RetryPolicy,
    suggest::{Hint, Suggestion},
    worker::settling::settle_claim,
};

/// Claim a job
///
/// Without --hold or a command, the claim belongs to --who and outlives `claim`: it lasts until `abandon`, `consume` or
/// `trash`, or until --expiry passes. With --hold or a command, it is renewed, and ends with `claim`.
#[derive(Debug, clap::Args)]
#[command(mut_group("RetryPolicy", |retry| retry.requires("command").conflicts_with("hold")))]
pub(crate) struct ClaimArgs {
    /// Job: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read one from standard input
    #[arg(conflicts_with = "next")]
    job: Option<String>,

    /// Claim the first claimable job by rank
    #[arg(long)]
    next: bool,

    /// With --next: consider only matching jobs, for example details.command=none for jobs without a command
    #[arg(long, value_name = "EXPR", value_parser = of_fields, requires = "next", conflicts_with = "job")]
    filter: Vec<Filter>,

    /// With --next: consider only jobs with this name, for example 'backup-*'
    #[arg(long, value_name = "GLOB", value_parser = Filter::by_name, requires = "next", conflicts_with = "job")]
    name: Option<Filter>,

    /// With --next: wait up to this long for a claimable job
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "next",
          conflicts_with = "job")]
    wait: Option<Duration>,

    /// Release the claim after this long, for example 15m
    #[arg(long, value_name = "DURATION", value_parser = expiry,
          conflicts_with_all = ["hold", "command"])]
    expiry: Option<Duration>,

    /// Keep running and renew the claim; abandon the job on Ctrl-C
    #[arg(long)]
    hold: bool,

    /// Lease duration; the claim is renewed while the command runs [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<Duration>,

    /// With --next: exit code if no job is claimable [default: 6, or 124 after --wait]
    #[arg(long, value_name = "CODE", requires = "next", conflicts_with = "job")]
    if_none: Option<u8>,

    /// Run this command under the claim, instead of the job's own command
    ///
    /// JOBBOARD_JOB and other variables describe the job: see `help conducting`.
    ///
    /// Exit code 0 consumes the job, and 75 postpones it. Any other result is a failure: the job is retried with
    /// back-off, and trashed at its retry limit.
    ///
    /// SIGTERM and Ctrl-C go to the command. If they end it, the job is released, and the attempt does not count.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "hold")]
    command: Vec<String>,

    #[command(flatten, next_help_heading = "If the command fails")]
    retry: RetryPolicy,
}

impl ClaimArgs {
    pub(crate) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ClaimArgs) -> anyhow::Result<()> {
    if args.job.is_none() && !args.next {
        let message = "no job given: name one or use --next";
        let hint = "`jobboard claim --next` claims the first claimable job; `jobboard list \
            --unclaimed` lists the unclaimed jobs";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    let if_none = args.if_none;
    let claimed = match args.has_command() {
        true => perform(ctx, args).await.map_err(ours),
        false => claim(ctx, args).await,
    };
    match (claimed, if_none) {
        (Err(error), Some(code)) if is_none(&error) => {
            ctx.out.note(error.root_cause().to_string());
            match code {
                0 => Ok(()),
                code => Err(CommandError::Command(code).into()),
            }
        }
        (Err(error), None) if ctx.out.is_quiet() && !ctx.out.is_json() => {
            match error.downcast_ref() {
                Some(CommandError::Nothing(_)) => Err(CommandError::Command(NO_JOB).into()),
                _ => Err(error),
            }
        }
        (claimed, _) => claimed,
    }
}

fn is_none(error: &anyhow::Error) -> bool {
    use CommandError::{Nothing, TimedOut};
    matches!(error.downcast_ref(), Some(Nothing(_) | TimedOut(_)))
}

async fn claim(ctx: &mut Context, args: ClaimArgs) -> anyhow::Result<()> {
    if args.lease.is_some() && !args.hold {
        let message = "--lease needs --hold or a command; use --expiry for a claim by hand";
        return Err(CommandError::usage(message).into());
    }
    let board = ctx.writable_board()?;
    // If its holder is killed, the claim ends with its lease.
    let time = if args.hold {
        Some(args.lease.unwrap_or(USUAL_LEASE))
    } else {
        args.expiry
    };
    let hint =
        "--expiry 5m ends the claim after 5 minutes; --hold keeps the claim until you press Ctrl-C";
    refuse_to_hold(ctx, time, hint)?;
    if args.hold {
        return hold(ctx, board, args).await;
    }
    if args.expiry.is_some() && !board.capabilities().has_expiring_claims {
        return Err(BoardError::from(Unsupported::ExpiringClaims))
            .with_context(|| ctx.trying(verb::CLAIM, "a job with an expiry"));
    }
    let by = Claimant {
        owner: ctx.who().clone(),
        term: args.expiry.map_or(Term::Indefinite, Term::For),
    };
    let wanted = wanted(ctx, &*board, &args).await?;
    // A signal must not end the program between the claim and its report.
    let mut signals = Signals::ending()?;
    let limits = WaitLimits::new(&mut signals);
    let WonJob { claimed, .. } = win(ctx, &*board, &args, wanted.as_ref(), &by, limits).await?;
    // The claim lasts, although its report may have failed.
    ctx.out.report(&report(&claimed, &by)).with_context(|| {
        let (name, uuid) = (&claimed.job.name, claimed.job.reference());
        let back = Suggestion::of("abandon").with([uuid]).on(&ctx.program());
        format!("{name} is claimed, but printing that failed; `{back}` releases the claim")
    })
}

async fn perform(ctx: &mut Context, args: ClaimArgs) -> anyhow::Result<()> {
    refuse_to_perform(ctx, "run a command for a job")?;
    let board = ctx.writable_board()?;
    let wanted = wanted(ctx, &*board, &args).await?;
    let (command, lease) = (&args.command, args.lease);
    let mut performer = Performer::prepare(ctx, &*board, command, lease, &args.retry).await?;
    let by = performer.by.clone();
    let won = loop {
        // A signal during the claim is reported again before the command starts.
        let limits = WaitLimits::new(&mut performer.signals);
        let won = win(ctx, &*board, &args, wanted.as_ref(), &by, limits).await?;
        // A job that is named explicitly runs, even past its retry limit.
        if args.job.is_some() || !performer.gives_up(ctx, &*board, &won.claimed).await? {
            break won;
        }
    };
    performer.perform(ctx, board, won, &|_, _, _| ()).await
}

async fn hold(ctx: &mut Context, board: Arc<dyn Board>, args: ClaimArgs) -> anyhow::Result<()> {
    let wanted = wanted(ctx, &*board, &args).await?;
    let mut signals = Signals::ending()?;
    let term = board.lease_term(args.lease.unwrap_or(USUAL_LEASE)).await?;
    let by = Claimant {
        owner: lease_owner(ctx.who())?,
        term: Term::Lease(term),
    };
    let limits = WaitLimits::new(&mut signals);
    let won = win(ctx, &*board, &args, wanted.as_ref(), &by, limits).await?;
    let WonJob { claimed, asked } = won;
    let keeper = Keeper::start(Arc::clone(&board));
    let mut lease = keeper.hold(claimed.claim(&by.owner, term), asked);
    // Without a reader for the report, the claim is of no use.
    let printed = ctx.out.report(&report(&claimed, &by));
    if printed.is_ok() {
        ctx.out.note_at_terminal(format!(
            "holding {}; Ctrl-C releases the claim. If this process is killed, the claim expires within {}",
            claimed.job.name,
            duration::exact(term)
        ));
        tokio::select! {
            lost = lease.lost() => {
                let trying = ctx.trying("hold", &claimed.job.name);
                return Err(lost).context(trying.with(claimed.job.reference()));
            }
            _ = signals.next() => {}
        }
    }
    let decision = Decision::Abandon(Aftermath::None);
    let authority = Authority::Claim(by.owner.clone(), claimed.fence.clone());
    let settlement = Settlement::of(claimed.job.key.clone(), decision, authority);
    let settled = settle_claim(&*board, &settlement, Some(&mut lease)).await;
    settled.with_context(|| {
        let trying = ctx.trying(verb::ABANDON, &claimed.job.name);
        trying.with(claimed.job.reference())
    })?;
    printed
}

/// Explains a rejection by the caller's own claim, with the commands that help.
fn yours(ctx: &Context, board: &dyn Board, by: &Claimant, error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(BoardError::AlreadyClaimed { owner: Some(owner) }) if *owner == by.owner => {}
        _ => return error,
    }
    let owner = by.owner.text();
    let who = match &ctx.config.who.source {
        Source::Flag(name) => vec![*name, &*owner],
        _ => Vec::new(),
    };
    let hint = match board.capabilities().has_expiring_claims {
        true => Hint::new(
            "`jobboard extend JOB --expiry 15m {}` extends the claim; `jobboard consume JOB {}` completes the job",
            [&who, &who],
        ),
        false => Hint::new("`jobboard consume JOB {}` completes the job", [&who]),
    };
    let owner = by.owner.clone();
    CommandError::AlreadyYours { owner, hint }.into()
}

fn report(claimed: &Claimed, by: &Claimant) -> Done {
    let expires_in = by.term.duration().map(|term| term.as_secs_f64());
    Done::of_job("claimed", &claimed.job)
        .with("owner", by.owner.text())
        .with("fence", claimed.fence.0.as_str())
        .with("expires_in", expires_in)
}

/// Returns the named job, before signals are caught: its name may come from standard input.
async fn wanted(
    ctx: &Context,
    board: &dyn Board,
    args: &ClaimArgs,
) -> anyhow::Result<Option<JobRef>> {
    Ok(match &args.job {
        Some(typed) => Some(reference(ctx, board, Scope::board("claim"), typed).await?),
        None => None,
    })
}

async fn win(
    ctx: &Context,
    board: &dyn Board,
    args: &ClaimArgs,
    wanted: Option<&JobRef>,
    by: &Claimant,
    mut limits: WaitLimits<'_>,
) -> anyhow::Result<WonJob> {
    let rules = ClaimRules {
        is_attempt: args.has_command(),
        respects_delay: args.next,
        ..ClaimRules::BY_HAND
    };
    if let Some(wanted) = wanted {
        return win_named(ctx, board, wanted, by, rules, limits).await;
    }
    let filters = args.filter.iter().chain(&args.name).cloned();
    let mut search = Search::new(board, Filters::new(filters.collect()), by, rules);
    let trying = || ctx.trying(verb::CLAIM, "the next job");
    if let Some(won) = search.win(&mut limits).await.with_context(trying)? {
        return Ok(won);
    }
    let Some(wait) = args.wait else {
        return Err(search.nothing()).with_context(trying);
    };
    limits.end = Some(Deadline::after(wait));
    search.wait(ctx, &mut limits).await.with_context(trying)
}

async fn win_named(
    ctx: &Context,
    board: &dyn Board,
    wanted: &JobRef,
    by: &Claimant,
    rules: ClaimRules,
    mut limits: WaitLimits<'_>,
) -> anyhow::Result<WonJob> {
    let found = find(board, &[Location::Board], std::slice::from_ref(wanted));
    let only = |mut found: Vec<_>| {
        let only = found.pop();
        only.unwrap_or_else(|| Err(BoardError::NoSuchJob.into()))
    };
    let entry = limits.bound(found).await.and_then(only);
    let entry = entry.with_context(|| ctx.trying(verb::CLAIM, wanted).with(wanted))?;
    let asked = Boottime::now();
    let claimed = claim_confirmed(board, &entry, by, rules).await;
    let claimed = claimed.map_err(|error| yours(ctx, board, by, error));
    let trying = || {
        ctx.trying(verb::CLAIM, entry.name())
            .with(entry.reference())
    };
    let claimed = claimed.with_context(trying)?;
    Ok(WonJob { claimed, asked })
}
