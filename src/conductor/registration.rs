//! Enters a conductor in the registry of its board, and waits for its name if that is taken.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::{
    lease_term::LeaseTerm,
    outage::{Outage, is_final_at_first},
    progress::Note,
    shared::Shared,
};
use crate::{
    board::{Board, BoardError},
    duration,
    job::Conductor,
};

/// How long the entry of a conductor that has died may last, and a little more.
const LONGEST: Duration = Duration::from_secs(45);

const PAUSE: Duration = Duration::from_secs(1);

/// Enters a conductor, as soon as the board can be reached and its name is free.
pub(super) async fn register(
    board: &dyn Board,
    conductor: &Conductor,
    shared: &Shared,
    lease_term: &mut LeaseTerm,
) -> Result<(), BoardError> {
    let mut outage = Outage::new(shared);
    let mut taken_since = None;
    loop {
        let entered = async {
            // First of all: what bears the entry may be what claims are kept by.
            lease_term.ask(board, &shared.reporter).await?;
            board.register(conductor).await
        };
        match entered.await {
            Ok(()) => {
                outage.is_over();
                return Ok(());
            }
            Err(error @ BoardError::NameTaken { .. }) => {
                outage.is_over();
                if taken_since.is_none() {
                    shared.reporter.tell(taken(board, &conductor.name).await);
                }
                let since = *taken_since.get_or_insert_with(Instant::now);
                if since.elapsed() > LONGEST {
                    return Err(error);
                }
                time::sleep(PAUSE).await;
            }
            Err(error) if is_final_at_first(&error) => return Err(error),
            Err(error) => {
                outage.begin(&error);
                outage.pause().await;
            }
        }
    }
}

/// Says who has a name, as far as the board tells, and how long its end is waited for.
async fn taken(board: &dyn Board, name: &str) -> Note {
    let note = Note::new("name_taken").with("conductor", name);
    let conductors = board.conductors().await.unwrap_or_default();
    let note = match conductors.into_iter().find(|other| other.name == name) {
        Some(other) => note.with("host", other.host).with("pid", other.pid),
        None => note,
    };
    note.with("waiting", duration::exact(LONGEST))
}
