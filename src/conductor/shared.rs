//! What all parts of one conductor share.

use std::{convert::Infallible, io, sync::Arc};

use tokio::sync::watch;

use super::{
    TimeLimit,
    account::Account,
    attempt::capture::Destination,
    in_flight::InFlight,
    passed_over::PassedOver,
    policy::Policy,
    progress::{Note, Reporter},
    shutdown::Shutdown,
    spans::Spans,
};
use crate::{
    job::Owner,
    process::{
        guard::{Guard, LeftOver},
        spawn::Spawner,
    },
    retry::Patience,
};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) owner: Owner,
    pub(super) guard: Arc<Guard>,
    pub(super) left_over: LeftOver,
    /// What may be run, until it is read again.
    pub(super) policy: watch::Sender<Arc<Policy>>,
    pub(super) patience: Patience,
    pub(super) output: Destination,
    pub(super) time_limit: TimeLimit,
    /// What all commands inherit: no secrets, and by what they and the guard know us.
    pub(super) spawner: Spawner,
    pub(super) reporter: Reporter,
    pub(super) in_flight: InFlight,
    pub(super) passed_over: PassedOver,
    pub(super) account: Arc<Account>,
    pub(super) spans: Option<Spans>,
    pub(super) shutdown: watch::Sender<Shutdown>,
    /// Whether the board was looked at, or could not be, since jobs may be claimed.
    pub(super) has_looked: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
    }

    /// Has a guard at work whenever there can be one, as long as this is polled.
    pub(super) async fn tend_guard(&self) -> Infallible {
        let tell = |why: io::Error| {
            let note = Note::new("not_watched");
            self.reporter.tell(note.with("reason", why.to_string()));
        };
        self.guard.tend(tell).await
    }
}
