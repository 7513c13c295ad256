//! The state that all parts of a conductor share.

use std::{convert::Infallible, io, sync::Arc};

use tokio::sync::watch;

use super::{
    Settings, contact::Outage, in_flight::InFlight, policy::ExecutionPolicy, progress::Note,
    shutdown::Shutdown, spans::Spans, status::ConductorStatus,
};
use crate::{board::Board, job::Owner, worker::Worker};

pub(super) struct Shared {
    pub(super) board: Arc<dyn Board>,
    pub(super) settings: Settings,
    pub(super) owner: Owner,
    pub(super) worker: Worker,
    pub(super) policy: watch::Sender<Arc<ExecutionPolicy>>,
    pub(super) in_flight: InFlight,
    pub(super) status: Arc<ConductorStatus>,
    pub(super) spans: Option<Spans>,
    pub(super) shutdown: watch::Sender<Shutdown>,
    /// Whether the board was listed, or failed, since claims are allowed.
    pub(super) has_looked: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn new(board: Arc<dyn Board>, mut settings: Settings) -> io::Result<Self> {
        let owner = settings.conductor.owner.clone();
        let file = settings.spans.take();
        Ok(Self {
            worker: Worker::start(&settings.mark, &owner, &settings.withheld)?,
            policy: watch::Sender::new(Arc::new(settings.policy.clone())),
            owner,
            in_flight: InFlight::default(),
            status: Arc::clone(&settings.status),
            spans: file.map(|file| Spans::new(file, board.name(), &settings.conductor)),
            shutdown: watch::Sender::new(Shutdown::NotYet),
            has_looked: watch::Sender::new(false),
            board,
            settings,
        })
    }

    pub(super) fn policy(&self) -> Arc<ExecutionPolicy> {
        Arc::clone(&self.policy.borrow())
    }

    pub(super) fn outage(&self) -> Outage {
        Outage::new(&self.status.contact)
    }

    /// Keeps a guard running, if possible, while this is polled.
    pub(super) async fn tend_guard(&self) -> Infallible {
        let report = |why: io::Error| {
            let note = Note::new("not_watched");
            self.status.log(note.with("reason", why.to_string()));
        };
        self.worker.guard.tend(report).await
    }
}
