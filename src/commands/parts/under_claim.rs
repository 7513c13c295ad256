//! Performing a claimed job as a command on this terminal: what `run` and `claim -- COMMAND` share.

use std::{ffi::OsString, sync::Arc, time::Duration};

use anyhow::Context as _;
use chrono::{SubsecRound, Utc};
use uuid::Uuid;

use super::unconfirmed::settle_kept;
use crate::{
    board::Board,
    context::Context,
    duration,
    exit::CommandError,
    job::{Aftermath, Claim, Claimant, Failure, Fence, JobKey, Outcome, Owner, Term},
    lease::{
        Keeper,
        foreground::{NotPerformed, Performed, perform_here},
    },
    process::{
        child::Ended,
        clock::Boottime,
        command::{Command, NotRun},
        guard::{CONDUCTOR, Guard, Launch, LeftOver},
        label::{JOB, MARK},
        signal::Signals,
    },
};

/// The shortest and the longest that a claim may be asked to last.
const EXPIRY: (Duration, Duration) = (
    Duration::from_millis(1),
    Duration::from_secs(3650 * 24 * 60 * 60),
);

/// How long a kept claim lasts without being renewed, unless it is said.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The shortest that a kept claim may last: it has to be renewed in time, again and again.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// Reads how long a kept claim is to last.
pub(in crate::commands) fn lease(text: &str) -> Result<Duration, String> {
    match expiry(text)? {
        lease if lease < SHORTEST_LEASE => Err("a lease lasts at least 1s".to_owned()),
        lease => Ok(lease),
    }
}

/// What becomes of a job whose command fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnFailure {
    /// It goes back to the board
    #[default]
    Abandon,
    /// It goes to the trash
    Trash,
}

/// A command that is ready to be performed as soon as there is a claimed job for it.
#[derive(Debug)]
pub(crate) struct Performer {
    command: Command,
    /// Caught from before a job is claimed.
    pub(in crate::commands) signals: Signals,
    guard: Arc<Guard>,
    by: Claimant,
    lease: Duration,
    on_failure: OnFailure,
}

/// The job that a command performs.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) key: JobKey,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    /// From before the claim was asked for.
    pub(crate) asked: Boottime,
}

/// Returns the name under which a claim is held that somebody keeps.
///
/// It is like no other, so that two runs of one command line are not taken for each other.
pub(crate) fn kept_owner(who: &Owner) -> anyhow::Result<Owner> {
    Ok(Owner::new(&format!("{who}:{}", this_process()))?)
}

/// Returns `host:pid:random`, which no two processes have in common.
pub(in crate::commands) fn this_process() -> String {
    format!(
        "{}:{}:{}",
        rustix::system::uname().nodename().to_string_lossy(),
        std::process::id(),
        &Uuid::new_v4().simple().to_string()[..8]
    )
}

impl Performer {
    /// Prepares to perform a command, before any job is claimed for it.
    ///
    /// A command that cannot be found ends it here, with nothing done.
    pub(crate) async fn prepare(
        ctx: &Context,
        board: &dyn Board,
        command: &[String],
        lease: Option<Duration>,
        on_failure: OnFailure,
    ) -> anyhow::Result<Self> {
        let owner = kept_owner(ctx.who())?;
        let argv: Vec<OsString> = command.iter().map(OsString::from).collect();
        let search = ctx.environment.variable("PATH");
        let mut command =
            Command::here(&argv, search.as_deref()).map_err(|error| not_run(ctx, error))?;
        for name in ctx.environment.secrets() {
            command.unset(name);
        }
        command.unset(crate::process::job_control::MARK);
        command.set(MARK, owner.to_string());
        let lease = board.lease_term(lease.unwrap_or(LEASE)).await?;
        command.set(CONDUCTOR, owner.to_string());
        Ok(Self {
            command,
            signals: Signals::ending()?,
            guard: Arc::new(Guard::start(Launch::this_program(), &owner.text())?),
            by: Claimant {
                owner,
                term: Term::Kept(lease),
            },
            lease,
            on_failure,
        })
    }

    /// Returns as whom and for how long the job is to be claimed.
    pub(crate) fn claimant(&self) -> &Claimant {
        &self.by
    }

    /// Performs the command for a job, and settles the job by how it ended.
    pub(crate) async fn perform(
        mut self,
        ctx: &mut Context,
        board: Arc<dyn Board>,
        job: Held,
    ) -> anyhow::Result<()> {
        self.introduce(&job);
        let keeper = Keeper::start(Arc::clone(&board));
        let claim = Claim {
            key: job.key.clone(),
            owner: self.by.owner.clone(),
            fence: Some(job.fence.clone()),
            term: self.lease,
        };
        let mut lease = keeper.hold(claim, job.asked);
        // Whoever had the job before may have died together with its guard.
        LeftOver::default().end(&job.uuid, Boottime::now()).await;
        let label = self.guard.label(&job.uuid);
        let performed = perform_here(
            (&self.command, label),
            &mut lease,
            &self.guard,
            &mut self.signals,
            ctx.terminal.as_mut(),
        )
        .await;
        let verdict = self.judge(ctx, &job, performed);
        if let Some(outcome) = verdict.outcome {
            settle_kept(&*board, &job.key, outcome, (&self.by.owner, &job.fence))
                .await
                .with_context(|| ctx.trying("settle", &job.name).with(&job.uuid))?;
        }
        drop(lease);
        if let Some(note) = verdict.note {
            ctx.out.note(note);
        }
        verdict.end
    }

    /// Tells the command which job it performs.
    fn introduce(&mut self, job: &Held) {
        let command = &mut self.command;
        command.set(JOB, &job.uuid);
        command.set("JOBBOARD_NAME", &job.name);
        command.set("JOBBOARD_ATTEMPT", job.attempt.to_string());
        command.set("JOBBOARD_FENCE", &job.fence.0);
    }

    fn judge(
        &self,
        ctx: &Context,
        job: &Held,
        performed: Result<Performed, NotPerformed>,
    ) -> Verdict {
        let interrupted = Some(Outcome::Abandon(Aftermath::Interrupted));
        match performed {
            Ok(Performed::Ended {
                ended: Ended::Exit(0),
                ..
            }) => Verdict::new(Some(Outcome::Consume), Ok(())),
            Ok(Performed::Ended { ended, interrupted }) => {
                let outcome = self.failed(ended, interrupted.is_some());
                let fate = match &outcome {
                    outcome if outcome.is_trash() => "is in the trash",
                    _ => "is back on the board",
                };
                Verdict {
                    note: Some(format!("{} {fate}: {ended}", job.name)),
                    ..Verdict::new(Some(outcome), Err(code(ended.code())))
                }
            }
            Ok(Performed::Lost(lost)) => {
                let what = format!("{} was taken from us, and its command was ended", job.name);
                Verdict::new(None, Err(anyhow::Error::from(lost).context(what)))
            }
            Ok(Performed::NotStarted(signal)) => {
                Verdict::new(interrupted, Err(code(128 + signal.as_raw())))
            }
            Err(NotPerformed::NotRun(error)) => Verdict::new(interrupted, Err(not_run(ctx, error))),
            Err(error @ NotPerformed::Unwatched(_)) => Verdict::new(interrupted, Err(error.into())),
        }
    }

    /// Returns what becomes of the job after a command that did not succeed.
    fn failed(&self, ended: Ended, was_interrupted: bool) -> Outcome {
        const SIGINT: i32 = 2;
        // What a person ended at the terminal says nothing of the job.
        if was_interrupted || ended == Ended::Signal(SIGINT) {
            return Outcome::Abandon(Aftermath::Interrupted);
        }
        let (exit_code, signal) = match ended {
            Ended::Exit(code) => (Some(code), None),
            Ended::Signal(signal) => (None, Some(signal)),
        };
        let failure = Failure {
            exit_code,
            signal,
            reason: ended.to_string(),
            stderr: String::new(),
            conductor: self.by.owner.to_string(),
            time: Utc::now().trunc_subsecs(6),
        };
        match self.on_failure {
            OnFailure::Trash => Outcome::Trash(Some(failure)),
            OnFailure::Abandon => Outcome::Abandon(Aftermath::Failed {
                failure,
                not_before: None,
            }),
        }
    }
}

/// What becomes of the job, and of us.
struct Verdict {
    outcome: Option<Outcome>,
    /// What there is to tell once the job is settled.
    note: Option<String>,
    end: anyhow::Result<()>,
}

impl Verdict {
    fn new(outcome: Option<Outcome>, end: anyhow::Result<()>) -> Self {
        Self {
            outcome,
            note: None,
            end,
        }
    }
}

/// Ends as the command did.
pub(in crate::commands) fn code(code: i32) -> anyhow::Error {
    CommandError::Command(u8::try_from(code).unwrap_or(1)).into()
}

/// Says why a command did not come to run, and ends with the code by which shells tell it.
pub(in crate::commands) fn not_run(ctx: &Context, error: NotRun) -> anyhow::Error {
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

/// Marks an error as one of ours, where the exit code is otherwise the command's.
///
/// That there was no job to run it for is an answer, and no error of the board.
pub(crate) fn ours(error: anyhow::Error) -> anyhow::Error {
    use CommandError::{Command, Nothing, TimedOut, Usage};
    match error.downcast_ref() {
        Some(Command(_) | Usage { .. } | Nothing(_) | TimedOut(_)) => error,
        _ => CommandError::Ours(error).into(),
    }
}

/// Reads how long a claim is to last, within what a board can keep.
pub(crate) fn expiry(text: &str) -> Result<Duration, String> {
    let expiry = duration::parse(text).map_err(|error| error.to_string())?;
    if expiry < EXPIRY.0 || expiry > EXPIRY.1 {
        return Err("a claim lasts from 1ms to 3650d".to_owned());
    }
    Ok(expiry)
}
