//! Gives back what the board may have as ours and nobody performs, until the board has answered.

use std::{sync::Arc, time::Duration};

use tokio::{sync::mpsc::UnboundedSender, time};

use crate::{
    board::{BoardExt, Result, backlog::Candidate},
    conductor::{outage::Outage, shared::Shared},
};

/// How long what may still be ours is given back, when all ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Nobody claims such a job anew here before the board has said that it is free: so it is always the old
/// claim that is given back, and never one that was won since.
#[derive(Clone)]
pub(crate) struct Releaser {
    pub(crate) shared: Arc<Shared>,
    pub(crate) returned: UnboundedSender<Candidate>,
}

impl Releaser {
    pub(crate) async fn run(self) {
        loop {
            self.shared.in_flight.some_adrift().await;
            self.release_all().await;
        }
    }

    /// Gives back what is left, before all ends; if the board is away for longer, it lapses.
    pub(crate) async fn leave(&self) {
        let _ = time::timeout(FAREWELL, self.release_all()).await;
    }

    async fn release_all(&self) {
        let mut outage = Outage::new(&self.shared);
        let mut was_away = false;
        loop {
            match self.release().await {
                Ok(()) if self.shared.in_flight.adrift().is_empty() => break,
                Ok(()) => {}
                Err(error) => {
                    outage.begin(&error);
                    was_away = true;
                }
            }
            outage.pause().await;
        }
        // Of a board that refuses only claims this says nothing.
        if was_away {
            outage.is_over();
        }
    }

    /// Looks once at what is adrift, and gives back what is ours.
    async fn release(&self) -> Result<()> {
        let Shared {
            board,
            in_flight,
            owner,
            ..
        } = &*self.shared;
        let mut failure = None;
        for (key, answer) in board.give_back(in_flight.adrift(), owner).await? {
            match answer {
                Ok(job) => {
                    in_flight.put_down(&key);
                    // Nobody picks any more while everything comes to its end.
                    job.map(|job| self.returned.send(Candidate::unvetted(&job)));
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}
