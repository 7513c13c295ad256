//! How long claims are kept: as long as was wanted, or as near to it as the board grants.

use std::time::Duration;

use super::progress::{Note, Reporter};
use crate::{
    board::{Board, Result},
    duration,
};

#[derive(Debug)]
pub(super) struct LeaseTerm {
    wanted: Duration,
    granted: Duration,
}

impl LeaseTerm {
    pub(super) fn new(wanted: Duration) -> Self {
        Self {
            wanted,
            granted: wanted,
        }
    }

    pub(super) fn wanted(&self) -> Duration {
        self.wanted
    }

    /// Prepares for claims, and returns how long they last by now; says so when that changes.
    pub(super) async fn ask(&mut self, board: &dyn Board, reporter: &Reporter) -> Result<Duration> {
        let granted = board.lease_term(self.wanted).await?;
        if std::mem::replace(&mut self.granted, granted) != granted {
            let note = Note::new("lease_granted")
                .with("wanted", duration::exact(self.wanted))
                .with("granted", duration::exact(granted));
            reporter.tell(note);
        }
        Ok(granted)
    }
}
