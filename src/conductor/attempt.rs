//! One attempt at a job: its command is started under the claim, watched, and cleared away.

pub(super) mod capture;
mod running;

use std::{io, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{
    sync::{SemaphorePermit, watch},
    time::{self, Instant},
};

use self::{
    capture::Capture,
    running::{Performed, Running},
};
use super::{
    policy::Plan,
    progress::{Note, Tag},
    shared::Shared,
    shutdown::{Shutdown, aborted, told_to_end},
    slots::{PATIENCE, Slot},
};
use crate::{
    job::{Fence, Job, Outcome, Said},
    lease::{KeptLease, Lost},
    process::{
        child::Process,
        clock::{self, Boottime},
        command::{Command, NotRun},
        spawn::Bonds,
    },
    retry::{Case, Course},
    trace::Span,
};

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) job: Job,
    pub(super) tag: Arc<Tag>,
    pub(super) fence: Fence,
    pub(super) lease: KeptLease,
    /// A later scan of all processes shows the job's leftovers.
    pub(super) look_since: Boottime,
    /// Set if the command started and its job is traced.
    pub(super) span: Option<Span>,
}

#[derive(Debug)]
pub(super) struct Finished {
    pub(super) attempt: Attempt,
    /// The outcome, or why the job is no longer ours to settle.
    pub(super) end: Result<Outcome, Lost>,
    pub(super) has_run: bool,
    pub(super) took: Duration,
    pub(super) max_attempts: u32,
}

impl Attempt {
    /// Calls `over` with the verdict, before the last output is shown.
    pub(super) async fn perform(
        mut self,
        shared: &Shared,
        mut shutdown: watch::Receiver<Shutdown>,
        slot: Slot,
        over: impl FnOnce(Finished),
    ) {
        let plan = shared.policy().plan(&self.job);
        let turn = turn(&slot, &mut shutdown).await;
        let start = Instant::now();
        let max_attempts = plan.as_ref().ok().and_then(|plan| plan.limits.max_attempts);
        let performed = match (plan, turn) {
            // Another posting took its place, or the claim is being released.
            (Err(_), _) | (_, None) => Performed::not(Ok(Course::Interrupted)),
            (Ok(_), _)
                if shared
                    .settings
                    .patience
                    .is_spent(&self.job.history, max_attempts) =>
            {
                Performed::not(Ok(Course::Spent))
            }
            (Ok(plan), Some(turn)) => {
                let _running = shared.account.begin(&self.tag, self.job.history.attempts);
                self.carry_out(shared, plan, &mut shutdown, &slot, turn)
                    .await
            }
        };
        let remains = performed.remains.as_ref();
        let end = performed.course.map(|course| {
            let case = Case {
                history: &self.job.history,
                max_attempts,
                conductor: &shared.owner,
                said: &|| remains.map_or_else(Said::default, Capture::said),
            };
            shared.settings.patience.judge(&course, case)
        });
        let (has_run, took) = (performed.remains.is_some(), start.elapsed());
        if has_run {
            slot.took(took);
        }
        let line = (shared.spans.as_ref())
            .filter(|_| has_run)
            .and_then(|spans| spans.line(&self, end.as_ref().ok(), took));
        over(Finished {
            attempt: self,
            end,
            has_run,
            took,
            max_attempts: shared.settings.patience.most(max_attempts),
        });
        if let Some(capture) = performed.remains {
            tokio::select! {
                () = capture.finish(&shared.reporter) => {}
                // The reader of the output may never read it.
                () = out_of_time(&mut shutdown) => {}
            }
        }
        if let (Some(spans), Some(line)) = (&shared.spans, line) {
            shared.reporter.write(&spans.file, line).await;
        }
        // Unless another attempt flushed it by now.
        shared.guard.flush();
    }

    /// Short commands run without a leash, which costs a sixth more CPU time. The next attempt ends any leftovers.
    async fn carry_out(
        &mut self,
        shared: &Shared,
        plan: Plan,
        shutdown: &mut watch::Receiver<Shutdown>,
        slot: &Slot,
        turn: SemaphorePermit<'_>,
    ) -> Performed {
        let mut command = match plan.command {
            Ok(command) => command,
            Err(error) => return Performed::not(Ok(Course::NotRun(error))),
        };
        self.span = Span::of(self.job.details.as_ref(), shared.spans.is_some());
        command.trace(self.span.as_ref());
        // Whoever had the job before may have died together with its guard.
        let reference = self.job.reference();
        shared.left_over.end(&reference, self.look_since).await;
        let at_our_death = (!slot.is_for_short_ones()).then_some(Signal::TERM);
        let (mut process, capture) = match self.start(shared, &mut command, at_our_death) {
            Ok(started) => started,
            Err(course) => return Performed::not(course),
        };
        if let Err(error) = process.begun(&command).await {
            process.clear_away(&shared.guard).await;
            return Performed::not(Ok(self.not_run(shared, error)));
        }
        shared.reporter.tell(self.started(&process));
        let mut running = Running {
            attempt: self,
            shared,
            process,
            capture,
        };
        let limit = shared.settings.time_limit.of(plan.limits.timeout);
        let course = running.watch(shutdown, limit).await;
        // Whoever is next need not wait until everything is tidied up.
        running.process.group().signal(Signal::KILL);
        drop(turn);
        tokio::task::yield_now().await;
        running.clear_away(course).await
    }

    fn started(&self, process: &Process) -> Note {
        let pid = process.group().leader().as_raw_nonzero().get();
        let note = Note::new("running_start")
            .of(&self.tag)
            .with("attempt", self.job.history.attempts)
            .with("fence", self.fence.0.as_str())
            .with("pid", pid);
        match &self.span {
            Some(span) => note.with("trace_id", span.trace()),
            None => note,
        }
    }

    /// Starts the command, unless the claim is lost. Returns the outcome if it did not start.
    fn start(
        &mut self,
        shared: &Shared,
        command: &mut Command,
        at_our_death: Option<Signal>,
    ) -> Result<(Process, Capture), Result<Course, Lost>> {
        let job = &self.job;
        shared.settings.output.apply(command);
        command.introduce(
            (&job.reference(), &job.name),
            (job.history.attempts, &self.fence),
            job.details().as_deref(),
        );
        if let Some(folder) = command.cwd.as_deref().filter(|it| !it.is_dir()) {
            // The kernel would say the same as of a program that is not there.
            let source =
                io::Error::other(format!("the directory {} does not exist", folder.display()));
            let program = command.program.clone();
            return Err(Ok(Course::NotRun(NotRun::Failed { program, source })));
        }
        let label = shared.guard.label(&job.reference());
        // Without a guard nothing is started; it is no fault of the job.
        if let Err(error) = self.lease.announce(&shared.guard, label) {
            return Err(Ok(self.no_room(shared, "not_watched", &error)));
        }
        if let Some(lost) = self.lease.lost_by_now() {
            shared.guard.not_started();
            return Err(Err(lost));
        }
        let bonds = Bonds {
            label,
            at_our_death,
        };
        let mut process = match Process::start_with(&shared.spawner, command, Some(bonds)) {
            Ok(process) => process,
            Err(error) => {
                shared.guard.not_started();
                return Err(Ok(self.not_run(shared, error)));
            }
        };
        let capture = self
            .lease
            .protect(&shared.guard, process.group(), label)
            .and_then(|()| {
                let attempt = self.job.history.attempts;
                let pipes = process.take_pipes();
                Capture::new(
                    pipes,
                    &shared.settings.output,
                    &self.tag,
                    attempt,
                    &shared.reporter,
                )
            });
        match capture {
            Ok(capture) => Ok((process, capture)),
            Err(error) => {
                let group = process.group();
                // Dropped, it kills the group and reaps its leader.
                drop(process);
                shared.guard.forget(group);
                Err(Ok(self.no_room(shared, "not_watched", &error)))
            }
        }
    }

    fn not_run(&self, shared: &Shared, error: NotRun) -> Course {
        match error {
            // This error is unrelated to the job.
            NotRun::Failed { source, .. } => self.no_room(shared, "not_started", &source),
            error => Course::NotRun(error),
        }
    }

    fn no_room(&self, shared: &Shared, event: &'static str, why: &io::Error) -> Course {
        let note = Note::new(event).of(&self.tag);
        shared.reporter.tell(note.with("reason", why.to_string()));
        Course::NoRoom
    }
}

async fn out_of_time(shutdown: &mut watch::Receiver<Shutdown>) {
    let end = aborted(shutdown).await;
    clock::sleep_until(end).await;
}

async fn turn<'a>(
    slot: &'a Slot,
    shutdown: &mut watch::Receiver<Shutdown>,
) -> Option<SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        () = told_to_end(shutdown) => None,
        turn = slot.turn() => turn,
        () = time::sleep(PATIENCE) => {
            slot.waited_in_vain();
            None
        }
    }
}
