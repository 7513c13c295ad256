//! What all parts of one conductor share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    TimeLimit, capture::Destination, guard::Guard, heritage::Heritage, passed_over::PassedOver,
    policy::Policy, progress::Reporter, verdict::Patience,
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
    pub(super) time_limit: TimeLimit,
    /// What all commands inherit: no secrets, and by what they and the guard know us.
    pub(super) heritage: Heritage,
    pub(super) reporter: Reporter,
    pub(super) hands: Hands,
    pub(super) passed_over: PassedOver,
    /// Whether it was said that the board cannot be reached.
    pub(super) is_cut_off: Arc<AtomicBool>,
}

/// The jobs that the conductor has in its hands: claimed, and not settled yet.
///
/// Those that are set aside are still held, and nobody waits for them any more.
#[derive(Debug, Default)]
pub(super) struct Hands {
    jobs: Mutex<HashMap<JobKey, Place>>,
    emptied: Notify,
    filled: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    InHand,
    /// The board does not let us settle it.
    Aside,
}

impl Hands {
    pub(super) fn take(&self, key: &JobKey) {
        self.lock().insert(key.clone(), Place::InHand);
        self.filled.notify_waiters();
    }

    pub(super) fn put_down(&self, key: &JobKey) {
        let mut jobs = self.lock();
        jobs.remove(key);
        self.tell_if_empty(&jobs);
    }

    /// Has nobody wait any more for a job that is still held.
    pub(super) fn set_aside(&self, key: &JobKey) {
        let mut jobs = self.lock();
        if let Some(place) = jobs.get_mut(key) {
            *place = Place::Aside;
        }
        self.tell_if_empty(&jobs);
    }

    pub(super) fn hold(&self, key: &JobKey) -> bool {
        self.lock().contains_key(key)
    }

    pub(super) fn have_aside(&self, key: &JobKey) -> bool {
        self.lock().get(key) == Some(&Place::Aside)
    }

    pub(super) fn are_empty(&self) -> bool {
        count(&self.lock()) == 0
    }

    pub(super) fn count(&self) -> usize {
        count(&self.lock())
    }

    fn tell_if_empty(&self, jobs: &HashMap<JobKey, Place>) {
        if count(jobs) == 0 {
            self.emptied.notify_waiters();
        }
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

    fn lock(&self) -> MutexGuard<'_, HashMap<JobKey, Place>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how many jobs are waited for.
fn count(jobs: &HashMap<JobKey, Place>) -> usize {
    let in_hand = jobs.values().filter(|place| **place == Place::InHand);
    in_hand.count()
}
