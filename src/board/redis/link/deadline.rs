//! How long something may take altogether.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use tokio::time;

use super::problem::Problem;

/// How long something may take altogether.
#[derive(Debug, Clone, Copy)]
pub(in crate::board::redis) struct Deadline {
    at: Instant,
    pub(super) length: Duration,
}

impl Deadline {
    /// Begins to count.
    pub(in crate::board::redis) fn after(length: Duration) -> Self {
        Self {
            at: Instant::now() + length,
            length,
        }
    }

    /// Waits for something; `late` says what it means when it does not come in time.
    pub(in crate::board::redis) async fn bound<T>(
        self,
        late: impl FnOnce(Duration) -> Problem,
        future: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        time::timeout_at(self.at.into(), future)
            .await
            .unwrap_or_else(|_| Err(late(self.length)))
    }

    /// Returns an equal part of what is left, for one of several attempts.
    pub(super) fn share(self, parts: usize) -> Duration {
        let left = self.at.saturating_duration_since(Instant::now());
        left / u32::try_from(parts.max(1)).unwrap_or(u32::MAX)
    }
}
