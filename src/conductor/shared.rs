//! The state that all parts of a conductor share.

use std::{convert::Infallible, io, sync::Arc};

use tokio::sync::watch;

use super::{
    Settings,
    account::Account,
    in_flight::InFlight,
    passed_over::PassedOver,
    policy::Policy,
    progress::{Note, Reporter},
    shutdown::Shutdown,
    spans::Spans,
};
use crate::{
    board::Board,
    job::Owner,
    process::{
        guard::{Guard, Launch, LeftOver},
        spawn::Spawner,
    },
};

pub(super) struct Shared {
    pub(super) board: Arc<dyn Board>,
    pub(super) settings: Settings,
    pub(super) owner: Owner,
    pub(super) guard: Arc<Guard>,
    pub(super) left_over: LeftOver,
    /// The execution policy, until the next reload.
    pub(super) policy: watch::Sender<Arc<Policy>>,
    /// The inherited environment of all commands: without secrets, with the marks of the conductor.
    pub(super) spawner: Spawner,
    pub(super) reporter: Reporter,
    pub(super) in_flight: InFlight,
    pub(super) passed_over: PassedOver,
    pub(super) account: Arc<Account>,
    pub(super) spans: Option<Spans>,
    pub(super) shutdown: watch::Sender<Shutdown>,
    /// Whether the board was listed, or failed, since claims are allowed.
    pub(super) has_looked: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(
        board: Arc<dyn Board>,
        mut settings: Settings,
        reporter: Reporter,
    ) -> io::Result<Self> {
        let owner = settings.conductor.owner.clone();
        let file = settings.spans.take();
        Ok(Self {
            guard: Arc::new(Guard::start(Launch::this_program(), &settings.mark)?),
            left_over: LeftOver::default(),
            policy: watch::Sender::new(Arc::new(settings.policy.clone())),
            spawner: Spawner::of_conductor(&settings.withheld, &settings.mark, &owner)?,
            owner,
            reporter,
            in_flight: InFlight::default(),
            passed_over: PassedOver::default(),
            account: Arc::clone(&settings.account),
            spans: file.map(|file| Spans::new(file, board.name(), &settings.conductor)),
            shutdown: watch::Sender::new(Shutdown::NotYet),
            has_looked: watch::Sender::new(false),
            board,
            settings,
        })
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
    }

    /// Keeps a guard running, if possible, while this is polled.
    pub(super) async fn tend_guard(&self) -> Infallible {
        let tell = |why: io::Error| {
            let note = Note::new("not_watched");
            self.reporter.tell(note.with("reason", why.to_string()));
        };
        self.guard.tend(tell).await
    }
}
