//! Releases claims without an attempt, until the board has confirmed it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc::UnboundedSender, time};

use crate::{
    board::{BoardExt, Result, backlog::Candidate},
    conductor::shared::Shared,
};

/// How long the conductor tries to release claims before it exits.
const FAREWELL: Duration = Duration::from_secs(2);

/// No part claims such a job again before the board reports it free. So the release always hits the old claim, never
/// a later one.
#[derive(Clone)]
pub(crate) struct Releaser {
    pub(crate) shared: Arc<Shared>,
    pub(crate) returned: UnboundedSender<Candidate>,
}

impl Releaser {
    pub(crate) async fn run(self) {
        loop {
            self.shared.in_flight.any_unreleased().await;
            self.release_all().await;
        }
    }

    /// Releases the remaining claims before the exit. If the board stays away for longer, they expire.
    pub(crate) async fn leave(&self) {
        let _ = time::timeout(FAREWELL, self.release_all()).await;
    }

    async fn release_all(&self) {
        let mut outage = self.shared.outage();
        let mut was_away = false;
        loop {
            match self.release().await {
                Ok(()) if self.shared.in_flight.unreleased().is_empty() => break,
                Ok(()) => {}
                Err(error) => {
                    outage.begin(&error);
                    was_away = true;
                }
            }
            outage.pause().await;
        }
        // A board that refuses only claims proves nothing here.
        if was_away {
            outage.end();
        }
    }

    async fn release(&self) -> Result<()> {
        let (shared, mut failure) = (&self.shared, None);
        let (board, in_flight) = (&shared.board, &shared.in_flight);
        let held = in_flight.unreleased();
        for (key, answer) in board.release_held(held, &shared.owner).await? {
            match answer {
                Ok(job) => {
                    in_flight.remove(&key);
                    // No picker runs while the conductor shuts down.
                    job.map(|job| self.returned.send(Candidate::unverified(&job)));
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
