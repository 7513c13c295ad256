//! Writes postings and times exactly as TaskFlow does.

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::Serialize;

use super::{
    stored::{Extension, ShownValue, bytes},
    time::{DATETIME, LAST_MICROSECOND, TimeMembers},
};
use crate::job::{Book, Draft};

#[derive(Serialize)]
struct PackPosting<'a> {
    uuid: String,
    name: &'a str,
    priority: &'static str,
    created_on: Extension,
    details: ShownValue<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    book: Option<&'a Book>,
    sequence: u8,
}

/// Encodes a posting up to the value of its `sequence`, which is to be appended.
///
/// The step that stores the posting assigns the number.
pub(crate) fn encode(draft: &Draft, created_on: DateTime<Utc>) -> Vec<u8> {
    let mut bytes = bytes(&PackPosting {
        uuid: draft.uuid.to_string(),
        name: &draft.name,
        priority: draft.priority.name(),
        created_on: extension(created_on),
        details: ShownValue(&draft.details.value()),
        book: draft.book.as_ref(),
        sequence: 0,
    });
    // The placeholder zero is one byte, and the last one.
    bytes.pop();
    bytes
}

/// Encodes the number that completes a posting, in its shortest form.
pub(crate) fn sequence(number: u64) -> Vec<u8> {
    bytes(&number)
}

/// Encodes a UTC time as TaskFlow does: without a zone, to the microsecond.
///
/// Python could not compare a time with a zone with its own times.
pub(crate) fn time(time: DateTime<Utc>) -> Vec<u8> {
    bytes(&extension(time))
}

fn extension(time: DateTime<Utc>) -> Extension {
    let moment = TimeMembers {
        day: time.day(),
        month: time.month(),
        year: time.year(),
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
        // A greater value is a leap second, which Python rejects.
        microsecond: time.timestamp_subsec_micros().min(LAST_MICROSECOND),
        tz: None,
    };
    Extension((DATETIME, bytes(&moment).into()))
}
