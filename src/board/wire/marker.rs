//! The markers of ZooKeeper boards, which keep chosen uuids unique.

use serde::{Deserialize, Serialize};

use super::as_json;
use crate::job::JobKey;

const VERSION: u32 = 1;

/// Where the job of a uuid is; empty for a location that lost it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MarkerRecord {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trashed: Option<String>,
}

impl MarkerRecord {
    pub(crate) fn of(job: Option<&JobKey>, trashed: Option<&JobKey>) -> Self {
        Self {
            v: VERSION,
            job: job.map(JobKey::to_string),
            trashed: trashed.map(JobKey::to_string),
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        as_json(self).into_bytes()
    }

    pub(crate) fn read(stored: &[u8]) -> Self {
        // An unreadable marker protects no uuid; the next post replaces it.
        serde_json::from_slice(stored).unwrap_or_default()
    }

    /// Whether it has no members of a newer version.
    pub(crate) fn is_of_known_version(&self) -> bool {
        self.v <= VERSION
    }
}
