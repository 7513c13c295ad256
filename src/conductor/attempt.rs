//! One attempt at a job: its command is started under the claim, watched, and cleared away.

use std::{io, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{
    sync::{SemaphorePermit, watch},
    time::{self, Instant},
};

use super::{
    capture::Capture,
    clock::Boottime,
    crew::Crew,
    guard::{CONDUCTOR, MARK, kill_strays},
    lease::{KeptLease, Lost},
    performance::{NotRun, Performance},
    policy::Plan,
    process::{Ended, Process},
    progress::{Note, Tag},
    rooms::{PATIENCE, Room},
    verdict::{Case, Course, Verdict},
};
use crate::job::{Fence, Job};

/// How long a command may take to end once it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How long it may take until what was killed has let go of its pipe.
const STRAYS: Duration = Duration::from_millis(200);

/// How far a conductor has come with its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It claims and performs.
    Work,
    /// It claims no more; what runs may end by itself.
    Finish,
    /// What runs is ended, at this moment by force.
    Abort(Boottime),
}

/// A claimed job.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) job: Job,
    pub(super) tag: Arc<Tag>,
    pub(super) fence: Fence,
    pub(super) lease: KeptLease,
}

/// An attempt that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) attempt: Attempt,
    /// What is to become of the job, or why that is not for us to say.
    pub(super) end: Result<Verdict, Lost>,
    pub(super) has_run: bool,
    pub(super) took: Duration,
}

/// How an attempt ended.
struct Performed {
    course: Result<Course, Lost>,
    stderr: String,
    /// What is left to show, of a command that was started.
    remains: Option<Capture>,
}

impl Performed {
    fn not(course: Result<Course, Lost>) -> Self {
        Self {
            course,
            stderr: String::new(),
            remains: None,
        }
    }
}

impl Attempt {
    /// Performs the job as far as it can be performed, and says what is to become of it.
    ///
    /// `over` is called once the verdict is there, before the last output has been shown.
    pub(super) async fn perform(
        mut self,
        crew: &Crew,
        mut phase: watch::Receiver<Phase>,
        room: Room,
        over: impl FnOnce(Finished),
    ) {
        let plan = crew.policy.plan(&self.job);
        let turn = turn(&room, &mut phase).await;
        let start = Instant::now();
        let max_attempts = plan.as_ref().ok().and_then(|plan| plan.max_attempts);
        let attempts = self.job.history.attempts;
        let performed = match (plan, turn) {
            // Somebody has put another posting in its place, or it is given back.
            (Err(_), _) | (_, None) => Performed::not(Ok(Course::Interrupted)),
            (Ok(_), _) if attempts > crew.patience.most(max_attempts) => {
                Performed::not(Ok(Course::Spent))
            }
            (Ok(plan), Some(turn)) => self.carry_out(crew, plan, &mut phase, turn).await,
        };
        let end = performed.course.map(|course| {
            let case = Case {
                history: &self.job.history,
                max_attempts,
                conductor: &crew.owner,
                stderr: performed.stderr,
            };
            crew.patience.judge(&course, case)
        });
        let (has_run, took) = (performed.remains.is_some(), start.elapsed());
        if has_run {
            room.took(took);
        }
        over(Finished {
            attempt: self,
            end,
            has_run,
            took,
        });
        if let Some(capture) = performed.remains {
            capture.finish(&crew.reporter).await;
        }
        // Unless somebody else has told it more by now.
        crew.guard.flush();
    }

    /// Runs the command, and returns once nothing of it is left.
    async fn carry_out(
        &mut self,
        crew: &Crew,
        plan: Plan,
        phase: &mut watch::Receiver<Phase>,
        turn: SemaphorePermit<'_>,
    ) -> Performed {
        let performance = match plan.performance {
            Ok(performance) => performance,
            Err(error) => return Performed::not(Ok(Course::NotRun(error))),
        };
        let (process, capture) = match self.start(crew, performance) {
            Ok(started) => started,
            Err(course) => return Performed::not(course),
        };
        crew.reporter.tell(self.started(&process));
        let mut running = Running {
            attempt: self,
            crew,
            process,
            capture,
        };
        let timeout = plan.timeout.or(crew.job_timeout);
        let course = running.watch(phase, timeout).await;
        // Whoever is next need not wait until everything is tidied up.
        running.process.group().signal(Signal::KILL);
        drop(turn);
        tokio::task::yield_now().await;
        running.clear_away(course).await
    }

    fn started(&self, process: &Process) -> Note {
        let pid = process.group().leader().as_raw_nonzero().get();
        Note::new("running_start")
            .of(&self.tag)
            .with("attempt", self.job.history.attempts)
            .with("fence", self.fence.0.as_str())
            .with("pid", pid)
    }

    /// Starts the command, unless the claim is lost by now; says how it ended if it did not start.
    fn start(
        &mut self,
        crew: &Crew,
        mut performance: Performance,
    ) -> Result<(Process, Capture), Result<Course, Lost>> {
        self.introduce(crew, &mut performance);
        if let Some(folder) = performance.cwd.as_deref().filter(|it| !it.is_dir()) {
            // The kernel would say the same as of a program that is not there.
            let source = io::Error::other(format!("there is no folder {}", folder.display()));
            let program = performance.program;
            return Err(Ok(Course::NotRun(NotRun::Failed { program, source })));
        }
        // Without a guard nothing is started; it is no fault of the job.
        if self.lease.announce(&crew.guard).is_err() {
            return Err(Ok(Course::NoRoom));
        }
        if let Some(lost) = self.lease.lost_by_now() {
            crew.guard.not_started();
            return Err(Err(lost));
        }
        let mut process = match Process::start(&performance) {
            Ok(process) => process,
            Err(error) => {
                crew.guard.not_started();
                return Err(Ok(match error {
                    // That says nothing of the job.
                    NotRun::Failed { .. } => Course::NoRoom,
                    error => Course::NotRun(error),
                }));
            }
        };
        let capture = self
            .lease
            .protect(&crew.guard, process.group())
            .and_then(|()| {
                let attempt = self.job.history.attempts;
                Capture::new(process.take_pipes(), &crew.output, &self.tag, attempt)
            });
        match capture {
            Ok(capture) => Ok((process, capture)),
            Err(error) => {
                crew.reporter.tell(
                    Note::new("not_watched")
                        .of(&self.tag)
                        .with("reason", error.to_string()),
                );
                let group = process.group();
                // Dropped, it kills the group and reaps its leader.
                drop(process);
                crew.guard.forget(group);
                Err(Ok(Course::NoRoom))
            }
        }
    }

    /// Tells the command which job it performs, and keeps our secrets from it.
    fn introduce(&self, crew: &Crew, performance: &mut Performance) {
        crew.output.apply(performance);
        for name in &crew.secrets {
            performance.unset(name);
        }
        performance.set(MARK, crew.mark.as_str());
        performance.set(CONDUCTOR, crew.owner.to_string());
        performance.set("JOBBOARD_JOB", &self.job.uuid);
        performance.set("JOBBOARD_NAME", self.job.name.replace('\0', " "));
        let attempt = self.job.history.attempts.to_string();
        performance.set("JOBBOARD_ATTEMPT", attempt);
        performance.set("JOBBOARD_FENCE", &self.fence.0);
    }
}

/// A command that runs.
struct Running<'a> {
    attempt: &'a mut Attempt,
    crew: &'a Crew,
    process: Process,
    capture: Capture,
}

impl Running<'_> {
    /// Sees the command through to its end, whoever brings that about.
    async fn watch(
        &mut self,
        phase: &mut watch::Receiver<Phase>,
        timeout: Option<Duration>,
    ) -> io::Result<Result<Course, Lost>> {
        // One that is further off than the clock counts is never.
        let too_late = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        tokio::select! {
            biased;
            ended = self.process.ended() => Ok(Ok(Course::Ended(ended?))),
            lost = self.attempt.lease.lost() => {
                self.stop(lost.kill_at()).await?;
                Ok(Err(lost))
            }
            kill_at = aborted(phase) => self.abort(phase, kill_at).await,
            limit = expired(too_late, timeout) => {
                self.stop(Boottime::now() + GRACE).await?;
                Ok(Ok(Course::TimedOut(limit)))
            }
            never = self.capture.pump(&self.crew.reporter) => match never {},
        }
    }

    /// Ends the command because we end; what succeeds all the same has succeeded.
    async fn abort(
        &mut self,
        phase: &mut watch::Receiver<Phase>,
        mut kill_at: Boottime,
    ) -> io::Result<Result<Course, Lost>> {
        let ended = loop {
            tokio::select! {
                biased;
                ended = self.stop(kill_at) => break ended?,
                // Somebody has become more impatient.
                () = changed(phase) => {
                    if let Phase::Abort(sooner) = *phase.borrow_and_update() {
                        kill_at = sooner;
                    }
                }
            }
        };
        Ok(Ok(match ended {
            Ended::Exit(0 | 75) => Course::Ended(ended),
            _ => Course::Interrupted,
        }))
    }

    /// Ends the command, and hears what it has to say until it has ended.
    async fn stop(&mut self, kill_at: Boottime) -> io::Result<Ended> {
        tokio::select! {
            biased;
            ended = self.process.stop(kill_at) => ended,
            never = self.capture.pump(&self.crew.reporter) => match never {},
        }
    }

    /// Leaves nothing of the command behind, and returns what there is to know of it.
    async fn clear_away(self, course: io::Result<Result<Course, Lost>>) -> Performed {
        let Self {
            attempt,
            crew,
            process,
            mut capture,
        } = self;
        process.clear_away(&crew.guard).await;
        if capture.drain() {
            // Somebody who has left the group still has our pipe.
            kill_strays(&crew.mark, &attempt.fence.0);
            // Killed, they are gone at once, unless they are none of ours.
            let _ = time::timeout(STRAYS, capture.close()).await;
        }
        // What ended too late has achieved nothing that is ours to settle.
        let course = match attempt.lease.lost_by_now() {
            Some(lost) => Err(lost),
            None => course.unwrap_or(Ok(Course::Interrupted)),
        };
        Performed {
            course,
            stderr: capture.tail(),
            remains: Some(capture),
        }
    }
}

/// Waits for the turn of a claimed job to run; none, if it is better given back.
async fn turn<'a>(
    room: &'a Room,
    phase: &mut watch::Receiver<Phase>,
) -> Option<SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        // Also if whoever leads the work is gone.
        _ = phase.wait_for(|phase| *phase != Phase::Work) => None,
        turn = room.turn() => turn,
        () = time::sleep(PATIENCE) => {
            room.waited_in_vain();
            None
        }
    }
}

/// Waits until what runs is to be ended.
async fn aborted(phase: &mut watch::Receiver<Phase>) -> Boottime {
    loop {
        if let Phase::Abort(kill_at) = *phase.borrow_and_update() {
            return kill_at;
        }
        changed(phase).await;
    }
}

async fn changed(phase: &mut watch::Receiver<Phase>) {
    if phase.changed().await.is_err() {
        // Whoever leads the work is gone, and takes us along.
        std::future::pending().await
    }
}

async fn expired(moment: Option<Instant>, limit: Option<Duration>) -> Duration {
    match (moment, limit) {
        (Some(moment), Some(limit)) => {
            time::sleep_until(moment).await;
            limit
        }
        _ => std::future::pending().await,
    }
}
