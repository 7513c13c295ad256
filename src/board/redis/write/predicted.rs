//! Predicts the next job numbers, which are right unless another client posts meanwhile.
//!
//! A script then has nothing to assemble, which is its slowest part. It checks the numbers, and corrects the data if
//! they are wrong.

use std::sync::atomic::{AtomicI64, Ordering};

use serde::Serialize;

use crate::{board::wire::msgpack, job::Draft};

/// Remembers the last assigned number, as far as known.
#[derive(Debug, Default)]
pub(crate) struct PredictedNumbers {
    /// Zero if unknown.
    last: AtomicI64,
}

/// A post event in the scripts' format.
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
    /// Returns the last assigned number, if known.
    pub(crate) fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|last| *last > 0)
    }

    /// Records the last number; `None` if uncertain.
    pub(crate) fn note(&self, last: Option<i64>) {
        self.last.store(last.unwrap_or_default(), Ordering::Relaxed);
    }
}

pub(crate) fn complete(postings: &mut [Vec<u8>], last: i64) {
    for (number, posting) in (last + 1..).zip(postings) {
        posting.extend(msgpack::sequence(number.unsigned_abs()));
    }
}

/// Builds the message that announces the posts under the predicted numbers.
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
