//! Performs a claimed job as a command on this machine: one engine for `run`, `claim -- COMMAND` and `conduct`.

pub(crate) mod foreground;
pub(crate) mod repeat;
pub(crate) mod settling;

use std::{io, sync::Arc};

use rustix::process::Signal;
use thiserror::Error;

use crate::{
    job::{Fence, Job, Owner},
    lease::{KeptLease, Lost},
    process::{
        child::Process,
        clock::Boottime,
        command::{CommandSpec, NotRun},
        guard::{Guard, Launch, LeftOver},
        spawn::{ChildLifetime, Spawner},
    },
    retry::AttemptEnd,
};

/// All its commands share one guard and one inherited environment.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) guard: Arc<Guard>,
    left_over: LeftOver,
    spawner: Spawner,
}

#[derive(Debug)]
pub(crate) struct HeldJob {
    pub(crate) job: Job,
    pub(crate) fence: Fence,
    pub(crate) lease: KeptLease,
    /// A later scan of all processes shows the job's leftovers.
    pub(crate) look_since: Boottime,
}

#[derive(Debug, Error)]
pub(crate) enum NotPerformed {
    #[error(transparent)]
    NotRun(#[from] NotRun),
    /// It was killed, or never started.
    #[error("jobboard cannot supervise the command")]
    Unwatched(#[from] io::Error),
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("a signal arrived before the command started")]
    Stopped(Signal),
}

impl NotPerformed {
    /// Returns the end of an attempt that does not count as a failure, or the lost claim.
    pub(crate) fn end_without_failure(self) -> Result<AttemptEnd, Lost> {
        match self {
            Self::Lost(lost) => Err(lost),
            Self::NotRun(_) | Self::Unwatched(_) | Self::Stopped(_) => Ok(AttemptEnd::Interrupted),
        }
    }
}

impl Worker {
    /// `mark` identifies this process to its guard. No command inherits the `withheld` variables.
    pub(crate) fn start(mark: &str, owner: &Owner, withheld: &[&str]) -> io::Result<Self> {
        Ok(Self {
            guard: Arc::new(Guard::start(Launch::this_program(), mark)?),
            left_over: LeftOver::default(),
            spawner: Spawner::of_conductor(withheld, mark, owner)?,
        })
    }

    /// Ends the processes of earlier attempts. An earlier owner may have died together with its guard.
    pub(crate) async fn end_leftovers(&self, held: &HeldJob) {
        let reference = held.job.reference();
        if planted!(StartsBesideLeftovers) {
            return;
        }
        self.left_over.end(&reference, held.look_since).await;
    }

    /// Starts a command for a job, unless the claim is lost. Call [`end_leftovers`](Self::end_leftovers) before.
    ///
    /// The kernel sends `at_our_death` to the command itself when this process dies.
    pub(crate) fn launch(
        &self,
        held: &mut HeldJob,
        command: &mut CommandSpec,
        at_our_death: Signal,
    ) -> Result<Process, NotPerformed> {
        let job = &held.job;
        command.introduce(
            &job.reference(),
            &job.name,
            job.attempts.count,
            &held.fence,
            job.details().as_deref(),
        );
        command.check_directory()?;
        let label = self.guard.label(&job.reference());
        held.lease.announce(&self.guard, label)?;
        // Any delay since the claim counts: no command may start too late.
        if let Some(lost) = held.lease.lost_by_now() {
            self.guard.not_started();
            return Err(lost.into());
        }
        let lifetime = ChildLifetime {
            label,
            at_our_death,
        };
        let started = Process::start_with(&self.spawner, command, Some(lifetime));
        let process = started.inspect_err(|_| self.guard.not_started())?;
        let group = process.group();
        let protected = match planted!(TellsTheGuardTooLate) {
            true => Ok(()),
            false => held.lease.protect(&self.guard, group, label),
        };
        if let Err(error) = protected {
            // Dropped, it kills the group and reaps its leader.
            drop(process);
            self.guard.forget(group);
            return Err(error.into());
        }
        Ok(process)
    }

    /// Ends all processes of a command whose leader has ended. The lease is still held on return, unless it was lost.
    pub(crate) async fn finish<T>(
        &self,
        held: &mut HeldJob,
        process: Process,
        end: Result<T, NotPerformed>,
    ) -> Result<T, NotPerformed> {
        process.clear_away(&self.guard).await;
        // A command that ended too late leaves nothing for us to settle.
        match held.lease.lost_by_now() {
            Some(lost) => Err(lost.into()),
            None => end,
        }
    }
}
