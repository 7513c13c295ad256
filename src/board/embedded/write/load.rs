//! Posting a job of another board with its state.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension, Transaction, params};

use super::change::{Step, row, take_posted};
use crate::{
    board::{
        BoardError, EventKind, Posted,
        embedded::{
            events::journal::{self, About, How},
            read::record::{priority_number, shelf_number},
            store::clock::Moment,
        },
        wire::as_json,
    },
    job::{Claimant, Draft, Former, JobKey, Shelf},
};

/// With a claimant, the same step claims the job without counting an attempt.
pub(crate) fn load(
    transaction: &Transaction<'_>,
    now: Moment,
    (draft, former): (&Draft, &Former),
    claimant: Option<&Claimant>,
) -> Step<Posted> {
    if former.malformed.is_some() {
        return Ok(Err(BoardError::Unsupported {
            board: "an embedded board",
            operation: "store an unreadable record",
            hint: None,
        }));
    }
    let uuid = draft.uuid.to_string();
    let there: Option<i64> = transaction
        .prepare_cached("SELECT shelf FROM job WHERE uuid = ?1")?
        .query_row(params![uuid], |row| row.get(0))
        .optional()?;
    if let Some(shelf) = there {
        let place = if shelf == 0 { "board" } else { "trash" };
        return Ok(Err(BoardError::Exists { uuid, place }));
    }
    insert(transaction, now, draft, former)?;
    let sequence = transaction.last_insert_rowid();
    let mut fence = None;
    if let Some(by) = claimant {
        fence = Some(take_posted(transaction, now, sequence, by, false)?);
        // The transfer is not the first claim of the job.
        let first = former.history.first_claimed_on;
        transaction
            .prepare_cached("UPDATE job SET first_claimed_on = ?2 WHERE sequence = ?1")?
            .execute(params![sequence, first.map(|time| time.timestamp_micros())])?;
    }
    let key = JobKey::new(uuid);
    if former.shelf == Shelf::Trash
        && let Some(job) = row(transaction, Shelf::Trash, &key)?
    {
        let about = About::Job(&job, How::default());
        journal::write(transaction, now, EventKind::Trashed, about)?;
    }
    Ok(Ok(Posted {
        key,
        sequence,
        fence,
    }))
}

fn insert(
    transaction: &Transaction<'_>,
    now: Moment,
    draft: &Draft,
    former: &Former,
) -> rusqlite::Result<()> {
    let micros = |time: &DateTime<Utc>| time.timestamp_micros();
    let (book_name, book_uuid) = (draft.book.as_ref())
        .map(|book| (&book.name, &book.uuid))
        .unzip();
    let details = match std::str::from_utf8(&former.raw) {
        Ok(raw) if !raw.is_empty() => raw.to_owned(),
        _ => draft.details.value().to_string(),
    };
    let history = &former.history;
    let failures = (!history.failures.is_empty()).then(|| as_json(&history.failures));
    let trashed_on = former.trashed_on.as_ref().map(micros);
    transaction
        .prepare_cached(
            "INSERT INTO job (sequence, uuid, shelf, name, priority, created_on, book_name, book_uuid,
                              details, attempts, postponed, not_before, failures, trashed_on,
                              first_claimed_on, remark)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute(params![
            number(transaction, former)?,
            draft.uuid.to_string(),
            shelf_number(former.shelf),
            draft.name,
            priority_number(draft.priority),
            former.created_on.as_ref().map_or(now.wall, micros),
            book_name,
            book_uuid,
            details,
            history.attempts,
            history.postponed,
            history.not_before.as_ref().map(micros),
            failures,
            trashed_on.filter(|_| former.shelf == Shelf::Trash),
            history.first_claimed_on.as_ref().map(micros),
            history.remark.as_ref().map(as_json),
        ])?;
    Ok(())
}

/// `None` if it gets the next number: subscribers detect a new job by a number greater than all before.
fn number(transaction: &Transaction<'_>, former: &Former) -> rusqlite::Result<Option<i64>> {
    let free = match former.shelf {
        Shelf::Trash => "SELECT ?1 WHERE ?1 NOT IN (SELECT sequence FROM job)",
        Shelf::Board | Shelf::Past => {
            "SELECT ?1 WHERE ?1 > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'job')"
        }
    };
    let number = transaction
        .prepare_cached(free)?
        .query_row(params![former.sequence], |row| row.get(0));
    Ok(number.optional()?.flatten())
}
