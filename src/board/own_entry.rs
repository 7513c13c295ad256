//! The registry entry of this process, on boards whose entries expire unless refreshed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{BoardError, Result};
use crate::job::{Conductor, ConductorReport};

/// How long a registration lasts without a heartbeat. Afterwards the name is free.
pub(super) const LIFE: Duration = Duration::from_secs(30);

/// How long a conductor without heartbeats is listed: until its claims, renewed by then, must have expired.
pub(super) fn kept(report: &ConductorReport) -> Duration {
    let lease = report
        .lease
        .and_then(|it| Duration::try_from_secs_f64(it).ok());
    LIFE.saturating_add(lease.unwrap_or_default())
}

pub(crate) const REFRESH: Duration = Duration::from_secs(10);

pub(super) const MAX_CONDUCTORS: usize = 500;

pub(super) const UNREADABLE: &str = "registrations that cannot be read";

/// Returns the conductors of a board; fails if there are more entries than the limit, since callers need all.
pub(super) fn crowded(known: Vec<Conductor>, entries: usize) -> Result<Vec<Conductor>> {
    match entries {
        0..=MAX_CONDUCTORS => Ok(known),
        _ => Err(BoardError::Crowded {
            more: entries - known.len(),
            known,
        }),
    }
}

#[async_trait]
pub(super) trait ConductorEntry: Send + Sync + 'static {
    /// Writes the entry with this status, also after it expired, unless another process owns it now.
    async fn publish(&self, report: &ConductorReport) -> Result<()>;

    /// Removes the entry, if this process still owns it.
    async fn remove(&self) -> Result<()>;
}

#[derive(Default)]
pub(super) struct OwnEntry(Mutex<Option<Arc<dyn ConductorEntry>>>);

impl OwnEntry {
    pub(super) fn begin(&self, entry: impl ConductorEntry) {
        *self.0.lock() = Some(Arc::new(entry));
    }

    pub(super) async fn publish(&self, report: &ConductorReport) -> Result<()> {
        let entry = self.0.lock().as_ref().map(Arc::clone);
        match entry {
            Some(entry) => entry.publish(report).await,
            None => Ok(()),
        }
    }

    pub(super) async fn leave(&self) {
        let entry = self.0.lock().take();
        if let Some(entry) = entry {
            // An entry that cannot be removed expires like that of a dead conductor.
            let _ = entry.remove().await;
        }
    }
}
