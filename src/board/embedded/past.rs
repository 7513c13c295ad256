//! What is remembered of the jobs that left the board.

use rusqlite::{Row, Transaction, params};
use serde::de::Error as _;

use super::{
    read::record::{failures_of, remark_of},
    store::clock::from_micros,
};
use crate::{
    board::wire::past::{PastJob, entry},
    job::{Entry, History},
};

/// How many that are too old go at once.
const AT_ONCE: i64 = 64;

/// Keeps what is to be remembered of a job that goes, and drops what has been kept for too long.
pub(super) fn keep(
    transaction: &Transaction<'_>,
    sequence: i64,
    past: Option<PastJob>,
    history: u32,
) -> rusqlite::Result<()> {
    let Some(past) = past.filter(|_| history > 0) else {
        return Ok(());
    };
    transaction
        .prepare_cached(
            "INSERT INTO past (record, attempts, postponed, failures, first_claimed_on, remark)
             SELECT ?2, min(attempts + ahead, 4294967295), postponed, failures, first_claimed_on, remark
             FROM job WHERE sequence = ?1",
        )?
        .execute(params![sequence, past.write()])?;
    let last = transaction.last_insert_rowid();
    if last % AT_ONCE == 0 {
        transaction
            .prepare_cached("DELETE FROM past WHERE id <= ?1")?
            .execute(params![last - i64::from(history)])?;
    }
    Ok(())
}

/// Returns what is remembered, the latest end first.
pub(super) fn entries(transaction: &Transaction<'_>, history: u32) -> rusqlite::Result<Vec<Entry>> {
    transaction
        .prepare_cached(
            "SELECT id, record, attempts, postponed, failures, first_claimed_on, remark
             FROM past ORDER BY id DESC LIMIT ?1",
        )?
        .query_map(params![history], |row| {
            let id: i64 = row.get(0)?;
            let id = id.to_string();
            // A row that somebody has spoilt hides no other.
            Ok(read(row, &id).unwrap_or_else(|problem| {
                let problem = serde_json::Error::custom(problem);
                entry(&id, Err(problem), History::default(), None)
            }))
        })?
        .collect()
}

fn read(row: &Row<'_>, id: &str) -> rusqlite::Result<Entry> {
    let (failures, problem) = failures_of(row, 4)?;
    let past = History {
        attempts: row.get(2)?,
        postponed: row.get(3)?,
        not_before: None,
        failures,
        first_claimed_on: row.get::<_, Option<i64>>(5)?.map(from_micros),
        remark: remark_of(row, 6)?,
    };
    let record: String = row.get(1)?;
    Ok(entry(id, serde_json::from_str(&record), past, problem))
}
