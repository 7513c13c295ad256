//! Runs the parts of a conductor, from the first claim to the last settlement.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use super::{
    Halted,
    attempt::{FinishedAttempt, JobAttempt},
    log::{Note, Tag},
    picker::{self, WonClaim},
    registration::{self, LeaseTerm},
    settler::{Settler, releaser::Releaser},
    shared::{Shared, Shutdown, may_claim, may_not_claim},
};
use crate::{
    board::{self, BoardError},
    duration,
    job::ConductorReport,
    lease::Keeper,
    optional::or_never,
    process::{
        child::EXIT_GRACE,
        clock::{self, Boottime},
        guard::BEFORE_FIRST,
        part,
        signal::{ECHO, Signals},
    },
    worker::HeldJob,
};

/// The time for a command to exit on an urgent stop.
const HASTE: Duration = Duration::from_millis(500);

/// The least time before an idle conductor looks again whether the board answers.
const BEFORE_NEXT_LOOK: Duration = Duration::from_millis(100);

pub(super) struct Supervisor {
    shared: Arc<Shared>,
    keeper: Keeper,
    won: mpsc::UnboundedReceiver<WonClaim>,
    finished: mpsc::UnboundedSender<FinishedAttempt>,
    picker: BackgroundTask<board::Result<()>>,
    settler: BackgroundTask<board::Result<()>>,
    releaser: Releaser,
    releasing: BackgroundTask<()>,
    _publishing: BackgroundTask<()>,
    attempts: JoinSet<()>,
}

struct BackgroundTask<T>(JoinHandle<T>);

impl<T> BackgroundTask<T> {
    async fn end(&mut self) -> Result<T, Halted> {
        (&mut self.0).await.map_err(|_| Halted::Broken)
    }
}

impl<T> Drop for BackgroundTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum StopReason {
    /// The picker has ended: all jobs are done, or the board denies access.
    Picked(board::Result<()>),
    /// The settler has ended: the board denies access.
    SettlerFailed(BoardError),
    Idle,
    Signal,
}

impl Supervisor {
    pub(super) fn start(
        shared: Arc<Shared>,
        lease_term: LeaseTerm,
        entry: ConductorReport,
    ) -> Self {
        let (won_here, won) = mpsc::unbounded_channel();
        let (finished, finished_there) = mpsc::unbounded_channel();
        let (returned_there, returned) = mpsc::unbounded_channel();
        let status = Arc::clone(&shared.status);
        let picker = picker::run(Arc::clone(&shared), lease_term, won_here, returned);
        let releaser = Releaser {
            shared: Arc::clone(&shared),
            returned: returned_there.clone(),
        };
        let settler = Settler::new(Arc::clone(&shared), finished_there, returned_there);
        let renewed = move |late| status.work(|work| work.measured.renewed(late));
        Self {
            keeper: Keeper::start_reporting(Arc::clone(&shared.board), renewed),
            won,
            finished,
            picker: BackgroundTask(tokio::spawn(part(picker))),
            settler: BackgroundTask(tokio::spawn(part(settler.run()))),
            releasing: BackgroundTask(tokio::spawn(part(releaser.clone().run()))),
            releaser,
            _publishing: BackgroundTask(tokio::spawn(part(registration::publish(
                Arc::clone(&shared),
                entry,
            )))),
            attempts: JoinSet::new(),
            shared,
        }
    }

    pub(super) async fn lead(mut self, signals: &mut Signals) -> Result<(), Halted> {
        let reason = self.work(signals).await?;
        match &reason {
            StopReason::Signal => self.stop_starting(),
            StopReason::Picked(Err(_)) | StopReason::SettlerFailed(_) => {
                self.abort_by(Boottime::now() + EXIT_GRACE)
            }
            StopReason::Idle => _ = self.shared.shutdown.send_replace(Shutdown::Finish),
            // The last claimed jobs still have to start.
            StopReason::Picked(Ok(())) => {}
        }
        let mut further = FurtherSignals {
            signals,
            last: matches!(reason, StopReason::Signal).then(Boottime::now),
        };
        self.finish(&mut further, &reason).await?;
        match reason {
            StopReason::Picked(Err(error)) | StopReason::SettlerFailed(error) => Err(error.into()),
            StopReason::Picked(Ok(())) | StopReason::Idle | StopReason::Signal => {
                self.end_settler(&mut further).await?;
                // Restart it, to skip its current pause.
                drop(self.releasing);
                self.releaser.leave().await;
                Ok(())
            }
        }
    }

    /// Waits for the last settlements, until a further signal.
    async fn end_settler(&mut self, signals: &mut FurtherSignals<'_>) -> Result<(), Halted> {
        // Without a sender it ends after these.
        self.finished = mpsc::unbounded_channel().0;
        loop {
            tokio::select! {
                biased;
                settled = self.settler.end() => return Ok(settled??),
                () = signals.next() => match self.is_ending() {
                    true => _ = self.shared.shutdown.send_replace(Shutdown::Leave),
                    false => self.stop_starting(),
                },
            }
        }
    }

    async fn work(&mut self, signals: &mut Signals) -> Result<StopReason, Halted> {
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return Ok(StopReason::Signal),
                Some(won) = self.won.recv() => self.perform(won),
                // A broken attempt would keep its job forever.
                Some(over) = self.attempts.join_next() => over.map_err(|_| Halted::Broken)?,
                ended = self.picker.end() => return Ok(StopReason::Picked(ended?)),
                settled = self.settler.end() => return match settled? {
                    Err(error) => Ok(StopReason::SettlerFailed(error)),
                    // It ends after all other parts.
                    Ok(()) => Err(Halted::Broken),
                },
                // Each further claim would be lost immediately, and claimed again.
                () = self.keeper.broken() => return Err(Halted::Broken),
                never = self.shared.tend_guard() => match never {},
                () = idle(&self.shared) => return Ok(StopReason::Idle),
            }
        }
    }

    fn perform(&mut self, won: WonClaim) {
        let claimed = won.claimed;
        self.shared.status.claimed(&claimed.job);
        let claim = claimed.claim(&self.shared.owner, won.term);
        let attempt = JobAttempt {
            tag: Arc::new(Tag::of(&claimed.job)),
            held: HeldJob {
                job: claimed.job,
                fence: claimed.fence,
                lease: self.keeper.hold(claim, won.asked),
                look_since: match claimed.is_first {
                    true => won.heard - BEFORE_FIRST,
                    false => won.heard,
                },
            },
        };
        let (shared, shutdown) = (Arc::clone(&self.shared), self.shared.shutdown.subscribe());
        let finished = self.finished.clone();
        self.attempts.spawn(part(async move {
            // The settler outlives the attempts.
            let over = |it| _ = finished.send(it);
            attempt.perform(&shared, shutdown, won.slot, over).await;
        }));
    }

    async fn finish(
        &mut self,
        signals: &mut FurtherSignals<'_>,
        reason: &StopReason,
    ) -> Result<(), Halted> {
        let mut hurry = signals.last.map(|it| it + self.shared.settings.grace);
        let mut is_picking = !matches!(reason, StopReason::Picked(_));
        loop {
            while let Ok(won) = self.won.try_recv() {
                self.perform(won);
            }
            if !is_picking && self.attempts.is_empty() {
                return Ok(());
            }
            tokio::select! {
                biased;
                Some(over) = self.attempts.join_next() => over.map_err(|_| Halted::Broken)?,
                () = self.keeper.broken() => return Err(Halted::Broken),
                // A pending claim request is answered first; its result no longer matters.
                ended = self.picker.end(), if is_picking => {
                    let _ = ended?;
                    is_picking = false;
                }
                () = or_never(hurry.map(clock::sleep_until)) => {
                    hurry = None;
                    self.abort_by(Boottime::now() + EXIT_GRACE);
                }
                () = signals.next() => match hurry {
                    // The first end, while only running jobs remain.
                    None if !self.is_ending() => {
                        self.stop_starting();
                        hurry = Some(Boottime::now() + self.shared.settings.grace);
                    }
                    _ => {
                        hurry = None;
                        self.abort_by(Boottime::now() + HASTE);
                    }
                },
                never = self.shared.tend_guard() => match never {},
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.shared.shutdown.borrow().is_ending()
    }

    fn stop_starting(&self) {
        let note = match self.shared.in_flight.count() {
            0 => Note::new("stopping"),
            jobs => Note::new("stopping")
                .with("jobs", jobs)
                .with("grace", duration::exact(self.shared.settings.grace)),
        };
        self.shared.status.log(note);
        self.shared.shutdown.send_replace(Shutdown::Finish);
    }

    fn abort_by(&self, kill_at: Boottime) {
        self.shared.shutdown.send_replace(Shutdown::Abort(kill_at));
    }
}

/// The signals during a stop.
struct FurtherSignals<'a> {
    signals: &'a mut Signals,
    /// When the last one came.
    last: Option<Boottime>,
}

impl FurtherSignals<'_> {
    /// Waits for a signal that is no echo of the last one.
    async fn next(&mut self) {
        loop {
            self.signals.next().await;
            let last = self.last.replace(Boottime::now());
            if last.is_none_or(|last| (last + ECHO).is_past()) {
                return;
            }
        }
    }
}

/// Waits until the conductor was idle for this long. A conductor that is quiet or has not listed the board stays.
async fn idle(shared: &Shared) {
    let mut shutdown = shared.shutdown.subscribe();
    let mut has_looked = shared.has_looked.subscribe();
    let mut idle = async |long| {
        // Without a picker the wait ends as well.
        let _ = has_looked.wait_for(|it| *it).await;
        loop {
            let outages = shared.status.contact.regained();
            shared.in_flight.idle(long).await;
            // A board that cannot be read may have jobs.
            let contact = &shared.status.contact;
            if contact.problem().is_none() && contact.regained() == outages {
                break;
            }
            tokio::time::sleep(BEFORE_NEXT_LOOK).await;
        }
    };
    while let Some(long) = shared.settings.until.idle
        && may_claim(&mut shutdown).await
    {
        tokio::select! {
            biased;
            () = may_not_claim(&mut shutdown) => {}
            () = idle(long) => return,
        }
    }
    std::future::pending().await
}
