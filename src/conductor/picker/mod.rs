//! Picks and claims jobs: the best that this conductor may run, one per free slot.

mod claim;
mod events;
mod listing;
mod refresh;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use futures_util::stream::BoxStream;
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender},
        watch,
    },
    time::{self, Duration, Instant},
};

use self::refresh::RemainingWork;
use super::{
    admission::Rejection,
    contact::Outage,
    registration::LeaseTerm,
    shared::{Shared, Shutdown, ending, may_claim, may_not_claim},
    slots::{Slot, Slots},
};
use crate::{
    backoff::random_fraction,
    board::{
        Event, Result,
        backlog::{Backlog, CAPACITY, Candidate},
    },
    job::{Claimant, Claimed, JobKey, Pauses, Term},
    process::clock::{self, Boottime},
};

/// How many extra candidates to try, since other conductors claim them too.
const SPARE: usize = 16;

const MAX_CLAIMS_PER_BATCH: usize = 64;

/// A busy conductor reads events in batches, this far apart.
const EVENT_PAUSE: Duration = Duration::from_millis(25);

const GUARD_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct WonClaim {
    pub(super) claimed: Claimed,
    /// Read before the claim request.
    pub(super) asked: Boottime,
    /// Read after the answer.
    pub(super) heard: Boottime,
    pub(super) term: Duration,
    pub(super) slot: Slot,
}

pub(super) async fn run(
    shared: Arc<Shared>,
    lease_term: LeaseTerm,
    won: UnboundedSender<WonClaim>,
    returned: UnboundedReceiver<Candidate>,
) -> Result<()> {
    let slots = Arc::new(Slots::new(shared.settings.jobs));
    let mut picker = Picker {
        shared: &shared,
        outage: shared.outage(),
        by: Claimant {
            owner: shared.owner.clone(),
            term: Term::Lease(lease_term.wanted),
        },
        lease_term,
        backlog: Backlog::new(CAPACITY),
        pauses: Pauses::default(),
        pauses_read: Instant::now(),
        misses_events: false,
        events: None,
        returned,
        listed: None,
        events_read: Instant::now(),
        spread: 0,
        unreadable: HashMap::new(),
        unanswered: BTreeSet::new(),
        next_count: Instant::now(),
        fruitless: 0,
        has_looked: false,
        has_news: true,
        reported: BTreeSet::new(),
    };
    picker.work(&slots, &won).await
}

struct Picker<'a> {
    shared: &'a Shared,
    outage: Outage,
    by: Claimant,
    lease_term: LeaseTerm,
    backlog: Backlog,
    pauses: Pauses,
    pauses_read: Instant,
    /// Whether the board does not push all events.
    misses_events: bool,
    /// Board events, while the backlog has room for them.
    events: Option<BoxStream<'a, Result<Event>>>,
    returned: UnboundedReceiver<Candidate>,
    /// When the whole board was last listed; `None` if it must be listed again.
    listed: Option<Instant>,
    /// When the pending events were last read.
    events_read: Instant,
    /// Skip up to this many top candidates at random: other conductors want them too.
    spread: usize,
    unreadable: HashMap<JobKey, Rejection>,
    /// The jobs on the board that a late request of ours may still claim.
    unanswered: BTreeSet<JobKey>,
    /// Until then, no event causes another count of the remaining jobs.
    next_count: Instant,
    /// How many counts in a row found candidates and won none.
    fruitless: u32,
    has_looked: bool,
    /// Whether the remaining jobs may have changed since the last count.
    has_news: bool,
    /// The drain events logged so far; each is logged once.
    reported: BTreeSet<&'static str>,
}

/// Waits until a claim has returned unused, or until none can return any more.
async fn any_unused(shared: &Shared) {
    let unused = || shared.status.work(|work| work.unused_claims);
    (shared.in_flight.until_none_runs_or(|| unused() > 0)).await;
}

impl Picker<'_> {
    async fn work(&mut self, slots: &Arc<Slots>, won: &UnboundedSender<WonClaim>) -> Result<()> {
        let mut policy = self.shared.policy.subscribe();
        let shutdown = &mut self.shared.shutdown.subscribe();
        let until = self.shared.settings.until;
        let (mut jobs_left, is_to_end) = (until.jobs.unwrap_or(u64::MAX), until.has_end());
        while self.may_claim(shutdown).await {
            if jobs_left == 0 {
                tokio::select! {
                    biased;
                    () = ending(shutdown) => return Ok(()),
                    () = any_unused(self.shared) => {}
                }
            }
            let unused = (self.shared.status).work(|work| std::mem::take(&mut work.unused_claims));
            jobs_left = jobs_left.saturating_add(unused);
            if jobs_left == 0 {
                return Ok(());
            }
            let most = MAX_CLAIMS_PER_BATCH
                .min(usize::try_from(jobs_left).unwrap_or(MAX_CLAIMS_PER_BATCH));
            // Every branch can be dropped at any point.
            let opening = tokio::select! {
                biased;
                () = may_not_claim(shutdown) => continue,
                // The new policy may admit skipped jobs and reject others.
                _ = policy.changed() => {
                    self.listed = None;
                    continue;
                }
                opening = self.opening(slots, most) => opening,
            };
            // A claim request is never dropped: it may succeed.
            let (jobs, error) = match opening {
                Ok(None) => return Ok(()),
                Ok(Some((free, keys))) => self.claim(free, keys, slots).await,
                Err(error) => (Vec::new(), Some(error)),
            };
            jobs_left = jobs_left.saturating_sub(jobs.len() as u64);
            for job in jobs {
                self.shared.in_flight.take(&job.claimed.job.key);
                // The receiver outlives the picker.
                let _ = won.send(job);
            }
            match error.map_or(Ok(()), Err) {
                Ok(()) => self.outage.end(),
                Err(error) if error.is_denied() => return Err(error),
                // An error at the first listing is permanent.
                Err(error) if !self.has_looked && error.is_fatal_at_start() => return Err(error),
                Err(error) => {
                    self.outage.begin(&error);
                    self.shared.has_looked.send_replace(true);
                    if is_to_end && self.outage.is_hopeless() {
                        return Err(error);
                    }
                    self.forget_board();
                    tokio::select! {
                        biased;
                        () = ending(shutdown) => return Ok(()),
                        () = self.outage.pause_by(is_to_end) => {}
                    }
                }
            }
        }
        Ok(())
    }

    async fn may_claim(&mut self, shutdown: &mut watch::Receiver<Shutdown>) -> bool {
        if *shutdown.borrow() != Shutdown::NotYet {
            // By then the backlog is out of date.
            self.forget_board();
            self.shared.has_looked.send_replace(false);
            self.outage.set_waiting(false);
        }
        may_claim(shutdown).await
    }

    fn forget_board(&mut self) {
        self.events = None;
        self.listed = None;
    }

    /// Waits for free slots and candidates, and returns the number of slots and the candidates; `None` once all jobs
    /// are done.
    async fn opening(
        &mut self,
        slots: &Slots,
        most: usize,
    ) -> Result<Option<(usize, Vec<JobKey>)>> {
        let free = self.wait_for_slots(slots).await?.min(most);
        let keys = self.candidates(free).await?;
        self.guarded().await;
        Ok(keys.map(|keys| (free, keys)))
    }

    async fn candidates(&mut self, most: usize) -> Result<Option<Vec<JobKey>>> {
        loop {
            self.refresh_if_needed().await?;
            // The backlog is enough for now, and reading events is expensive.
            if self.backlog.has_none_ready() || self.events_read.elapsed() > EVENT_PAUSE {
                self.read_pending_events()?;
            }
            let now = clock::wall();
            while let Ok(candidate) = self.returned.try_recv() {
                self.backlog.offer(candidate, now);
            }
            self.backlog.release_delayed(now);
            self.record_queue_length();
            let skip = (random_fraction() * self.spread as f64) as usize;
            let best = self.backlog.best(most + SPARE, skip);
            let fit = self.verify(best).await?;
            if !fit.is_empty() {
                return Ok(Some(fit));
            }
            if self.listed.is_none() || !self.backlog.has_none_ready() || self.backlog.is_low() {
                continue;
            }
            if self.may_be_drained() {
                let left = self.remaining_work().await?;
                match left {
                    RemainingWork::Nothing => return Ok(None),
                    RemainingWork::Candidates => (self.listed, self.has_news) = (None, true),
                    RemainingWork::Held => {}
                }
            }
            if self.listed.is_some() {
                self.wait_for_more().await?;
            }
        }
    }

    fn record_queue_length(&self) {
        let count = self.backlog.count();
        self.shared.status.work(|work| work.queue = count);
    }

    fn may_be_drained(&self) -> bool {
        let has_nothing = self.shared.in_flight.are_empty() && self.returned.is_empty();
        let is_time = self.has_news && self.next_count <= Instant::now();
        self.shared.settings.until.drained && has_nothing && is_time
    }

    async fn guarded(&mut self) {
        while self.shared.worker.guard.check().is_err() {
            self.shared.has_looked.send_replace(true);
            time::sleep(GUARD_PAUSE).await;
        }
    }
}
