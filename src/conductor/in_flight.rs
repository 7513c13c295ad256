//! The jobs in flight of a conductor, and the claims that it may hold without an attempt.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::watch;

use crate::job::{Aftermath, JobKey};

/// A job is in flight from its claim to its settlement. A job is adrift if it may be claimed although no attempt
/// runs: its claim was unanswered, lost, or given up while the board was silent. It stays here until the board
/// confirms that none of our claims is on it. Jobs that are set aside are still claimed, and the conductor no longer
/// waits for them.
#[derive(Debug, Default)]
pub(super) struct InFlight(watch::Sender<FlightTable>);

type FlightTable = BTreeMap<JobKey, FlightState>;

#[derive(Debug)]
enum FlightState {
    InHand,
    /// The board does not let us settle it.
    Aside,
    /// With the attempt result to record when it is released.
    Adrift(Aftermath),
}

impl InFlight {
    pub(super) fn take(&self, key: &JobKey) {
        self.set(key, FlightState::InHand);
    }

    pub(super) fn put_down(&self, key: &JobKey) {
        self.0.send_modify(|jobs| _ = jobs.remove(key));
    }

    /// Records that a job may be ours although no attempt runs, even if it was in flight.
    pub(super) fn let_slip(&self, key: &JobKey, aftermath: Aftermath) {
        self.set(key, FlightState::Adrift(aftermath));
    }

    fn set(&self, key: &JobKey, grip: FlightState) {
        self.0
            .send_modify(|jobs| _ = jobs.insert(key.clone(), grip));
    }

    pub(super) fn set_aside(&self, key: &JobKey) {
        self.0.send_modify(|jobs| {
            if let Some(grip @ FlightState::InHand) = jobs.get_mut(key) {
                *grip = FlightState::Aside;
            }
        });
    }

    pub(super) fn have_aside(&self, key: &JobKey) -> bool {
        matches!(self.0.borrow().get(key), Some(FlightState::Aside))
    }

    pub(super) fn may_have(&self, key: &JobKey) -> bool {
        self.0.borrow().contains_key(key)
    }

    /// Whether no job that we wait for is ours on the board.
    pub(super) fn are_empty(&self) -> bool {
        are_empty(&self.0.borrow())
    }

    pub(super) fn count(&self) -> usize {
        count(&self.0.borrow())
    }

    pub(super) fn adrift(&self) -> Vec<(JobKey, Aftermath)> {
        let adrift = |(key, grip): (&JobKey, &FlightState)| match grip {
            FlightState::InHand | FlightState::Aside => None,
            FlightState::Adrift(aftermath) => Some((key.clone(), aftermath.clone())),
        };
        self.0.borrow().iter().filter_map(adrift).collect()
    }

    pub(super) async fn empty(&self) {
        self.until(are_empty).await;
    }

    pub(super) async fn some_adrift(&self) {
        let is_adrift = |grip: &FlightState| matches!(grip, FlightState::Adrift(_));
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

    async fn until(&self, is_so: impl Fn(&FlightTable) -> bool) {
        // It fails only without a sender.
        let _ = self.0.subscribe().wait_for(is_so).await;
    }
}

fn are_empty(jobs: &FlightTable) -> bool {
    jobs.values().all(|grip| matches!(grip, FlightState::Aside))
}

fn count(jobs: &FlightTable) -> usize {
    let in_hand = |grip: &&FlightState| matches!(grip, FlightState::InHand);
    jobs.values().filter(in_hand).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unreleased_claim_counts_as_ours_but_not_as_busy() {
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
