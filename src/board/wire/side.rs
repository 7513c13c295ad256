//! The record beside a job: what TaskFlow has no place for.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;

use crate::job::{Failure, Fence, History};

/// The version of the record that is understood here.
const VERSION: u32 = 1;

/// What is kept beside a job; a version that is not known says nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Side {
    v: u32,
    /// Whose claim the rest of the claim's facts are about.
    pub(crate) owner: Option<String>,
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    pub(crate) fence: Option<Fence>,
    attempts: u32,
    postponed: u32,
    not_before: Option<DateTime<Utc>>,
    failures: Vec<Failure>,
    pub(crate) trashed_on: Option<DateTime<Utc>>,
}

impl Side {
    /// Reads a record; also returns what is wrong with it.
    pub(crate) fn read(bytes: Option<&[u8]>) -> (Self, Option<String>) {
        let Some(bytes) = bytes else {
            return (Self::default(), None);
        };
        match serde_json::from_slice::<Self>(bytes) {
            Ok(side) if side.v == VERSION => (side, None),
            Ok(side) => {
                let problem = format!(
                    "the record beside it has version {}, which is not known",
                    side.v
                );
                (Self::default(), Some(problem))
            }
            Err(error) => {
                let problem = format!("the record beside it cannot be read: {error}");
                (Self::default(), Some(problem))
            }
        }
    }

    /// Returns what happened to the job before.
    pub(crate) fn history(self) -> History {
        History {
            attempts: self.attempts,
            postponed: self.postponed,
            not_before: self.not_before,
            failures: self.failures,
        }
    }
}

/// Writes a time in the one form in which times compare as text.
pub(crate) fn text_of(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}
