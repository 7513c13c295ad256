//! The shutdown state of a conductor, shared by all its parts.

use std::time::Duration;

use tokio::sync::watch;

use crate::process::clock::Boottime;

/// How long a command may take to exit after a request.
pub(super) const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    NotYet,
    /// Claims no jobs until an operator resumes it; running jobs continue.
    Quiet,
    /// Claims no more jobs; running jobs may finish.
    Finish,
    Abort(Boottime),
}

impl Shutdown {
    pub(super) fn is_ending(&self) -> bool {
        matches!(self, Self::Finish | Self::Abort(_))
    }
}

/// Waits until claims are allowed; returns false if they never will be.
pub(super) async fn may_claim(shutdown: &mut watch::Receiver<Shutdown>) -> bool {
    let settled = shutdown.wait_for(|it| *it != Shutdown::Quiet).await;
    settled.is_ok_and(|it| *it == Shutdown::NotYet)
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
