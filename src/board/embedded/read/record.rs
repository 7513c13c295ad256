//! Decodes rows of the job table.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::{
    Row,
    types::{FromSql, ValueRef},
};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{
    board::{
        Detail,
        embedded::store::{
            clock::from_micros,
            texts::{bytes_or_none, length_of, text_of},
            transaction::BoardView,
        },
        wire::{
            json,
            posting::{Limit, together},
            sidecar::Sidecar,
        },
    },
    job::{
        Attempts, AuditEntry, Book, ClaimEnd, Details, Entry, Failure, Fence, Holding, Job, JobKey,
        Location, Malformed, Owner, Priority, from_json, shortened,
    },
};

pub(crate) fn location_number(location: Location) -> i64 {
    match location {
        Location::Board => 0,
        Location::Trash => 1,
        // The history has a separate table.
        Location::History => 2,
    }
}

/// Returns the stored number of a priority: the most urgent is the lowest.
pub(crate) fn priority_number(priority: Priority) -> i64 {
    Priority::VeryHigh as i64 - priority as i64
}

pub(crate) fn priority_of(number: i64) -> Option<Priority> {
    Priority::ALL.get(usize::try_from(number).ok()?).copied()
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
        let owner = Some(self.owner()?);
        Some(Holding::new(owner, ClaimEnd::Never, self.fence()))
    }
}

macro_rules! column_enum {
    ($(#[$meta:meta])* $columns:ident: $($column:ident $name:literal)*) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $columns {
            $($column),*
        }

        impl $columns {
            pub(crate) const ALL: &[Self] = &[$(Self::$column),*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$column => $name),*
                }
            }

            pub(crate) const fn at(self) -> usize {
                self as usize
            }

            /// Returns the SQL of all columns, each as the function writes it.
            pub(crate) fn select(sql: impl Fn(Self) -> std::borrow::Cow<'static, str>) -> String {
                let all: Vec<_> = Self::ALL.iter().map(|column| sql(*column)).collect();
                all.join(", ")
            }
        }
    };
}

pub(crate) use column_enum;

column_enum! {
    /// The columns of the record of a job, in their order, and their SQL.
    StoredColumn:
    Sequence "sequence" Uuid "uuid" Shelf "shelf" Name "name" Priority "priority" CreatedOn "created_on"
    ModifiedOn "modified_on" BookName "book_name" BookUuid "book_uuid" Owner "owner" Fence "fence"
    ClaimedOn "claimed_on" Expires "expires" Attempts "attempts" Postponed "postponed" NotBefore "not_before"
    Failures "failures" TrashedOn "trashed_on" Size "octet_length(name) + octet_length(details)"
    Details "details" Ahead "ahead" DetailsLength "octet_length(details)"
    FirstClaimedOn "first_claimed_on" Audit "remark"
}

pub(crate) fn columns(view: &BoardView<'_>, detail: Detail) -> String {
    let (most, stored) = (view.limit.details, view.limit.stored());
    StoredColumn::select(|column| match (column, detail) {
        // Only the beginning of an oversized value is kept.
        (StoredColumn::Details, Detail::Whole) => format!(
            "CASE WHEN octet_length(details) <= {most} THEN details
                  WHEN octet_length(details) <= {stored}
                  THEN substr(CAST(details AS BLOB), 1, {}) END",
            Limit::RAW
        )
        .into(),
        (StoredColumn::Details, Detail::Stored) => {
            format!("CASE WHEN octet_length(details) <= {stored} THEN details END").into()
        }
        (StoredColumn::Details, Detail::Brief) => "NULL".into(),
        (StoredColumn::Expires, _) => view.expires_column().into(),
        // The listing is ordered by these names.
        (StoredColumn::Sequence | StoredColumn::Priority, _) => column.name().into(),
        (column, _) => view.bounded(column.name()),
    })
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
    let size: Option<i64> = row.get(StoredColumn::Size.at())?;
    let key = JobKey::new(text_of(row, StoredColumn::Uuid.at())?);
    Ok(Entry::Malformed(Malformed {
        size: size.unwrap_or_default().unsigned_abs(),
        raw: raw_of(row, detail, false)?,
        holding: holding(row, view)?,
        ..Malformed::new(key, problem.to_owned())
    }))
}

type RowProblem = Box<dyn std::error::Error + Send + Sync>;

fn job(row: &Row<'_>, view: &BoardView<'_>, detail: Detail) -> Result<Job, RowProblem> {
    let uuid: String = short(row, StoredColumn::Uuid)?;
    let (details, oversized) = details(row, view.limit)?;
    let raw = raw_of(row, detail, oversized.is_none())?;
    let (failures, problem) = failures_of(row, StoredColumn::Failures.at())?;
    let problem = together([oversized, problem]);
    let priority: i64 = row.get(StoredColumn::Priority.at())?;
    let holding = holding(row, view)?;
    // While the job is claimed, its command may be running.
    let may_be_begun = holding.is_some() && row.get(StoredColumn::Ahead.at())?;
    let name = short(row, StoredColumn::Name)?;
    let book = (
        short(row, StoredColumn::BookName)?,
        short(row, StoredColumn::BookUuid)?,
    );
    Ok(Job {
        priority: priority_of(priority).ok_or_else(|| format!("{priority} is not a priority"))?,
        sequence: Some(row.get(StoredColumn::Sequence.at())?),
        created_on: Some(from_micros(row.get(StoredColumn::CreatedOn.at())?)),
        last_modified: time_of(row, StoredColumn::ModifiedOn.at())?,
        holding,
        is_unfit: problem.is_some(),
        raw,
        trashed_on: time_of(row, StoredColumn::TrashedOn.at())?,
        location: match row.get::<_, i64>(StoredColumn::Shelf.at())? {
            0 => Location::Board,
            1 => Location::Trash,
            _ => Location::History,
        },
        book: match book {
            (Some(name), Some(uuid)) => Some(Book { name, uuid }),
            _ => None,
        },
        details,
        attempts: Attempts {
            count: row
                .get::<_, u32>(StoredColumn::Attempts.at())?
                .saturating_add(u32::from(may_be_begun)),
            postponed: row.get(StoredColumn::Postponed.at())?,
            not_before: time_of(row, StoredColumn::NotBefore.at())?,
            failures,
            first_claimed_on: time_of(row, StoredColumn::FirstClaimedOn.at())?,
            audit: audit_of(row, StoredColumn::Audit.at())?,
        },
        size: row.get::<_, i64>(StoredColumn::Size.at())?.unsigned_abs(),
        problem,
        ..Job::new(JobKey::new(&uuid), uuid, name)
    })
}

/// Reads the details if requested and readable; also returns whether they are too large.
fn details(row: &Row<'_>, limit: Limit) -> Result<(Option<Details>, Option<String>), RowProblem> {
    let length = usize::try_from(row.get::<_, i64>(StoredColumn::DetailsLength.at())?)?;
    if limit.is_exceeded(length, 0) {
        return Ok((None, Some(limit.problem(length))));
    }
    let text = match row.get_ref(StoredColumn::Details.at())? {
        ValueRef::Null => return Ok((None, None)),
        other => other.as_str()?,
    };
    if limit.may_be_exceeded(length) && limit.is_exceeded(length, json::weight(text)?) {
        return Ok((None, Some(limit.problem(length))));
    }
    serde_json::from_str::<IgnoredAny>(text)?;
    let stored = Details::Stored(text.as_bytes().into(), decode_details);
    Ok((Some(stored), None))
}

/// Decodes stored details, or only the members with these names.
pub(crate) fn decode_details(text: &[u8], names: Option<&[&str]>) -> Option<Value> {
    json::value_of(text, names, |text| serde_json::from_str(text).ok())
}

/// Reads a text, unless it is long.
fn short<T: FromSql>(row: &Row<'_>, column: StoredColumn) -> Result<T, RowProblem> {
    let value = row.get_ref(column.at())?;
    match length_of(value) {
        ..=Limit::SMALL => Ok(T::column_result(value)?),
        length => Err(format!("the {} has {length} bytes", column.name()).into()),
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
    let owner = match row.get_ref(StoredColumn::Owner.at())? {
        ValueRef::Null => return Ok(None),
        ValueRef::Blob(owner) | ValueRef::Text(owner) => Some(owner),
        _ => None,
    };
    // An unreadable owner has no name.
    let owner = owner.filter(|owner| (1..=Owner::MAX_BYTES).contains(&owner.len()));
    let left = row
        .get::<_, Option<i64>>(StoredColumn::Expires.at())?
        .map(|deadline| deadline.saturating_sub(view.expired_until()));
    if left.is_some_and(|left| left <= 0) {
        return Ok(None);
    }
    Ok(Some(Holding {
        owner: owner.map(|owner| Owner::from_stored(owner.to_vec())),
        end: left.map_or(ClaimEnd::Never, |_| ClaimEnd::Timed),
        expires_in: left.map(|left| Duration::from_millis(left.unsigned_abs())),
        outlives: None,
        claimed_on: time_of(row, StoredColumn::ClaimedOn.at())?,
        fence: row
            .get::<_, Option<i64>>(StoredColumn::Fence.at())?
            .map(|number| Fence(number.to_string())),
    }))
}

pub(crate) fn time_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<DateTime<Utc>>> {
    Ok(row.get::<_, Option<_>>(at)?.map(from_micros))
}

fn raw_of(row: &Row<'_>, detail: Detail, can_be_read: bool) -> rusqlite::Result<Vec<u8>> {
    Ok(match row.get_ref(StoredColumn::Details.at())? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => detail.raw(bytes, can_be_read),
        _ => Vec::new(),
    })
}
