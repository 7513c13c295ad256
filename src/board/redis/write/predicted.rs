//! The numbers that the next jobs get unless somebody else posts meanwhile.
//!
//! With those, a script needs to put nothing together, which takes it longer than all the rest. It
//! tells whether they were right, and mends what it was given if they were not.

use std::sync::atomic::{AtomicI64, Ordering};

use serde::Serialize;

use crate::{board::wire::msgpack, job::Draft};

/// Remembers the last number that was given out, as far as we know.
#[derive(Debug, Default)]
pub(crate) struct PredictedNumbers {
    /// Zero, as long as nothing is known.
    last: AtomicI64,
}

/// An event as the scripts word it, for a job that is posted.
#[derive(Serialize)]
struct Posted<'a> {
    event: &'static str,
    time: &'a str,
    field: &'a str,
    uuid: &'a str,
    name: &'a str,
    priority: &'static str,
    sequence: i64,
}

impl PredictedNumbers {
    /// Returns the number that comes before those of the next jobs, if that can be told.
    pub(crate) fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|last| *last > 0)
    }

    /// Notes which number was the last one; `None` if that is uncertain.
    pub(crate) fn note(&self, last: Option<i64>) {
        self.last.store(last.unwrap_or_default(), Ordering::Relaxed);
    }
}

pub(crate) fn complete(postings: &mut [Vec<u8>], last: i64) {
    for (number, posting) in (last + 1..).zip(postings) {
        posting.extend(msgpack::sequence(number.unsigned_abs()));
    }
}

/// Words the message that tells of jobs that were posted, with the numbers that come next.
pub(crate) fn message(drafts: &[Draft], fields: &[String], time: &str, last: i64) -> Vec<u8> {
    let events: Vec<_> = drafts
        .iter()
        .zip(fields)
        .zip(last + 1..)
        .map(|((draft, field), sequence)| Posted {
            event: "posted",
            time,
            field,
            uuid: field,
            name: &draft.name,
            priority: draft.priority.name(),
            sequence,
        })
        .collect();
    msgpack::message(&events)
}
