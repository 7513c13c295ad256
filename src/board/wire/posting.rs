//! A job as its record states it, and what keeps a record from being read as one.

use chrono::{DateTime, Utc};
use serde_json::Value;
use thiserror::Error;

use crate::job::{Book, Priority, UnknownPriority};

/// What a record says of a job, however it is encoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Posting {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    /// `None` if the record has none, or none that can be told in UTC.
    pub(crate) created_on: Option<DateTime<Utc>>,
    /// `None` if they were not asked for; values that JSON cannot hold are shown as `$` objects.
    pub(crate) details: Option<Value>,
    pub(crate) book: Option<Book>,
    /// `None` if the record has none, or none that is a number of the right size.
    pub(crate) sequence: Option<i64>,
    /// What is wrong with the record, though it can be read.
    pub(crate) problem: Option<String>,
}

/// What is wrong with a record that can be read all the same.
#[derive(Debug, Default)]
pub(super) struct Notes(Option<String>);

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        match &mut self.0 {
            Some(notes) => {
                notes.push_str("; ");
                notes.push_str(&note);
            }
            None => self.0 = Some(note),
        }
    }

    pub(super) fn into_problem(self) -> Option<String> {
        self.0
    }
}

/// Says what is wrong with a record.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error("the record is empty")]
    Empty,
    #[error("the record breaks off in the middle")]
    Truncated,
    #[error("the record is followed by bytes that do not belong to it")]
    Trailing,
    #[error("the record contains the byte c1, which begins no value")]
    Reserved,
    #[error("the record contains a value of type {0}, which is undefined")]
    Code(i8),
    #[error("the record contains a text that is not UTF-8")]
    NotUtf8,
    #[error("the record begins with a byte order mark")]
    ByteOrderMark,
    #[error("the record is not JSON: {0} at byte {1}")]
    NotJson(&'static str, usize),
    #[error("the record is an empty map, by which TaskFlow understands that the job is gone")]
    Gone,
    #[error("the record contains a map with {0} for a key")]
    Key(&'static str),
    #[error("the record is nested deeper than {} levels", Problem::DEEPEST)]
    TooDeep,
    #[error("the record is {0}, not a map")]
    NotMap(&'static str),
    #[error("the record has no `{0}`")]
    Missing(&'static str),
    #[error("the priority is {0}, not a text")]
    PriorityType(&'static str),
    #[error(transparent)]
    Priority(#[from] UnknownPriority),
    #[error("the record is of the kind `{0}`")]
    Kind(String),
    #[error("the pid is not the number of a process")]
    Pid,
    #[error("{0} stands where a time should be")]
    NotTime(&'static str),
    #[error("a time has no `{0}`")]
    TimeLacks(&'static str),
    #[error("the `{0}` of a time is no number")]
    TimeType(&'static str),
    #[error("the zone of a time is no text")]
    ZoneType,
    #[error("there is no such time as {0}")]
    NoSuchTime(String),
    #[error("a time is in the unknown zone `{0}`")]
    UnknownZone(String),
    #[error("a time is in the zone `{0}` instead of UTC")]
    OtherZone(String),
}

impl Problem {
    /// How many levels of maps and lists a record may have below its outermost map.
    pub(crate) const DEEPEST: usize = 128;
}
