//! Settles a job under a lease, whether or not the board answers.

use std::time::Duration;

use tokio::time::{self, Instant};

use crate::{
    board::{self, Board, BoardError, Settled, ext::the_answer},
    job::Settlement,
};

const PATIENCE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(100);

/// Settles a job under a lease, and repeats without a reply. The request names its claim, so it takes effect at most
/// once.
pub(crate) async fn settle_kept(
    board: &dyn Board,
    settlement: &Settlement,
) -> board::Result<Settled> {
    let end = Instant::now() + PATIENCE;
    let mut unheard = None;
    loop {
        let answer = async {
            let answers = board.settle(std::slice::from_ref(settlement)).await?;
            the_answer(answers)
        };
        let answer = match unheard {
            None => answer.await,
            // The outcome stays unknown if no answer comes in time.
            Some(_) => match time::timeout_at(end, answer).await {
                Ok(answer) => answer,
                Err(_) => return unheard.map_or(Ok(Settled::default()), Err),
            },
        };
        match answer {
            Ok(settled) => return Ok(settled),
            Err(error) if unheard.is_some() && error.may_come_of(&settlement.decision) => {
                return Ok(Settled::default());
            }
            Err(error @ BoardError::Unknown { .. }) => unheard = Some(error),
            Err(error) if unheard.is_none() || !error.is_retryable() => return Err(error),
            Err(_) => {}
        }
        if Instant::now() > end {
            return unheard.map_or(Ok(Settled::default()), Err);
        }
        time::sleep(PAUSE).await;
    }
}
