//! The jobs of a conductor that are in flight, and those adrift that have to be given back.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::job::{Aftermath, JobKey};

/// A job is held from when its claim was won until it is settled. A job that is adrift may be claimed and is
/// not performed: its claim was not heard of, or was lost, or given up while the board was silent. It stays
/// here until the board has said that none of us has it. Jobs that are set aside are still held, and nobody
/// waits for them any more.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    jobs: Mutex<HashMap<JobKey, Grip>>,
    changed: Notify,
}

#[derive(Debug)]
enum Grip {
    InHand,
    /// The board does not let us settle it.
    Aside,
    /// With what giving it back is to say of the attempt.
    Adrift(Aftermath),
}

impl InFlight {
    pub(super) fn take(&self, key: &JobKey) {
        self.jobs.lock().insert(key.clone(), Grip::InHand);
        self.changed.notify_waiters();
    }

    /// Notes that the board has said of a job that it is not ours, or not any more.
    pub(super) fn put_down(&self, key: &JobKey) {
        self.jobs.lock().remove(key);
        self.changed.notify_waiters();
    }

    /// Notes of a job, which may be in hand, that nobody performs it though it may be ours.
    pub(super) fn let_slip(&self, key: &JobKey, aftermath: Aftermath) {
        self.jobs
            .lock()
            .insert(key.clone(), Grip::Adrift(aftermath));
        self.changed.notify_waiters();
    }

    /// Has nobody wait any more for a job that is still held.
    pub(super) fn set_aside(&self, key: &JobKey) {
        if let Some(grip @ Grip::InHand) = self.jobs.lock().get_mut(key) {
            *grip = Grip::Aside;
        }
        self.changed.notify_waiters();
    }

    pub(super) fn have_aside(&self, key: &JobKey) -> bool {
        matches!(self.jobs.lock().get(key), Some(Grip::Aside))
    }

    pub(super) fn may_have(&self, key: &JobKey) -> bool {
        self.jobs.lock().contains_key(key)
    }

    /// Whether the board has no job as ours that is waited for.
    pub(super) fn are_empty(&self) -> bool {
        are_empty(&self.jobs.lock())
    }

    pub(super) fn count(&self) -> usize {
        count(&self.jobs.lock())
    }

    pub(super) fn adrift(&self) -> Vec<(JobKey, Aftermath)> {
        let adrift = |(key, grip): (&JobKey, &Grip)| match grip {
            Grip::InHand | Grip::Aside => None,
            Grip::Adrift(aftermath) => Some((key.clone(), aftermath.clone())),
        };
        self.jobs.lock().iter().filter_map(adrift).collect()
    }

    /// Waits until the board has no job as ours that is waited for.
    pub(super) async fn empty(&self) {
        self.until(are_empty).await;
    }

    pub(super) async fn some_adrift(&self) {
        let is_adrift = |grip: &Grip| matches!(grip, Grip::Adrift(_));
        self.until(|jobs| jobs.values().any(is_adrift)).await;
    }

    pub(super) async fn idle(&self, long: Duration) {
        loop {
            self.until(|jobs| count(jobs) == 0).await;
            tokio::select! {
                biased;
                () = self.until(|jobs| count(jobs) > 0) => {}
                () = tokio::time::sleep(long) => return,
            }
        }
    }

    async fn until(&self, is_so: impl Fn(&HashMap<JobKey, Grip>) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.jobs.lock()) {
                return;
            }
            changed.await;
        }
    }
}

fn are_empty(jobs: &HashMap<JobKey, Grip>) -> bool {
    jobs.values().all(|grip| matches!(grip, Grip::Aside))
}

fn count(jobs: &HashMap<JobKey, Grip>) -> usize {
    let in_hand = |grip: &&Grip| matches!(grip, Grip::InHand);
    jobs.values().filter(in_hand).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_adrift_is_ours_until_the_board_says_otherwise_and_keeps_nobody_busy() {
        let (in_flight, job) = (InFlight::default(), JobKey::new("a"));
        in_flight.take(&job);
        assert!((in_flight.count(), in_flight.adrift().len()) == (1, 0));
        in_flight.let_slip(&job, Aftermath::None);
        assert!(in_flight.may_have(&job) && !in_flight.are_empty());
        in_flight.some_adrift().await;
        in_flight.idle(Duration::ZERO).await;
        assert_eq!(in_flight.adrift(), [(job.clone(), Aftermath::None)]);
        in_flight.put_down(&job);
        in_flight.empty().await;
        assert!(in_flight.adrift().is_empty());
    }
}
