//! What all parts of one conductor share.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    capture::Destination, guard::Guard, heritage::Heritage, policy::Policy, progress::Reporter,
    verdict::Patience,
};
use crate::job::{JobKey, Owner};

/// What all parts of one conductor share.
#[derive(Debug)]
pub(super) struct Crew {
    /// As whom it claims.
    pub(super) owner: Owner,
    /// By what the guard knows its commands.
    pub(super) mark: String,
    pub(super) guard: Arc<Guard>,
    pub(super) policy: Policy,
    pub(super) patience: Patience,
    pub(super) output: Destination,
    pub(super) job_timeout: Option<Duration>,
    /// What all commands inherit: no secrets, and by what they and the guard know us.
    pub(super) heritage: Heritage,
    pub(super) reporter: Reporter,
    pub(super) hands: Hands,
    /// Whether it was said that the board cannot be reached.
    pub(super) is_cut_off: Arc<AtomicBool>,
}

/// The jobs that the conductor has in its hands: claimed, and not settled yet.
#[derive(Debug, Default)]
pub(super) struct Hands {
    jobs: Mutex<HashSet<JobKey>>,
    emptied: Notify,
    filled: Notify,
}

impl Hands {
    pub(super) fn take(&self, key: &JobKey) {
        self.lock().insert(key.clone());
        self.filled.notify_waiters();
    }

    pub(super) fn put_down(&self, key: &JobKey) {
        let mut jobs = self.lock();
        jobs.remove(key);
        if jobs.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    pub(super) fn hold(&self, key: &JobKey) -> bool {
        self.lock().contains(key)
    }

    pub(super) fn are_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Waits until there is nothing in them.
    pub(super) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.are_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// Waits until there has been nothing in them for so long.
    pub(super) async fn idle(&self, long: Duration) {
        loop {
            let filled = self.filled.notified();
            self.empty().await;
            tokio::select! {
                () = tokio::time::sleep(long) => return,
                () = filled => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<JobKey>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
