//! The entry of this process in a registry in which entries live on as long as they are refreshed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{BoardError, Result};
use crate::job::{Conductor, Told};

/// How long a conductor that says nothing counts as alive.
pub(super) const LIFE: Duration = Duration::from_secs(30);

/// How often a conductor has to say that it is alive, though nothing has changed.
pub(crate) const REFRESH: Duration = Duration::from_secs(10);

pub(super) const MOST_CONDUCTORS: usize = 500;

/// Returns the conductors of a board unless there are more entries than are read; whoever judges by them has to know all.
pub(super) fn crowded(known: Vec<Conductor>, entries: usize) -> Result<Vec<Conductor>> {
    match entries {
        0..=MOST_CONDUCTORS => Ok(known),
        _ => Err(BoardError::Crowded {
            more: entries - known.len(),
            known,
        }),
    }
}

#[async_trait]
pub(super) trait Registered: Send + Sync + 'static {
    /// Sets what the conductor tells of itself, for when it is stored again.
    fn set_told(&self, told: &Told);

    /// Stores it anew, also after it had seemed to be gone, unless it is another one's by now.
    async fn keep(&self) -> Result<()>;

    /// Removes it, if it is still this one.
    async fn remove(&self) -> Result<()>;
}

/// The entry of this process, if it has one.
#[derive(Default)]
pub(super) struct Registration(Mutex<Option<Arc<dyn Registered>>>);

impl Registration {
    pub(super) fn begin(&self, entry: impl Registered) {
        *self.0.lock() = Some(Arc::new(entry));
    }

    pub(super) async fn tell(&self, told: &Told) -> Result<()> {
        let entry = self.0.lock().as_ref().map(Arc::clone);
        let Some(entry) = entry else { return Ok(()) };
        entry.set_told(told);
        entry.keep().await
    }

    pub(super) async fn leave(&self) {
        let entry = self.0.lock().take();
        if let Some(entry) = entry {
            // An entry that cannot be removed is gone half a minute later.
            let _ = entry.remove().await;
        }
    }
}
