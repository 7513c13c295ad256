//! Editing the posting of an unclaimed job.

use rusqlite::{Transaction, params};
use serde_json::Value;

use super::change::{Step, row};
use crate::{
    board::{
        BoardError, EventKind,
        embedded::{
            events::journal::{self, About, How},
            read::record::{RowJob, priority_number, text_of},
            store::clock::Moment,
        },
        wire::{as_json, posting::Limit},
    },
    job::{Edit, JobKey, Remark, Shelf},
};

pub(crate) fn edit(
    transaction: &Transaction<'_>,
    now: Moment,
    (job, edit): (&RowJob, &Edit),
    remark: Option<&Remark>,
    limit: Limit,
) -> Step<()> {
    let key = JobKey::new(job.uuid.clone());
    let details = match details(transaction, job, edit, limit)? {
        Ok(details) => details,
        Err(problem) => return Ok(Err(BoardError::Malformed { key, problem })),
    };
    transaction
        .prepare_cached(
            "UPDATE job SET name = coalesce(?2, name), priority = coalesce(?3, priority),
                            details = coalesce(?4, details), modified_on = ?5, remark = ?6
             WHERE sequence = ?1",
        )?
        .execute(params![
            job.sequence,
            edit.name,
            edit.priority.map(priority_number),
            details,
            now.wall,
            remark.map(as_json),
        ])?;
    let Some(job) = row(transaction, Shelf::Board, &key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    let how = How {
        remark,
        ..How::default()
    };
    journal::write(transaction, now, EventKind::Restored, About::Job(&job, how))?;
    Ok(Ok(()))
}

/// Returns the new details, or `None` if they stay; an error explains why an edit is impossible.
fn details(
    transaction: &Transaction<'_>,
    job: &RowJob,
    edit: &Edit,
    limit: Limit,
) -> rusqlite::Result<Result<Option<String>, String>> {
    let now = match !edit.edits_members() {
        true => None,
        false => transaction
            .prepare_cached("SELECT details FROM job WHERE sequence = ?1")?
            .query_row(params![job.sequence], |row| {
                let text = text_of(row, 0)?;
                Ok(serde_json::from_str::<Value>(&text).ok())
            })?,
    };
    let details = match edit.details(now.as_ref()) {
        Ok(details) => details.map(|details| details.to_string()),
        Err(problem) => return Ok(Err(problem.to_owned())),
    };
    let too_large = details
        .as_ref()
        .map(String::len)
        .filter(|length| limit.is_exceeded(*length, 0));
    Ok(match too_large {
        Some(length) => Err(limit.problem(length)),
        None => Ok(details),
    })
}
