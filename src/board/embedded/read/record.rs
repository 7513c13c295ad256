//! Decodes rows of the job table.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::{
    Row,
    types::{FromSql, ValueRef},
};
use serde::de::IgnoredAny;

use crate::{
    board::{
        Detail,
        embedded::store::{clock::from_micros, transaction::BoardView},
        wire::{
            json,
            posting::{Limit, together},
            sidecar::Sidecar,
        },
    },
    job::{
        AuditEntry, Book, ClaimEnd, Details, Entry, Failure, Fence, History, Holding, Job, JobKey,
        Location, Malformed, Owner, Priority, from_json, shortened,
    },
};

pub(crate) fn location_number(location: Location) -> i64 {
    match location {
        Location::Board => 0,
        Location::Trash => 1,
        // In its own table.
        Location::History => 2,
    }
}

/// Returns the stored number of a priority: the most urgent is the lowest.
pub(crate) fn priority_number(priority: Priority) -> i64 {
    Priority::VeryHigh as i64 - priority as i64
}

pub(crate) fn priority_at(number: i64) -> Priority {
    usize::try_from(number)
        .ok()
        .and_then(|at| Priority::ALL.get(at).copied())
        .unwrap_or_default()
}

#[derive(Debug, Clone)]
pub(crate) struct RowJob {
    pub(crate) sequence: i64,
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) priority: i64,
    pub(crate) not_before: Option<i64>,
    pub(crate) owner: Option<Vec<u8>>,
    pub(crate) fence: Option<i64>,
    /// The counts. The failures and the audit entry are not read.
    pub(crate) side: Sidecar,
}

impl RowJob {
    pub(crate) fn columns(view: &BoardView<'_>) -> String {
        let [uuid, name, owner] = ["uuid", "name", "owner"].map(|column| view.bounded(column));
        format!(
            "sequence, {uuid}, {name}, priority, not_before, {owner}, fence, ahead, attempts, \
             postponed, first_claimed_on"
        )
    }

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        // An odd value must not prevent this or other settlements.
        let count = |at| {
            let number = row.get::<_, i64>(at)?.clamp(0, u32::MAX.into());
            Ok::<_, rusqlite::Error>(u32::try_from(number).unwrap_or_default())
        };
        let not_before: Option<i64> = row.get(4)?;
        Ok(Self {
            sequence: row.get(0)?,
            uuid: text_of(row, 1)?,
            name: text_of(row, 2)?,
            priority: row.get(3)?,
            not_before,
            owner: bytes_or_none(row, 5)?,
            fence: row.get(6)?,
            side: Sidecar {
                not_before: not_before.map(from_micros),
                ahead: row.get(7)?,
                attempts: count(8)?,
                postponed: count(9)?,
                first_claimed_on: time_of(row, 10)?,
                ..Sidecar::default()
            },
        })
    }

    pub(crate) fn owner(&self) -> Option<Owner> {
        self.owner.clone().map(Owner::from_stored)
    }

    pub(crate) fn fence(&self) -> Option<Fence> {
        self.fence.map(|number| Fence(number.to_string()))
    }

    /// Returns the claim without its lease.
    pub(crate) fn holding(&self) -> Option<Holding> {
        Some(Holding::new(
            Some(self.owner()?),
            ClaimEnd::Never,
            self.fence(),
        ))
    }
}

pub(crate) fn columns(view: &BoardView<'_>, detail: Detail) -> String {
    let (most, stored) = (view.limit.details, view.limit.stored());
    let details = match detail {
        // Only the beginning of an oversized value is kept.
        Detail::Whole => format!(
            "CASE WHEN octet_length(details) <= {most} THEN details
                  WHEN octet_length(details) <= {stored}
                  THEN substr(CAST(details AS BLOB), 1, {}) END",
            Limit::RAW
        ),
        Detail::Stored => {
            format!("CASE WHEN octet_length(details) <= {stored} THEN details END")
        }
        Detail::Brief => "NULL".to_owned(),
    };
    let texts = [
        "uuid",
        "name",
        "book_name",
        "book_uuid",
        "owner",
        "failures",
        "remark",
    ];
    let [uuid, name, book_name, book_uuid, owner, failures, audit] =
        texts.map(|column| view.bounded(column));
    format!(
        "sequence, {uuid}, shelf, {name}, priority, created_on, modified_on, {book_name}, \
         {book_uuid}, {owner}, fence, claimed_on, {}, attempts, postponed, not_before, {failures}, \
         trashed_on, octet_length(name) + octet_length(details), {details}, ahead, \
         octet_length(details), first_claimed_on, {audit}",
        view.expires_column()
    )
}

pub(crate) fn entry(
    row: &Row<'_>,
    view: &BoardView<'_>,
    detail: Detail,
) -> rusqlite::Result<Entry> {
    match job(row, view, detail) {
        Ok(job) => Ok(Entry::Job(Box::new(job))),
        Err(problem) => malformed(row, view, detail, &problem.to_string()),
    }
}

pub(crate) fn malformed(
    row: &Row<'_>,
    view: &BoardView<'_>,
    detail: Detail,
    problem: &str,
) -> rusqlite::Result<Entry> {
    let size = row.get::<_, Option<i64>>(18)?.unwrap_or_default();
    Ok(Entry::Malformed(Malformed {
        size: size.unsigned_abs(),
        raw: raw_of(row, detail, false)?,
        holding: holding(row, view)?,
        ..Malformed::new(JobKey::new(text_of(row, 1)?), problem.to_owned())
    }))
}

type RowProblem = Box<dyn std::error::Error + Send + Sync>;

fn job(row: &Row<'_>, view: &BoardView<'_>, detail: Detail) -> Result<Job, RowProblem> {
    let uuid: String = short(row, 1, "uuid")?;
    let (details, oversized) = details(row, view.limit)?;
    let raw = raw_of(row, detail, oversized.is_none())?;
    let (failures, problem) = failures_of(row, 16)?;
    let problem = together([oversized, problem]);
    let priority: i64 = row.get(4)?;
    let holding = holding(row, view)?;
    // While the job is claimed, its command may be running.
    let may_be_begun = holding.is_some() && row.get(20)?;
    let name = short(row, 3, "name")?;
    let book = (short(row, 7, "book_name")?, short(row, 8, "book_uuid")?);
    Ok(Job {
        priority: usize::try_from(priority)
            .ok()
            .and_then(|at| Priority::ALL.get(at).copied())
            .ok_or_else(|| format!("{priority} is not a priority"))?,
        sequence: Some(row.get(0)?),
        created_on: Some(from_micros(row.get(5)?)),
        last_modified: time_of(row, 6)?,
        holding,
        is_unfit: problem.is_some(),
        raw,
        trashed_on: time_of(row, 17)?,
        location: match row.get::<_, i64>(2)? {
            0 => Location::Board,
            1 => Location::Trash,
            _ => Location::History,
        },
        book: match book {
            (Some(name), Some(uuid)) => Some(Book { name, uuid }),
            _ => None,
        },
        details,
        history: History {
            attempts: row
                .get::<_, u32>(13)?
                .saturating_add(u32::from(may_be_begun)),
            postponed: row.get(14)?,
            not_before: time_of(row, 15)?,
            failures,
            first_claimed_on: time_of(row, 22)?,
            audit: audit_of(row, 23)?,
        },
        size: row.get::<_, i64>(18)?.unsigned_abs(),
        problem,
        ..Job::new(JobKey::new(&uuid), uuid, name)
    })
}

/// Reads the details if requested and readable; also returns whether they are too large.
fn details(row: &Row<'_>, limit: Limit) -> Result<(Option<Details>, Option<String>), RowProblem> {
    let length = usize::try_from(row.get::<_, i64>(21)?)?;
    if limit.is_exceeded(length, 0) {
        return Ok((None, Some(limit.problem(length))));
    }
    let text = match row.get_ref(19)? {
        ValueRef::Null => return Ok((None, None)),
        other => other.as_str()?,
    };
    if limit.may_be_exceeded(length) && limit.is_exceeded(length, json::weight(text)?) {
        return Ok((None, Some(limit.problem(length))));
    }
    serde_json::from_str::<IgnoredAny>(text)?;
    let decode = |text: &[u8], names: Option<&[&str]>| {
        json::value_of(text, names, |text| serde_json::from_str(text).ok())
    };
    Ok((Some(Details::Stored(text.as_bytes().into(), decode)), None))
}

/// Reads a text, unless it is long.
fn short<T: FromSql>(row: &Row<'_>, at: usize, what: &str) -> Result<T, RowProblem> {
    let value = row.get_ref(at)?;
    match length_of(value) {
        ..=Limit::SMALL => Ok(T::column_result(value)?),
        length => Err(format!("the {what} has {length} bytes").into()),
    }
}

/// Returns the length of a text. [`BoardView::bounded`] selects a number, the length, instead of a long text.
fn length_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Integer(length) => usize::try_from(length).unwrap_or(usize::MAX),
        ValueRef::Null | ValueRef::Real(_) => 0,
    }
}

/// Reads the failures; unreadable ones do not make the job unreadable.
pub(crate) fn failures_of(
    row: &Row<'_>,
    at: usize,
) -> rusqlite::Result<(Vec<Failure>, Option<String>)> {
    let read = match row.get_ref(at)? {
        ValueRef::Null => return Ok((Vec::new(), None)),
        ValueRef::Text(text) => from_json(text).map_err(|error| shortened(&error.to_string())),
        ValueRef::Integer(length) => Err(format!("they have {length} bytes")),
        _ => Err("the stored value is not text".to_owned()),
    };
    Ok(match read {
        Ok(failures) => (failures, None),
        Err(error) => (
            Vec::new(),
            Some(format!("the failures are unreadable: {error}")),
        ),
    })
}

/// Reads the audit entry; `None` if unreadable.
pub(crate) fn audit_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<AuditEntry>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(text) => from_json(text).ok(),
        _ => None,
    })
}

fn holding(row: &Row<'_>, view: &BoardView<'_>) -> rusqlite::Result<Option<Holding>> {
    let owner = match row.get_ref(9)? {
        ValueRef::Null => return Ok(None),
        ValueRef::Blob(owner) | ValueRef::Text(owner) => Some(owner),
        _ => None,
    };
    // An unreadable owner has no name.
    let owner = owner.filter(|owner| (1..=Owner::MAX_BYTES).contains(&owner.len()));
    let left = row
        .get::<_, Option<i64>>(12)?
        .map(|deadline| deadline.saturating_sub(view.deadline()));
    if left.is_some_and(|left| left <= 0) {
        return Ok(None);
    }
    Ok(Some(Holding {
        owner: owner.map(|owner| Owner::from_stored(owner.to_vec())),
        lease: left.map_or(ClaimEnd::Never, |_| ClaimEnd::Timed),
        expires_in: left.map(|left| Duration::from_millis(left.unsigned_abs())),
        outlives: None,
        claimed_on: time_of(row, 11)?,
        fence: row
            .get::<_, Option<i64>>(10)?
            .map(|number| Fence(number.to_string())),
    }))
}

pub(crate) fn time_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<DateTime<Utc>>> {
    Ok(row.get::<_, Option<_>>(at)?.map(from_micros))
}

pub(crate) fn text_of(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    Ok(text_or_none(row, at)?.unwrap_or_default())
}

pub(crate) fn text_or_none(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    let bytes = bytes_or_none(row, at)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a text for display. Its length replaces a long one.
pub(crate) fn bytes_or_none(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.len() <= Owner::MAX_BYTES => {
            Some(bytes.to_vec())
        }
        other => Some(format!("({} bytes)", length_of(other)).into()),
    })
}

fn raw_of(row: &Row<'_>, detail: Detail, can_be_read: bool) -> rusqlite::Result<Vec<u8>> {
    Ok(match row.get_ref(19)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => detail.raw(bytes, can_be_read),
        _ => Vec::new(),
    })
}
