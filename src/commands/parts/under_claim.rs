//! Runs a command for a claimed job on this terminal, for `run` and `claim -- COMMAND`.

use std::{ffi::OsString, sync::Arc, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use rustix::process::Signal;
use serde_json::Value;
use uuid::Uuid;

use super::notes::no_history;
use crate::{
    board::Board,
    context::Context,
    duration,
    exit::{CommandError, chain},
    job::{CapturedOutput, Claimant, Claimed, Decision, Fence, Job, Owner, Settlement, Term},
    lease::{Keeper, KeptLease, USUAL_LEASE},
    process::{
        child::CommandEnd,
        clock::Boottime,
        command::{CommandSpec, NotRun},
        host_name,
        signal::Signals,
    },
    retry::{AttemptContext, AttemptEnd, RetryPolicy},
    trace::Span,
    worker::{HeldJob, NotPerformed, Worker, foreground::perform_here, settling::settle_claim},
};

const EXPIRY: (Duration, Duration) = (
    Duration::from_millis(1),
    Duration::from_secs(3650 * 24 * 60 * 60),
);

/// A shorter lease leaves no time to renew.
const MIN_LEASE: Duration = Duration::from_secs(1);

pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    match expiry(text)? {
        lease if lease < MIN_LEASE => Err("a lease must last at least 1s".to_owned()),
        lease => Ok(lease),
    }
}

#[derive(Debug)]
pub(crate) struct Performer {
    command: CommandSpec,
    worker: Worker,
    /// Caught since before the claim.
    pub(crate) signals: Signals,
    pub(crate) by: Claimant,
    lease: Duration,
    retry: RetryPolicy,
}

pub(crate) struct WonJob {
    pub(crate) claimed: Claimed,
    /// The time before the request, which is the earliest start of the lease.
    pub(crate) asked: Boottime,
}

/// Returns the owner name of a lease.
///
/// The name is unique, so that two runs of one command line are two owners.
pub(crate) fn lease_owner(who: &Owner) -> anyhow::Result<Owner> {
    Ok(Owner::new(&format!("{who}:{}", unique_process_name()))?)
}

/// Returns `host:pid:random`, unique per process.
pub(crate) fn unique_process_name() -> String {
    format!(
        "{}:{}:{}",
        host_name(),
        std::process::id(),
        &Uuid::new_v4().simple().to_string()[..8]
    )
}

impl Performer {
    /// Prepares a command before any job is claimed, so that a missing command fails with nothing changed.
    pub(crate) async fn prepare(
        ctx: &Context,
        board: &dyn Board,
        command: &[String],
        lease: Option<Duration>,
        retry: &RetryPolicy,
    ) -> anyhow::Result<Self> {
        let owner = lease_owner(ctx.who())?;
        let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
        let search = ctx.environment.variable("PATH");
        let command =
            CommandSpec::here(&argv, search.as_deref()).map_err(|error| not_run(ctx, error))?;
        let lease = board.lease_term(lease.unwrap_or(USUAL_LEASE)).await?;
        let withheld = ctx.environment.withheld();
        Ok(Self {
            command,
            signals: Signals::ending()?,
            worker: Worker::start(&owner.text(), &owner, &withheld)?,
            by: Claimant {
                owner,
                term: Term::Lease(lease),
            },
            lease,
            retry: retry.clone(),
        })
    }

    /// Runs the command for a claimed job, settles the job, and calls `left` if the job remains.
    pub(crate) async fn perform(
        mut self,
        ctx: &mut Context,
        board: Arc<dyn Board>,
        WonJob { claimed, asked }: WonJob,
        left: &(dyn Fn(&Context, &Job, &Decision) + Sync),
    ) -> anyhow::Result<()> {
        let claim = claimed.claim(&self.by.owner, self.lease);
        let Claimed { job, fence, .. } = claimed;
        self.warn_of_own_command(ctx, &job);
        let span = Span::of(job.details.as_ref(), false);
        self.command.trace(span.as_ref());
        let keeper = Keeper::start(Arc::clone(&board));
        let mut held = HeldJob {
            lease: keeper.hold(claim, asked),
            look_since: Boottime::now(),
            job,
            fence,
        };
        let performed = perform_here(
            &self.worker,
            &mut held,
            &mut self.command,
            &mut self.signals,
            ctx.terminal.as_mut(),
        )
        .await;
        let (end, ended) = match &performed {
            // None of these errors is a failure of the job; after a lost claim there is nothing to settle.
            Err(error) => {
                let is_held = !matches!(error, NotPerformed::Lost(_));
                (is_held.then_some(AttemptEnd::Interrupted), None)
            }
            // A person ended the command, here or at the terminal: no failure of the job.
            Ok((ended, is_interrupted))
                if *ended != CommandEnd::Exit(0)
                    && (*is_interrupted || *ended == CommandEnd::Signal(Signal::INT.as_raw())) =>
            {
                (Some(AttemptEnd::Interrupted), Some(*ended))
            }
            Ok((ended, _)) => (Some(AttemptEnd::Ended(*ended)), Some(*ended)),
        };
        let HeldJob {
            job, fence, lease, ..
        } = &mut held;
        let (job, fence) = (&*job, &*fence);
        if let Some(end) = end {
            let settled = self.settle(ctx, &*board, job, fence, &end, Some(lease));
            let decision = settled.await?;
            report(ctx, job, &decision, ended);
            if !decision.is_end() {
                left(ctx, job, &decision);
            }
        }
        match performed {
            Ok((ended, _)) => match ended.code() {
                0 => Ok(()),
                failed => Err(code(failed)),
            },
            Err(NotPerformed::Lost(lost)) => {
                let name = &job.name;
                let what = format!("the command of {name} was stopped");
                Err(anyhow::Error::from(lost).context(what))
            }
            Err(NotPerformed::Stopped(signal)) => Err(code(128 + signal.as_raw())),
            Err(NotPerformed::NotRun(error)) => Err(not_run(ctx, error)),
            Err(error @ NotPerformed::Unwatched(_)) => Err(error.into()),
        }
    }

    fn warn_of_own_command(&self, ctx: &Context, job: &Job) {
        let own = job.details.as_ref().and_then(|it| it.get("command"));
        let own = own.filter(|it| it.is_array());
        let argv: Value = self
            .command
            .argv
            .iter()
            .map(|it| it.to_string_lossy())
            .collect();
        if own.is_some_and(|own| *own != argv) {
            ctx.out.note(format!(
                "warning: {} has a command of its own, which is ignored; `jobboard conduct` runs such \
                 commands",
                job.name
            ));
        }
    }

    /// Trashes a job that is past its retry limit; returns whether it did.
    pub(crate) async fn gives_up(
        &self,
        ctx: &Context,
        board: &dyn Board,
        Claimed { job, fence, .. }: &Claimed,
    ) -> anyhow::Result<bool> {
        if !self.retry.is_spent(&job.attempts, job.own_max_attempts()) {
            return Ok(false);
        }
        let settled = self.settle(ctx, board, job, fence, &AttemptEnd::Spent, None);
        let decision = settled.await?;
        report(ctx, job, &decision, None);
        Ok(true)
    }

    async fn settle(
        &self,
        ctx: &Context,
        board: &dyn Board,
        job: &Job,
        fence: &Fence,
        end: &AttemptEnd,
        lease: Option<&mut KeptLease>,
    ) -> anyhow::Result<Decision> {
        let context = AttemptContext {
            attempts: &job.attempts,
            max_attempts: job.own_max_attempts(),
            conductor: &self.by.owner,
            // The command writes straight to the terminal.
            output: &CapturedOutput::default,
        };
        let decision = self.retry.decide(end, context);
        let settlement = Settlement::of_command(job, &decision, &self.by.owner, fence);
        let settled = settle_claim(board, &settlement, lease).await;
        let settled =
            settled.with_context(|| ctx.trying("settle", &job.name).with(job.reference()))?;
        if let Some(why) = settled.forgotten {
            ctx.out.note(no_history(&why));
        }
        Ok(decision)
    }
}

fn report(ctx: &Context, job: &Job, decision: &Decision, ended: Option<CommandEnd>) {
    let fate = match decision {
        Decision::Consume => return,
        Decision::ConsumeFailed(_) => "was removed and recorded as failed".to_owned(),
        Decision::Trash(_) | Decision::Spent(_) => "is in the trash".to_owned(),
        Decision::Abandon(_) => format!("is back on the board{}", until(decision.not_before())),
    };
    let failed = decision.failure().map(|failure| failure.headline());
    let reason = failed.or_else(|| Some(ended?.to_string()));
    if let Some(reason) = reason {
        ctx.out.note(format!("{} {fate}: {reason}", job.name));
    }
}

fn until(not_before: Option<DateTime<Utc>>) -> String {
    let wait = not_before.and_then(|time| (time - Utc::now()).to_std().ok());
    match wait.map(|wait| wait.as_secs_f64().ceil() as u64) {
        None | Some(0) => String::new(),
        Some(seconds) => {
            let wait = duration::exact(Duration::from_secs(seconds));
            format!("; retry in {wait}")
        }
    }
}

pub(crate) fn code(code: i32) -> anyhow::Error {
    CommandError::Command(u8::try_from(code).unwrap_or(1)).into()
}

/// Reports why a command did not start, with the exit codes that shells use.
pub(crate) fn not_run(ctx: &Context, error: NotRun) -> anyhow::Error {
    const NOT_EXECUTABLE: u8 = 126;
    const NOT_FOUND: u8 = 127;
    let code = match error {
        NotRun::NotFound { .. } | NotRun::NoInterpreter { .. } => NOT_FOUND,
        NotRun::NotExecutable { .. } => NOT_EXECUTABLE,
        NotRun::Failed { .. } | NotRun::NoDirectory { .. } => return error.into(),
    };
    let message = chain(&error);
    ctx.print_error(&CommandError::NotRun { code, message }.into());
    CommandError::Command(code).into()
}

/// Marks an error as one of `jobboard`, since other exit codes are the command's.
///
/// Having no job to run is an answer, not a board error.
pub(crate) fn ours(error: anyhow::Error) -> anyhow::Error {
    use CommandError::{Command, Nothing, OutOfReach, TimedOut, Usage};
    match error.downcast_ref() {
        Some(Command(_) | Usage { .. } | Nothing(_) | TimedOut(_) | OutOfReach(_)) => error,
        _ => CommandError::OwnError(error).into(),
    }
}

pub(crate) fn expiry(text: &str) -> Result<Duration, String> {
    duration::within(text, EXPIRY, "use a duration from 1ms to 3650d")
}
