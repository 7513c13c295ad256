//! The jobs in flight of a conductor, and the claims that it may hold without an attempt.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::watch;

use crate::job::{Aftermath, JobKey};

/// A job is in flight from its claim to its settlement. A job is unreleased if it may be claimed although no attempt
/// runs: its claim was unanswered, lost, or given up while the board was silent. It stays here until the board
/// confirms that none of our claims is on it. Jobs that are set aside are still claimed, and the conductor no longer
/// waits for them.
#[derive(Debug, Default)]
pub(super) struct InFlight(watch::Sender<FlightTable>);

type FlightTable = BTreeMap<JobKey, FlightState>;

#[derive(Debug)]
enum FlightState {
    Running,
    /// The board does not let us settle it.
    SetAside,
    /// With the attempt result to record when it is released.
    Unreleased(Aftermath),
}

impl InFlight {
    pub(super) fn take(&self, key: &JobKey) {
        self.set(key, FlightState::Running);
    }

    pub(super) fn remove(&self, key: &JobKey) {
        self.0.send_modify(|jobs| _ = jobs.remove(key));
    }

    /// Records that a job may be ours although no attempt runs, even if it was in flight.
    pub(super) fn mark_unreleased(&self, key: &JobKey, aftermath: Aftermath) {
        self.set(key, FlightState::Unreleased(aftermath));
    }

    fn set(&self, key: &JobKey, state: FlightState) {
        self.0
            .send_modify(|jobs| _ = jobs.insert(key.clone(), state));
    }

    pub(super) fn set_aside(&self, key: &JobKey) {
        self.0.send_modify(|jobs| {
            if let Some(state @ FlightState::Running) = jobs.get_mut(key) {
                *state = FlightState::SetAside;
            }
        });
    }

    pub(super) fn is_set_aside(&self, key: &JobKey) -> bool {
        matches!(self.0.borrow().get(key), Some(FlightState::SetAside))
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

    pub(super) fn unreleased(&self) -> Vec<(JobKey, Aftermath)> {
        let unreleased = |(key, state): (&JobKey, &FlightState)| match state {
            FlightState::Running | FlightState::SetAside => None,
            FlightState::Unreleased(aftermath) => Some((key.clone(), aftermath.clone())),
        };
        self.0.borrow().iter().filter_map(unreleased).collect()
    }

    pub(super) async fn empty(&self) {
        self.until(are_empty).await;
    }

    /// Waits until no job is running; each change asks whether to end the wait sooner.
    pub(super) async fn until_none_runs_or(&self, is_over: impl Fn() -> bool) {
        self.until(|jobs| count(jobs) == 0 || is_over()).await;
    }

    pub(super) async fn any_unreleased(&self) {
        let is_unreleased = |state: &FlightState| matches!(state, FlightState::Unreleased(_));
        self.until(|jobs| jobs.values().any(is_unreleased)).await;
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
    jobs.values()
        .all(|state| matches!(state, FlightState::SetAside))
}

fn count(jobs: &FlightTable) -> usize {
    let is_running = |state: &&FlightState| matches!(state, FlightState::Running);
    jobs.values().filter(is_running).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unreleased_claim_counts_as_ours_but_not_as_busy() {
        let (in_flight, job) = (InFlight::default(), JobKey::new("a"));
        in_flight.take(&job);
        assert!((in_flight.count(), in_flight.unreleased().len()) == (1, 0));
        in_flight.mark_unreleased(&job, Aftermath::None);
        assert!(in_flight.may_have(&job) && !in_flight.are_empty());
        in_flight.any_unreleased().await;
        in_flight.idle(Duration::ZERO).await;
        assert_eq!(in_flight.unreleased(), [(job.clone(), Aftermath::None)]);
        in_flight.remove(&job);
        in_flight.empty().await;
        assert!(in_flight.unreleased().is_empty());
    }
}
