//! A command that runs under a claim: watched until it has ended, and cleared away.

use std::{io, time::Duration};

use tokio::{
    sync::watch,
    time::{self, Instant},
};

use super::{Attempt, capture::Capture};
use crate::{
    conductor::{
        shared::Shared,
        shutdown::{GRACE, Shutdown, aborted, changed},
    },
    lease::Lost,
    process::{
        child::{Ended, Process},
        clock::Boottime,
    },
    retry::Course,
};

/// How long to wait for other processes to close our pipe.
const STRAYS: Duration = Duration::from_millis(200);

pub(super) struct Performed {
    pub(super) course: Result<Course, Lost>,
    /// The remaining output of a started command.
    pub(super) remains: Option<Capture>,
}

impl Performed {
    pub(super) fn not(course: Result<Course, Lost>) -> Self {
        Self {
            course,
            remains: None,
        }
    }
}

pub(super) struct Running<'a> {
    pub(super) attempt: &'a mut Attempt,
    pub(super) shared: &'a Shared,
    pub(super) process: Process,
    pub(super) capture: Capture,
}

impl Running<'_> {
    pub(super) async fn watch(
        &mut self,
        shutdown: &mut watch::Receiver<Shutdown>,
        timeout: Option<Duration>,
    ) -> io::Result<Result<Course, Lost>> {
        // A timeout beyond the range of the clock never comes.
        let too_late = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        tokio::select! {
            biased;
            ended = self.process.ended() => Ok(Ok(Course::Ended(ended?))),
            lost = self.attempt.lease.lost() => {
                self.stop(lost.kill_at()).await?;
                Ok(Err(lost))
            }
            kill_at = aborted(shutdown) => self.abort(shutdown, kill_at).await,
            limit = expired(too_late, timeout) => {
                self.stop(Boottime::now() + GRACE).await?;
                Ok(Ok(Course::TimedOut(limit)))
            }
            never = self.capture.pump(&self.shared.reporter) => match never {},
        }
    }

    /// Ends the command because the conductor ends. A success meanwhile still counts.
    async fn abort(
        &mut self,
        shutdown: &mut watch::Receiver<Shutdown>,
        mut kill_at: Boottime,
    ) -> io::Result<Result<Course, Lost>> {
        let ended = loop {
            tokio::select! {
                biased;
                ended = self.stop(kill_at) => break ended?,
                // The shutdown became more urgent.
                () = changed(shutdown) => {
                    if let Shutdown::Abort(sooner) = *shutdown.borrow_and_update() {
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

    async fn stop(&mut self, kill_at: Boottime) -> io::Result<Ended> {
        tokio::select! {
            biased;
            ended = self.process.stop(kill_at, Some(&self.shared.guard)) => ended,
            never = self.capture.pump(&self.shared.reporter) => match never {},
        }
    }

    /// Ends all remains of the command, and returns its result.
    pub(super) async fn clear_away(self, course: io::Result<Result<Course, Lost>>) -> Performed {
        let Self {
            attempt,
            shared,
            process,
            mut capture,
        } = self;
        process.clear_away(&shared.guard).await;
        if capture.drain() {
            // A process that still holds our pipe and does not descend from our commands may keep it.
            let _ = time::timeout(STRAYS, capture.close()).await;
        }
        // A command that ended too late leaves nothing for us to settle.
        let course = match attempt.lease.lost_by_now() {
            Some(lost) => Err(lost),
            None => course.unwrap_or(Ok(Course::Interrupted)),
        };
        Performed {
            course,
            remains: Some(capture),
        }
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
