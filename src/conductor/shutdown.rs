//! How far a conductor has come with its work, which all of its parts go by.

use std::time::Duration;

use tokio::sync::watch;

use crate::process::clock::Boottime;

/// How long a command may take to end once it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shutdown {
    NotYet,
    /// It claims no more until somebody says otherwise; what runs goes on.
    Quiet,
    /// It claims no more; what runs may end by itself.
    Finish,
    /// What runs is ended, at this moment by force.
    Abort(Boottime),
}

impl Shutdown {
    pub(super) fn is_ending(&self) -> bool {
        matches!(self, Self::Finish | Self::Abort(_))
    }
}

/// Waits until something may be claimed; whether that will ever be.
pub(super) async fn may_claim(shutdown: &mut watch::Receiver<Shutdown>) -> bool {
    let settled = shutdown.wait_for(|it| *it != Shutdown::Quiet).await;
    settled.is_ok_and(|it| *it == Shutdown::NotYet)
}

/// Waits until nothing more is to be claimed, for now or for ever.
pub(super) async fn may_not_claim(shutdown: &mut watch::Receiver<Shutdown>) {
    // Whoever leads the work is gone: that is an end as well.
    let _ = shutdown.wait_for(|it| *it != Shutdown::NotYet).await;
}

/// Waits until nothing more is to be claimed or started.
pub(super) async fn told_to_end(shutdown: &mut watch::Receiver<Shutdown>) {
    // Whoever leads the work is gone: that is an end as well.
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
        // Whoever leads the work is gone, and takes us along.
        std::future::pending().await
    }
}
