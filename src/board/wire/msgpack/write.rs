//! Writes postings and times exactly as TaskFlow does.

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};

use super::{
    stored::Stored,
    time::{DATETIME, LAST_MICROSECOND},
};
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
    details: Stored<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<&'a Book>,
    sequence: u8,
}

/// The members of a time, in the order in which TaskFlow writes them.
#[derive(Serialize)]
pub(super) struct Moment<'a> {
    pub(super) day: u32,
    pub(super) month: u32,
    pub(super) year: i32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) microsecond: u32,
    /// The zone, unless it is UTC and that is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tz: Option<&'a str>,
}

/// A value of a type of its own: by this name rmp-serde knows what it is.
#[derive(Serialize)]
#[serde(rename = "_ExtStruct")]
pub(super) struct Extension(pub(super) (i8, Bytes));

pub(super) struct Bytes(pub(super) Vec<u8>);

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
        details: Stored(&draft.details),
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
        tz: None,
    };
    Extension((DATETIME, Bytes(bytes(&moment))))
}

/// Encodes a value, its members by their names.
pub(super) fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    rmp_serde::encode::write_named(&mut bytes, value)
        .expect("what is posted came from JSON, which is never too deep");
    bytes
}
