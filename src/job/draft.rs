//! New and moved jobs, and changes of posted ones.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Attempts, Book, Details, Job, Location, Priority};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Draft {
    pub(crate) uuid: Uuid,
    /// Whether the poster chose the uuid: another job may use it, so every location must be checked.
    pub(crate) chosen: bool,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    pub(crate) book: Option<Book>,
    /// A JSON object. A moved job keeps its details, even of another type.
    pub(crate) details: Details,
    /// The state on the source board of a move; `None` for a new job.
    pub(crate) former: Option<Box<Former>>,
}

/// The state on the source board, which the job keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Former {
    /// Where it belongs: on the board, or in the trash.
    pub(crate) location: Location,
    /// Its posting in the target board's format; empty to write a new one.
    pub(crate) raw: Vec<u8>,
    /// Its number, which it keeps unless the target board has used a greater one.
    pub(crate) sequence: Option<i64>,
    pub(crate) created_on: Option<DateTime<Utc>>,
    pub(crate) trashed_on: Option<DateTime<Utc>>,
    pub(crate) attempts: Attempts,
}

impl Draft {
    /// A new job of the usual priority, under a uuid that the poster did not choose.
    pub(crate) fn new(uuid: Uuid, name: impl Into<String>, details: impl Into<Details>) -> Self {
        Self {
            uuid,
            chosen: false,
            name: name.into(),
            priority: Priority::Normal,
            book: None,
            details: details.into(),
            former: None,
        }
    }

    pub(crate) fn location(&self) -> Location {
        self.former
            .as_ref()
            .map_or(Location::Board, |former| former.location)
    }

    pub(crate) fn with_former(&self) -> Option<(&Self, &Former)> {
        Some((self, self.former.as_deref()?))
    }
}

impl Former {
    /// Numbers from here on are not kept: a board continues after its greatest number.
    const MAX_NUMBER: i64 = 1 << 40;

    pub(crate) fn of(job: &Job, raw: Vec<u8>) -> Self {
        Self {
            location: job.location,
            raw,
            sequence: job
                .sequence
                .filter(|number| (0..Self::MAX_NUMBER).contains(number)),
            created_on: job.created_on,
            trashed_on: job.trashed_on,
            attempts: job.attempts.clone(),
        }
    }

    /// Resets the attempts; earlier failures stay visible.
    pub(crate) fn begin_anew(&mut self) {
        self.attempts = Attempts {
            failures: std::mem::take(&mut self.attempts.failures),
            audit: self.attempts.audit.take(),
            ..Attempts::default()
        };
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) priority: Option<Priority>,
    pub(crate) details: Option<Value>,
    pub(crate) set: Vec<(String, Value)>,
    /// Members to remove from the details, after that.
    pub(crate) unset: Vec<String>,
}

impl Edit {
    pub(crate) fn details(&self, now: Option<&Value>) -> Result<Option<Value>, &'static str> {
        if !self.edits_members() {
            return Ok(self.details.clone());
        }
        let Some(Value::Object(members)) = self.details.as_ref().or(now) else {
            return Err("the details are not an object, or too large to read");
        };
        let mut members: Map<String, Value> = members.clone();
        members.extend(self.set.iter().cloned());
        for name in &self.unset {
            members.shift_remove(name);
        }
        Ok(Some(members.into()))
    }

    pub(crate) fn edits_members(&self) -> bool {
        !self.set.is_empty() || !self.unset.is_empty()
    }
}
