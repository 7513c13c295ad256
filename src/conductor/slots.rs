//! Slots for running jobs, and for a few jobs claimed ahead while all jobs are short.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// How many jobs must have ended before jobs are claimed ahead.
const MIN_ENDED: u32 = 8;

/// The longest expected wait of a job that is claimed ahead.
const MAX_EXPECTED_WAIT: Duration = Duration::from_millis(40);

/// A job that waits longer is released.
pub(super) const RELEASE_AFTER: Duration = Duration::from_millis(250);

const MAX_AHEAD: usize = 32;

#[derive(Debug)]
pub(super) struct Slots {
    jobs: usize,
    /// Limits the running jobs among the claimed ones.
    turns: Semaphore,
    state: Mutex<SlotUsage>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct SlotUsage {
    taken: usize,
    /// The recent average of how long jobs ran.
    pace: Duration,
    /// The jobs that ended since claiming ahead was last stopped.
    ended: u32,
}

#[derive(Debug)]
pub(super) struct Slot(Arc<Slots>);

impl Slots {
    pub(super) fn new(jobs: usize) -> Self {
        Self {
            jobs,
            turns: Semaphore::new(jobs),
            state: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Waits until claiming is worthwhile, and returns the number of free slots.
    pub(super) async fn some(&self) -> usize {
        loop {
            let free = self.state.lock().free(self.jobs);
            if free > 0 {
                return free;
            }
            self.freed.notified().await;
        }
    }

    /// Returns how many new jobs could start without waiting.
    pub(super) fn starting(&self) -> usize {
        self.jobs.saturating_sub(self.state.lock().taken)
    }

    pub(super) fn stop_claiming_ahead(&self) {
        self.state.lock().ended = 0;
    }

    pub(super) fn take(self: &Arc<Self>) -> Slot {
        self.state.lock().taken += 1;
        Slot(Arc::clone(self))
    }
}

impl Slot {
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.0.turns.acquire().await.ok()
    }

    pub(super) fn took(&self, long: Duration) {
        let mut state = self.0.state.lock();
        state.pace = (state.pace * 3 + long) / 4;
        state.ended = state.ended.saturating_add(1);
    }

    pub(super) fn stop_claiming_ahead(&self) {
        self.0.stop_claiming_ahead();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.state.lock().taken -= 1;
        self.0.freed.notify_one();
    }
}

impl SlotUsage {
    fn free(&self, jobs: usize) -> usize {
        let ahead = self.ahead(jobs);
        let free = (jobs + ahead).saturating_sub(self.taken);
        // Several jobs are claimed together, unless one has to wait for it.
        let is_worth_it = self.taken < jobs || free > ahead / 2;
        if is_worth_it { free } else { 0 }
    }

    fn ahead(&self, jobs: usize) -> usize {
        if self.ended < MIN_ENDED || self.pace >= MAX_EXPECTED_WAIT {
            return 0;
        }
        let pace = self.pace.max(Duration::from_micros(100));
        let turns = MAX_EXPECTED_WAIT.as_micros() / pace.as_micros();
        usize::try_from(turns)
            .unwrap_or(MAX_AHEAD)
            .saturating_mul(jobs)
            .min(MAX_AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(jobs: u32, each: Duration) -> Arc<Slots> {
        let slots = Arc::new(Slots::new(2));
        for _ in 0..jobs {
            slots.take().took(each);
        }
        slots
    }

    #[tokio::test]
    async fn only_short_jobs_are_claimed_ahead() {
        assert_eq!(after(0, Duration::ZERO).some().await, 2);
        assert_eq!(after(50, Duration::from_secs(1)).some().await, 2);
        assert_eq!(after(7, Duration::from_millis(1)).some().await, 2);
        assert_eq!(after(8, Duration::from_millis(1)).some().await, 34);
        // One long job is enough.
        let slots = after(8, Duration::from_millis(1));
        slots.take().took(Duration::from_secs(1));
        assert_eq!(slots.some().await, 2);
    }

    #[tokio::test]
    async fn no_more_jobs_are_claimed_while_some_wait() {
        let slots = after(8, Duration::from_millis(1));
        let mut taken: Vec<_> = (0..34).map(|_| slots.take()).collect();
        taken.truncate(20);
        let none = tokio::time::timeout(Duration::from_millis(10), slots.some());
        assert!(none.await.is_err());
        taken.truncate(10);
        assert_eq!(slots.some().await, 24);
    }
}
