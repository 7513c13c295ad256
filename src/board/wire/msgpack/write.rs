//! Writes postings and times exactly as TaskFlow does.

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::time::{DATETIME, LAST_MICROSECOND};
use crate::job::{Book, Draft};

/// Room for what is usually written.
const USUAL: usize = 512;

/// The members of a posting, in the order in which TaskFlow writes them.
#[derive(Serialize)]
struct Record<'a> {
    uuid: String,
    name: &'a str,
    priority: &'static str,
    created_on: Extension,
    details: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<&'a Book>,
    sequence: u8,
}

/// The members of a time, in the order in which TaskFlow writes them.
#[derive(Serialize)]
struct Moment {
    day: u32,
    month: u32,
    year: i32,
    hour: u32,
    minute: u32,
    second: u32,
    microsecond: u32,
}

/// A value of a type of its own: by this name rmp-serde knows what it is.
#[derive(Serialize)]
#[serde(rename = "_ExtStruct")]
struct Extension((i8, Bytes));

struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// Encodes a posting up to the value of its `sequence`, which is to be appended.
///
/// The number is handed out in the step that stores the posting.
pub(crate) fn encode(draft: &Draft, created_on: DateTime<Utc>) -> Vec<u8> {
    let mut bytes = bytes(&Record {
        uuid: draft.uuid.to_string(),
        name: &draft.name,
        priority: draft.priority.name(),
        created_on: extension(created_on),
        details: &draft.details,
        book: draft.book.as_ref(),
        sequence: 0,
    });
    // A zero is one byte, and the last one.
    bytes.pop();
    bytes
}

/// Encodes the number that completes a posting, in its shortest form.
pub(crate) fn sequence(number: u64) -> Vec<u8> {
    bytes(&number)
}

/// Encodes what goes over a channel: maps with the names of their members.
pub(crate) fn message(value: &impl Serialize) -> Vec<u8> {
    bytes(value)
}

/// Encodes a time as TaskFlow does where it means UTC: without a zone, to the microsecond.
///
/// With a zone, Python could no longer compare it with its own times.
pub(crate) fn time(time: DateTime<Utc>) -> Vec<u8> {
    bytes(&extension(time))
}

fn extension(time: DateTime<Utc>) -> Extension {
    let moment = Moment {
        day: time.day(),
        month: time.month(),
        year: time.year(),
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
        // Beyond that begins a leap second, which Python refuses.
        microsecond: time.timestamp_subsec_micros().min(LAST_MICROSECOND),
    };
    Extension((DATETIME, Bytes(bytes(&moment))))
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    rmp_serde::encode::write_named(&mut bytes, value)
        .expect("what is posted came from JSON, which is never too deep");
    bytes
}
