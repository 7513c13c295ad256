//! Runs the parts of a conductor, from the first claim to the last settlement.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};

use super::{
    Halted,
    attempt::{Attempt, Finished},
    picker::{self, Won},
    progress::{Note, Tag},
    registration::{self, LeaseTerm},
    settler::{Settler, Tally, refused::Refused, releaser::Releaser},
    shared::Shared,
    shutdown::{GRACE, Shutdown, may_claim, may_not_claim},
};
use crate::{
    board::{self, BoardError},
    duration,
    job::{Claim, Told},
    lease::Keeper,
    process::{
        clock::{self, Boottime},
        guard::BEFORE_FIRST,
        signal::Signals,
    },
};

/// A second signal within this time is an echo of the first: a shell and the kernel may both send one.
const ECHO: Duration = Duration::from_millis(200);

/// The time for a command to exit on an urgent stop.
const HASTE: Duration = Duration::from_millis(500);

pub(super) struct Supervisor {
    shared: Arc<Shared>,
    keeper: Keeper,
    won: mpsc::UnboundedReceiver<Won>,
    finished: mpsc::UnboundedSender<Finished>,
    picker: Part<board::Result<()>>,
    settler: Part<(Tally, Option<BoardError>)>,
    releaser: Releaser,
    releasing: Part<()>,
    _telling: Part<()>,
    attempts: JoinSet<()>,
}

/// A background task. Dropping it stops it.
struct Part<T>(JoinHandle<T>);

impl<T> Part<T> {
    async fn end(&mut self) -> Result<T, Halted> {
        (&mut self.0).await.map_err(|_| Halted::Broken)
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Rest {
    /// The picker has ended: all jobs are done, or the board denies access.
    Picked(board::Result<()>),
    /// The settler has ended: the board denies access.
    Unsettled(BoardError),
    Idle,
    Told,
}

impl Supervisor {
    pub(super) fn start(shared: Arc<Shared>, lease_term: LeaseTerm, told: Told) -> Self {
        let (won_here, won) = mpsc::unbounded_channel();
        let (finished, finished_there) = mpsc::unbounded_channel();
        let (returned_there, returned) = mpsc::unbounded_channel();
        let account = Arc::clone(&shared.account);
        let picker = picker::run(Arc::clone(&shared), lease_term, won_here, returned);
        let releaser = Releaser {
            shared: Arc::clone(&shared),
            returned: returned_there.clone(),
        };
        let settler = Settler {
            shared: Arc::clone(&shared),
            finished: finished_there,
            returned: returned_there,
            remembers_failures: shared.settings.until.has_end(),
            tally: Tally::default(),
            refused: Refused::default(),
            has_told_of_forgetting: false,
        };
        let renewed = move |renewal| account.renewed(renewal);
        Self {
            keeper: Keeper::start_telling(Arc::clone(&shared.board), renewed),
            won,
            finished,
            picker: Part(tokio::spawn(picker)),
            settler: Part(tokio::spawn(settler.run())),
            releasing: Part(tokio::spawn(releaser.clone().run())),
            releaser,
            _telling: Part(tokio::spawn(registration::tell(Arc::clone(&shared), told))),
            attempts: JoinSet::new(),
            shared,
        }
    }

    pub(super) async fn lead(mut self, signals: &mut Signals) -> Result<Tally, Halted> {
        let rest = self.work(signals).await?;
        match &rest {
            Rest::Told => self.stop_starting(),
            Rest::Picked(Err(_)) | Rest::Unsettled(_) => self.abort_by(Boottime::now() + GRACE),
            Rest::Idle => _ = self.shared.shutdown.send_replace(Shutdown::Finish),
            // The last claimed jobs still have to start.
            Rest::Picked(Ok(())) => {}
        }
        self.finish(signals, &rest).await?;
        drop(self.finished);
        match rest {
            Rest::Picked(Err(error)) | Rest::Unsettled(error) => Err(error.into()),
            Rest::Picked(Ok(())) | Rest::Idle | Rest::Told => match self.settler.end().await? {
                (mut tally, None) => {
                    tally.passed_over = self.shared.passed_over.counts();
                    tally.has_refused = self.shared.passed_over.has_refused();
                    // Restart it, to skip its current pause.
                    drop(self.releasing);
                    self.releaser.leave().await;
                    Ok(tally)
                }
                (_, Some(error)) => Err(error.into()),
            },
        }
    }

    async fn work(&mut self, signals: &mut Signals) -> Result<Rest, Halted> {
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return Ok(Rest::Told),
                Some(won) = self.won.recv() => self.perform(won),
                // A broken attempt would keep its job forever.
                Some(over) = self.attempts.join_next() => over.map_err(|_| Halted::Broken)?,
                ended = self.picker.end() => return Ok(Rest::Picked(ended?)),
                settled = self.settler.end() => return match settled? {
                    (_, Some(error)) => Ok(Rest::Unsettled(error)),
                    // It ends after all other parts.
                    (_, None) => Err(Halted::Broken),
                },
                never = self.shared.tend_guard() => match never {},
                () = idle(&self.shared) => return Ok(Rest::Idle),
            }
        }
    }

    fn perform(&mut self, won: Won) {
        let claimed = won.claimed;
        self.shared.account.claimed(&claimed.job);
        let claim = Claim {
            key: claimed.job.key.clone(),
            owner: self.shared.owner.clone(),
            fence: Some(claimed.fence.clone()),
            term: won.term,
        };
        let attempt = Attempt {
            tag: Arc::new(Tag::of(&claimed.job)),
            job: claimed.job,
            fence: claimed.fence,
            lease: self.keeper.hold(claim, won.asked),
            look_since: match claimed.is_first {
                true => won.heard - BEFORE_FIRST,
                false => won.heard,
            },
            span: None,
        };
        let (shared, shutdown) = (Arc::clone(&self.shared), self.shared.shutdown.subscribe());
        let finished = self.finished.clone();
        self.attempts.spawn(async move {
            // The settler outlives the attempts.
            let over = |it| _ = finished.send(it);
            attempt.perform(&shared, shutdown, won.slot, over).await;
        });
    }

    async fn finish(&mut self, signals: &mut Signals, rest: &Rest) -> Result<(), Halted> {
        let mut last = Boottime::now();
        let mut hurry = matches!(rest, Rest::Told).then(|| last + self.shared.settings.grace);
        let mut is_picking = !matches!(rest, Rest::Picked(_));
        loop {
            while let Ok(won) = self.won.try_recv() {
                self.perform(won);
            }
            if !is_picking && self.attempts.is_empty() {
                return Ok(());
            }
            let over = async {
                match hurry {
                    Some(moment) => clock::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(_) = self.attempts.join_next() => {}
                // A pending claim request is answered first; its result no longer matters.
                ended = self.picker.end(), if is_picking => {
                    let _ = ended?;
                    is_picking = false;
                }
                () = over => {
                    hurry = None;
                    self.abort_by(Boottime::now() + GRACE);
                }
                _ = signals.next() => {
                    if (last + ECHO).is_past() {
                        match hurry {
                            // The first end, while only running jobs remain.
                            None if !self.shared.shutdown.borrow().is_ending() => {
                                self.stop_starting();
                                hurry = Some(Boottime::now() + self.shared.settings.grace);
                            }
                            _ => {
                                hurry = None;
                                self.abort_by(Boottime::now() + HASTE);
                            }
                        }
                    }
                    last = Boottime::now();
                }
                never = self.shared.tend_guard() => match never {},
            }
        }
    }

    fn stop_starting(&self) {
        let note = match self.shared.in_flight.count() {
            0 => Note::new("stopping"),
            jobs => Note::new("stopping")
                .with("jobs", jobs)
                .with("grace", duration::exact(self.shared.settings.grace)),
        };
        self.shared.reporter.tell(note);
        self.shared.shutdown.send_replace(Shutdown::Finish);
    }

    fn abort_by(&self, kill_at: Boottime) {
        self.shared.shutdown.send_replace(Shutdown::Abort(kill_at));
    }
}

/// Waits until the conductor was idle for this long. A conductor that is quiet or has not listed the board stays.
async fn idle(shared: &Shared) {
    let mut shutdown = shared.shutdown.subscribe();
    let mut has_looked = shared.has_looked.subscribe();
    let mut idle = async |long| {
        // Without a picker the wait ends as well.
        let _ = has_looked.wait_for(|it| *it).await;
        shared.in_flight.idle(long).await;
    };
    while let Some(long) = shared.settings.until.idle
        && may_claim(&mut shutdown).await
    {
        tokio::select! {
            () = may_not_claim(&mut shutdown) => {}
            () = idle(long) => return,
        }
    }
    std::future::pending().await
}
