//! One attempt at a job: its command runs as soon as its slot permits, until it ends or the conductor stops it.

pub(super) mod capture;

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{
    sync::{SemaphorePermit, watch},
    task,
    time::{self, Instant},
};

use self::capture::Capture;
use super::{
    log::{Note, Tag},
    policy::ExecutionPlan,
    shared::{Shared, Shutdown, aborted, changed, ending},
    slots::{RELEASE_AFTER, Slot},
};
use crate::{
    job::Decision,
    lease::Lost,
    optional::or_never,
    process::{
        child::{CommandEnd, EXIT_GRACE, Process},
        clock::{self, Boottime},
        command::NotRun,
    },
    retry::{AttemptContext, AttemptEnd, TRY_LATER},
    trace::Span,
    worker::{HeldJob, NotPerformed},
};

/// How long to wait for other processes to close our pipe.
const STRAYS: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct JobAttempt {
    pub(super) held: HeldJob,
    pub(super) tag: Arc<Tag>,
}

#[derive(Debug)]
pub(super) struct FinishedAttempt {
    pub(super) attempt: JobAttempt,
    /// How to settle the job, or why it is no longer ours to settle.
    pub(super) decision: Result<Decision, Lost>,
    pub(super) max_attempts: u32,
    /// How long its command ran, if it started.
    pub(super) took: Option<Duration>,
}

impl JobAttempt {
    /// Calls `over` with the verdict, before the last output is shown.
    pub(super) async fn perform(
        mut self,
        shared: &Shared,
        mut shutdown: watch::Receiver<Shutdown>,
        slot: Slot,
        over: impl FnOnce(FinishedAttempt),
    ) {
        let plan = shared.policy().plan(&self.held.job);
        let turn = turn(&slot, &mut shutdown).await;
        let start = Instant::now();
        let max_attempts = plan.as_ref().ok().and_then(|plan| plan.limits.max_attempts);
        let retry = &shared.settings.retry;
        let span = Span::of(self.held.job.details.as_ref(), shared.spans.is_some());
        let mut run = JobRun {
            shared,
            tag: &self.tag,
            shutdown: &mut shutdown,
            span: span.as_ref(),
            capture: None,
        };
        let end = match (plan, turn) {
            // Another posting took its place, or the claim is being released.
            (Err(_), _) | (_, None) => Ok(AttemptEnd::Interrupted),
            _ if retry.is_spent(&self.held.job.attempts, max_attempts) => Ok(AttemptEnd::Spent),
            (Ok(plan), Some(turn)) => {
                let attempts = self.held.job.attempts.count;
                let _running = shared.status.begin(&self.tag, attempts);
                run.perform(&mut self.held, plan, turn).await
            }
        };
        let capture = run.capture;
        let decision = end.map(|end| {
            let context = AttemptContext {
                attempts: &self.held.job.attempts,
                max_attempts,
                conductor: &shared.owner,
                output: &|| capture.as_ref().map(Capture::captured).unwrap_or_default(),
            };
            retry.decide(&end, context)
        });
        let took = capture.is_some().then(|| start.elapsed());
        if let Some(took) = took {
            slot.took(took);
        }
        let line = shared.spans.as_ref().zip(span.as_ref()).zip(took);
        let line = line.map(|((spans, span), took)| {
            spans.line(span, &self.held.job, decision.as_ref().ok(), took)
        });
        over(FinishedAttempt {
            attempt: self,
            decision,
            max_attempts: retry.limit(max_attempts),
            took,
        });
        if let Some(capture) = capture {
            tokio::select! {
                biased;
                () = capture.finish(&shared.status.reporter) => {}
                // The reader of the output may never read it.
                () = async { clock::sleep_until(aborted(&mut shutdown).await).await } => {}
            }
        }
        if let (Some(spans), Some(line)) = (&shared.spans, line) {
            shared.status.reporter.write(&spans.file, line).await;
        }
        // Unless another attempt flushed it by now.
        shared.worker.guard.flush();
    }
}

struct JobRun<'a> {
    shared: &'a Shared,
    tag: &'a Arc<Tag>,
    shutdown: &'a mut watch::Receiver<Shutdown>,
    span: Option<&'a Span>,
    capture: Option<Capture>,
}

impl JobRun<'_> {
    async fn perform(
        &mut self,
        held: &mut HeldJob,
        plan: ExecutionPlan,
        turn: SemaphorePermit<'_>,
    ) -> Result<AttemptEnd, Lost> {
        let mut command = match plan.command {
            Ok(command) => command,
            Err(error) => return Ok(AttemptEnd::NotRun(error)),
        };
        command.trace(self.span);
        let (worker, settings) = (&self.shared.worker, &self.shared.settings);
        settings.output.apply(&mut command);
        worker.end_leftovers(held).await;
        let mut process = match worker.launch(held, &mut command, Signal::TERM) {
            Ok(process) => process,
            Err(error) => return self.not_started(error),
        };
        let limit = settings.time_limit.of(plan.limits.timeout);
        let end = self.watch(held, &mut process, limit).await;
        // The next job need not wait until everything is cleared away.
        process.group().signal(Signal::KILL);
        drop(turn);
        task::yield_now().await;
        let end = worker.finish(held, process, end).await;
        let Some(capture) = &mut self.capture else {
            return end.or_else(|error| self.not_started(error));
        };
        if capture.drain() {
            // A process that still holds our pipe and does not descend from our commands may keep it.
            let _ = time::timeout(STRAYS, capture.close()).await;
        }
        end.or_else(NotPerformed::end_without_failure)
    }

    fn not_started(&self, error: NotPerformed) -> Result<AttemptEnd, Lost> {
        let (event, why) = match error {
            // This error is unrelated to the job.
            NotPerformed::NotRun(NotRun::Failed { source, .. }) => ("not_started", source),
            NotPerformed::NotRun(error) => return Ok(AttemptEnd::NotRun(error)),
            // Without a guard nothing is started; it is no fault of the job.
            NotPerformed::Unwatched(error) => ("not_watched", error),
            error @ (NotPerformed::Lost(_) | NotPerformed::Stopped(_)) => {
                return error.end_without_failure();
            }
        };
        let note = Note::new(event).of(self.tag);
        self.shared.status.log(note.with("reason", why.to_string()));
        Ok(AttemptEnd::NoRoom)
    }

    async fn watch(
        &mut self,
        held: &mut HeldJob,
        process: &mut Process,
        limit: Option<Duration>,
    ) -> Result<AttemptEnd, NotPerformed> {
        self.capture = Some(Capture::new(
            process.take_pipes(),
            &self.shared.settings.output,
            self.tag,
            held.job.attempts.count,
            &self.shared.status.reporter,
        )?);
        self.shared.status.log(self.start_note(held, process));
        tokio::select! {
            biased;
            ended = process.ended() => Ok(AttemptEnd::Ended(ended?)),
            lost = held.lease.lost() => {
                self.stop(process, lost.kill_at()).await?;
                Err(lost.into())
            }
            kill_at = aborted(self.shutdown) => Ok(self.abort(process, kill_at).await?),
            limit = expired(limit) => {
                self.stop(process, Boottime::now() + EXIT_GRACE).await?;
                Ok(AttemptEnd::TimedOut(limit))
            }
            never = pump(&mut self.capture, self.shared) => match never {},
        }
    }

    fn start_note(&self, held: &HeldJob, process: &Process) -> Note {
        let pid = process.group().leader().as_raw_nonzero().get();
        Note::new("running_start")
            .of(self.tag)
            .with("attempt", held.job.attempts.count)
            .with("fence", held.fence.0.as_str())
            .with("pid", pid)
            .with_any("trace_id", self.span.map(Span::trace))
    }

    /// Ends the command because the conductor ends. A success meanwhile still counts.
    async fn abort(&mut self, process: &Process, mut kill_at: Boottime) -> io::Result<AttemptEnd> {
        let mut shutdown = self.shutdown.clone();
        let ended = loop {
            tokio::select! {
                biased;
                ended = self.stop(process, kill_at) => break ended?,
                // The shutdown became more urgent.
                () = changed(&mut shutdown) => {
                    if let Shutdown::Abort(sooner) = *shutdown.borrow_and_update() {
                        kill_at = sooner;
                    }
                }
            }
        };
        Ok(match ended {
            CommandEnd::Exit(0 | TRY_LATER) => AttemptEnd::Ended(ended),
            _ => AttemptEnd::Interrupted,
        })
    }

    async fn stop(&mut self, process: &Process, kill_at: Boottime) -> io::Result<CommandEnd> {
        let guard = &*self.shared.worker.guard;
        tokio::select! {
            biased;
            ended = process.stop(kill_at, Some(guard)) => ended,
            never = pump(&mut self.capture, self.shared) => match never {},
        }
    }
}

async fn pump(capture: &mut Option<Capture>, shared: &Shared) -> Infallible {
    let reporter = &shared.status.reporter;
    or_never(capture.as_mut().map(|it| it.pump(reporter))).await
}

async fn expired(timeout: Option<Duration>) -> Duration {
    let limit = or_never(timeout.map(std::future::ready)).await;
    // Longer ones than 30 years end after 30.
    time::sleep(limit).await;
    limit
}

async fn turn<'a>(
    slot: &'a Slot,
    shutdown: &mut watch::Receiver<Shutdown>,
) -> Option<SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        () = ending(shutdown) => None,
        turn = slot.turn() => turn,
        () = time::sleep(RELEASE_AFTER) => {
            slot.stop_claiming_ahead();
            None
        }
    }
}
