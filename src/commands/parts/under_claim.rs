//! Runs a command for a claimed job on this terminal, for `run` and `claim -- COMMAND`.

use std::{ffi::OsString, sync::Arc, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use rustix::process::Signal;
use uuid::Uuid;

use super::unconfirmed::settle_kept;
use crate::{
    board::Board,
    commands::bulk::task::no_history,
    context::Context,
    duration,
    exit::CommandError,
    job::{
        Claim, Claimant, Claimed, Details, Fence, History, Identity, JobKey, Outcome, Owner, Said,
        Settlement, Term,
    },
    lease::{
        Keeper, LEASE,
        foreground::{NotPerformed, Performed, perform_here},
    },
    process::{
        child::Ended,
        clock::Boottime,
        command::{Command, NotRun},
        guard::{Guard, Launch, LeftOver},
        signal::Signals,
        spawn::Spawner,
    },
    retry::{self, Case, Course, Patience},
    trace::Span,
};

/// The limits of a claim's expiry.
const EXPIRY: (Duration, Duration) = (
    Duration::from_millis(1),
    Duration::from_secs(3650 * 24 * 60 * 60),
);

/// A shorter lease leaves no time to renew.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

pub(crate) fn lease(text: &str) -> Result<Duration, String> {
    match expiry(text)? {
        lease if lease < SHORTEST_LEASE => Err("a lease must last at least 1s".to_owned()),
        lease => Ok(lease),
    }
}

#[derive(Debug)]
pub(crate) struct Performer {
    command: Command,
    spawner: Spawner,
    /// Caught since before the claim.
    pub(crate) signals: Signals,
    guard: Arc<Guard>,
    by: Claimant,
    lease: Duration,
    patience: Patience,
}

#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) key: JobKey,
    /// The reference that commands accept.
    pub(crate) reference: String,
    pub(crate) identity: Identity,
    pub(crate) fence: Fence,
    /// Includes this attempt.
    pub(crate) history: History,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) span: Option<Span>,
    pub(crate) details: Option<Details>,
    /// The time before the claim request.
    pub(crate) asked: Boottime,
}

impl Held {
    pub(crate) fn new(Claimed { job, fence, .. }: Claimed, asked: Boottime) -> Self {
        Self {
            max_attempts: job.details.as_ref().and_then(retry::own_max_attempts),
            span: Span::of(job.details.as_ref(), false),
            identity: Identity::from(&job),
            reference: job.reference().into_owned(),
            key: job.key,
            fence,
            history: job.history,
            details: job.details,
            asked,
        }
    }
}

/// Returns the owner name of a lease.
///
/// The name is unique, so that two runs of one command line are two owners.
pub(crate) fn kept_owner(who: &Owner) -> anyhow::Result<Owner> {
    Ok(Owner::new(&format!("{who}:{}", this_process()))?)
}

/// Returns `host:pid:random`, unique per process.
pub(crate) fn this_process() -> String {
    format!(
        "{}:{}:{}",
        rustix::system::uname().nodename().to_string_lossy(),
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
        patience: &Patience,
    ) -> anyhow::Result<Self> {
        let owner = kept_owner(ctx.who())?;
        let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
        let search = ctx.environment.variable("PATH");
        let command =
            Command::here(&argv, search.as_deref()).map_err(|error| not_run(ctx, error))?;
        let lease = board.lease_term(lease.unwrap_or(LEASE)).await?;
        let withheld = ctx.environment.withheld();
        Ok(Self {
            command,
            spawner: Spawner::of_conductor(&withheld, &owner.text(), &owner)?,
            signals: Signals::ending()?,
            guard: Arc::new(Guard::start(Launch::this_program(), &owner.text())?),
            by: Claimant {
                owner,
                term: Term::Kept(lease),
            },
            lease,
            patience: patience.clone(),
        })
    }

    pub(crate) fn claimant(&self) -> &Claimant {
        &self.by
    }

    /// Runs the command for a claimed job, settles the job, and calls `left` if the job remains.
    pub(crate) async fn perform(
        mut self,
        ctx: &mut Context,
        board: Arc<dyn Board>,
        job: Held,
        left: &(dyn Fn(&Context, &Held, &Outcome) + Sync),
    ) -> anyhow::Result<()> {
        let command = &mut self.command;
        let uuid = &job.reference;
        command.introduce(
            (uuid, &job.identity.name),
            (job.history.attempts, &job.fence),
            job.details.as_ref().map(Details::value).as_deref(),
        );
        command.trace(job.span.as_ref());
        let keeper = Keeper::start(Arc::clone(&board));
        let claim = Claim {
            key: job.key.clone(),
            owner: self.by.owner.clone(),
            fence: Some(job.fence.clone()),
            term: self.lease,
        };
        let mut lease = keeper.hold(claim, job.asked);
        // An earlier owner may have died together with its guard.
        let left_over = LeftOver::default();
        left_over.end(uuid, Boottime::now()).await;
        let label = self.guard.label(uuid);
        let performed = perform_here(
            (&self.spawner, &self.command, label),
            &mut lease,
            &self.guard,
            &mut self.signals,
            ctx.terminal.as_mut(),
        )
        .await;
        let (course, ended) = match &performed {
            Ok(Performed::Lost(_)) => (None, None),
            // A mistyped command is no failure of the job.
            Ok(Performed::NotStarted(_)) | Err(_) => (Some(Course::Interrupted), None),
            Ok(Performed::Ended { ended, interrupted }) => match is_by_hand(*ended, *interrupted) {
                true => (Some(Course::Interrupted), Some(*ended)),
                false => (Some(Course::Ended(*ended)), Some(*ended)),
            },
        };
        if let Some(course) = course {
            let outcome = self.settle(ctx, &*board, &job, &course).await?;
            drop(lease);
            tell(ctx, &job, &outcome, ended);
            if !outcome.is_end() {
                left(ctx, &job, &outcome);
            }
        }
        match performed {
            Ok(Performed::Ended { ended, .. }) => match ended.code() {
                0 => Ok(()),
                failed => Err(code(failed)),
            },
            Ok(Performed::Lost(lost)) => {
                let name = &job.identity.name;
                let what = format!("{name} was claimed by another client; its command was stopped");
                Err(anyhow::Error::from(lost).context(what))
            }
            Ok(Performed::NotStarted(signal)) => Err(code(128 + signal.as_raw())),
            Err(NotPerformed::NotRun(error)) => Err(not_run(ctx, error)),
            Err(error @ NotPerformed::Unwatched(_)) => Err(error.into()),
        }
    }

    /// Trashes a job that is past its retry limit; returns whether it did.
    pub(crate) async fn gives_up(
        &self,
        ctx: &Context,
        board: &dyn Board,
        job: &Held,
    ) -> anyhow::Result<bool> {
        if !self.patience.is_spent(&job.history, job.max_attempts) {
            return Ok(false);
        }
        let outcome = self.settle(ctx, board, job, &Course::Spent).await?;
        tell(ctx, job, &outcome, None);
        Ok(true)
    }

    /// Settles the job by the end of its command; returns the outcome.
    async fn settle(
        &self,
        ctx: &Context,
        board: &dyn Board,
        job: &Held,
        course: &Course,
    ) -> anyhow::Result<Outcome> {
        let case = Case {
            history: &job.history,
            max_attempts: job.max_attempts,
            conductor: &self.by.owner,
            // The command writes straight to the terminal.
            said: &Said::default,
        };
        let outcome = self.patience.judge(course, case);
        let claim = (&self.by.owner, &job.fence);
        let settlement = Settlement::of_command(&job.key, || job.identity.clone(), &outcome, claim);
        let settled = settle_kept(board, &settlement).await.with_context(|| {
            ctx.trying("settle", &job.identity.name)
                .with(&job.reference)
        })?;
        if let Some(why) = settled.forgotten {
            ctx.out.note(no_history(&why));
        }
        Ok(outcome)
    }
}

/// Whether a person ended the command, here or at the terminal: no failure of the job.
fn is_by_hand(ended: Ended, interrupted: Option<Signal>) -> bool {
    match ended {
        Ended::Exit(0) => false,
        _ => interrupted.is_some() || ended == Ended::Signal(Signal::INT.as_raw()),
    }
}

fn tell(ctx: &Context, job: &Held, outcome: &Outcome, ended: Option<Ended>) {
    let fate = match outcome {
        Outcome::Consume => return,
        Outcome::GiveUp(_) => "is consumed as failed".to_owned(),
        Outcome::Trash(_) | Outcome::Spent(_) => "is in the trash".to_owned(),
        Outcome::Abandon(_) => format!("is back on the board{}", until(outcome.not_before())),
    };
    let failed = outcome.failure().map(|failure| failure.headline());
    let reason = failed.or_else(|| Some(ended?.to_string()));
    if let Some(reason) = reason {
        ctx.out
            .note(format!("{} {fate}: {reason}", job.identity.name));
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
    const NOT_EXECUTABLE: i32 = 126;
    const NOT_FOUND: i32 = 127;
    let ours = match error {
        NotRun::NotFound { .. } => NOT_FOUND,
        NotRun::NotExecutable { .. } => NOT_EXECUTABLE,
        NotRun::Failed { .. } => return error.into(),
    };
    ctx.tell(&error.into());
    code(ours)
}

/// Marks an error as one of `jobboard`, since other exit codes are the command's.
///
/// Having no job to run is an answer, not a board error.
pub(crate) fn ours(error: anyhow::Error) -> anyhow::Error {
    use CommandError::{Command, Nothing, TimedOut, Usage};
    match error.downcast_ref() {
        Some(Command(_) | Usage { .. } | Nothing(_) | TimedOut(_)) => error,
        _ => CommandError::Ours(error).into(),
    }
}

pub(crate) fn expiry(text: &str) -> Result<Duration, String> {
    let expiry = duration::parse(text).map_err(|error| error.to_string())?;
    if expiry < EXPIRY.0 || expiry > EXPIRY.1 {
        return Err("a claim can last from 1ms to 3650d".to_owned());
    }
    Ok(expiry)
}
