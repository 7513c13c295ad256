//! The decoded posting of a job, and the limits for reading one.

use chrono::{DateTime, Utc};
use thiserror::Error;

use crate::{
    board::query::Detail,
    job::{Book, Details, Job, JobKey, Priority, shortened},
    names::UnknownName,
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Posting {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) priority: Priority,
    /// `None` if the record has no valid time in UTC.
    pub(crate) created_on: Option<DateTime<Utc>>,
    /// `None` if not requested or too large. Values outside JSON appear as `$` objects.
    pub(crate) details: Option<Details>,
    pub(crate) is_oversized: bool,
    pub(crate) book: Option<Book>,
    /// `None` if the record has no valid number of the right size.
    pub(crate) sequence: Option<i64>,
    pub(crate) problem: Option<String>,
}

impl Posting {
    pub(crate) fn into_job(self, key: JobKey, size: usize) -> Job {
        Job {
            priority: self.priority,
            sequence: self.sequence,
            created_on: self.created_on,
            is_unfit: self.is_oversized,
            book: self.book,
            details: self.details,
            size: size as u64,
            problem: self.problem,
            ..Job::new(key, self.uuid, self.name)
        }
    }
}

pub(crate) fn together(problems: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let mut notes = Notes::default();
    problems.into_iter().flatten().for_each(|it| notes.add(it));
    notes.0
}

/// How much of a posting is read.
///
/// A decoded value takes many times its stored size: a posting of a few megabytes could take gigabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) details: usize,
}

impl Limit {
    pub(crate) const USUAL: Self = Self { details: 1 << 20 };

    pub(crate) fn of(max_details: u64) -> Self {
        Self {
            details: usize::try_from(max_details).unwrap_or(usize::MAX),
        }
    }

    /// Details may take this many times their stored limit in memory.
    const EXPANSION: usize = 16;

    /// The longest text of a posting but its details.
    pub(crate) const SMALL: usize = 64 * 1024;

    /// How much of an oversized record is kept for display.
    pub(crate) const RAW: usize = 768;

    /// Larger postings are never loaded into memory.
    const STORED: usize = 8 << 20;

    pub(crate) fn stored(self) -> usize {
        Self::STORED.max(self.details.saturating_add(4 * Self::SMALL))
    }

    /// Whether details of this stored length and memory weight are too large.
    pub(crate) fn is_exceeded(self, length: usize, weight: usize) -> bool {
        length > self.details || weight > self.details.saturating_mul(Self::EXPANSION)
    }

    pub(crate) fn may_be_exceeded(self, length: usize) -> bool {
        self.is_exceeded(length, length.saturating_mul(Weight::HEAVIEST))
    }

    pub(crate) fn problem(self, length: usize) -> String {
        let most = self.details;
        match length > most {
            true => format!("the details have {length} bytes, more than max_details ({most})"),
            false => "the details have too many values".to_owned(),
        }
    }
}

impl Detail {
    /// Returns the part of the raw posting that this level of detail includes.
    pub(crate) fn raw(self, posting: &[u8], can_be_read: bool) -> Vec<u8> {
        match self {
            Self::Stored => posting.to_vec(),
            Self::Brief | Self::Whole if can_be_read => Vec::new(),
            Self::Brief | Self::Whole => posting[..posting.len().min(Limit::RAW)].to_vec(),
        }
    }
}

/// Approximate memory that decoded values take, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight(pub(super) usize);

impl Weight {
    /// Maximum memory per stored byte.
    const HEAVIEST: usize = 640;

    pub(super) fn value(&mut self) {
        self.0 += 32;
    }

    pub(super) fn text(&mut self, length: usize) {
        self.0 += 16 + length;
    }

    pub(super) fn map(&mut self, pairs: usize) {
        self.0 += if pairs == 0 { 0 } else { 640 + 140 * pairs };
    }
}

#[derive(Debug, Default)]
pub(super) struct Notes(pub(super) Option<String>);

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
}

#[derive(Debug, Error)]
pub(crate) enum RecordProblem {
    #[error("the record is empty")]
    Empty,
    #[error("the record is truncated")]
    Truncated,
    #[error("extra bytes follow the record")]
    Trailing,
    #[error("the record contains the invalid byte c1")]
    Reserved,
    #[error("the record contains a value of the undefined type {0}")]
    Code(i8),
    #[error("the record contains a string that is not UTF-8")]
    NotUtf8,
    #[error("the record begins with a byte order mark")]
    ByteOrderMark,
    #[error("the record is not JSON: {0} at byte {1}")]
    NotJson(&'static str, usize),
    #[error("the record is an empty map, which TaskFlow treats as a removed job")]
    Gone,
    #[error("the record contains a map with {0} as a key")]
    Key(&'static str),
    #[error("the record is nested deeper than {} levels", RecordProblem::DEEPEST)]
    TooDeep,
    #[error("the record is {0}, not a map")]
    NotMap(&'static str),
    #[error("the record has no `{0}`")]
    Missing(&'static str),
    #[error("the `{0}` of the record is too large")]
    TooLarge(&'static str),
    #[error("the priority is {0}, not a string")]
    PriorityType(&'static str),
    #[error(transparent)]
    Priority(UnknownName),
    #[error("the record has the unknown kind `{0}`")]
    Kind(String),
    #[error("the pid is not a process number")]
    Pid,
    #[error("the record has {0} in place of a time")]
    NotTime(&'static str),
    #[error("a time has no `{0}`")]
    TimeLacks(&'static str),
    #[error("the `{0}` of a time is not a number")]
    TimeType(&'static str),
    #[error("the zone of a time is not a string")]
    ZoneType,
    #[error("{0} is not a valid time")]
    NoSuchTime(String),
    #[error("a time is in the zone `{0}` instead of UTC")]
    OtherZone(String),
}

impl From<UnknownName> for RecordProblem {
    fn from(unknown: UnknownName) -> Self {
        Self::Priority(UnknownName {
            text: shortened(&unknown.text),
            ..unknown
        })
    }
}

impl RecordProblem {
    /// How many levels of maps and lists a record may have below its outermost map.
    pub(crate) const DEEPEST: usize = 128;
}
