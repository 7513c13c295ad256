//! The state that all parts of a conductor share, and its shutdown.

use std::{convert::Infallible, io, sync::Arc};

use tokio::sync::watch;

use super::{
    Settings, contact::Outage, in_flight::InFlight, log::Note, policy::ExecutionPolicy,
    spans::Spans, status::ConductorStatus,
};
use crate::{board::Board, job::Owner, process::clock::Boottime, worker::Worker};

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
            spans: file.map(|file| Spans::new(file, board.url(), &settings.conductor)),
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
        self.worker.guard.keep_alive(report).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    NotYet,
    /// Claims no jobs until an operator resumes it; running jobs continue.
    Quiet,
    /// Claims no more jobs; running jobs may finish.
    Finish,
    Abort(Boottime),
    /// Leaves jobs that the board has not let us settle yet.
    Leave,
}

impl Shutdown {
    pub(super) fn is_ending(&self) -> bool {
        matches!(self, Self::Finish | Self::Abort(_) | Self::Leave)
    }
}

/// Waits until claims are allowed; returns false if they never will be.
pub(super) async fn may_claim(shutdown: &mut watch::Receiver<Shutdown>) -> bool {
    let settled = shutdown.wait_for(|it| *it != Shutdown::Quiet).await;
    settled.is_ok_and(|it| *it == Shutdown::NotYet)
}

/// Waits until the settlements are given up.
pub(super) async fn left(shutdown: &mut watch::Receiver<Shutdown>) {
    // The supervisor is gone: an end as well.
    let _ = shutdown.wait_for(|it| *it == Shutdown::Leave).await;
}

pub(super) async fn may_not_claim(shutdown: &mut watch::Receiver<Shutdown>) {
    // The supervisor is gone: an end as well.
    let _ = shutdown.wait_for(|it| *it != Shutdown::NotYet).await;
}

pub(super) async fn ending(shutdown: &mut watch::Receiver<Shutdown>) {
    // The supervisor is gone: an end as well.
    let _ = shutdown.wait_for(Shutdown::is_ending).await;
}

pub(super) async fn aborted(shutdown: &mut watch::Receiver<Shutdown>) -> Boottime {
    loop {
        if let Shutdown::Abort(kill_at) = *shutdown.borrow_and_update() {
            return kill_at;
        }
        changed(shutdown).await;
    }
}

pub(super) async fn changed(shutdown: &mut watch::Receiver<Shutdown>) {
    if shutdown.changed().await.is_err() {
        // The supervisor is gone, and stops this task too.
        std::future::pending().await
    }
}
