//! Move records, in a table that the first move creates: boards without one keep the layout of 0.2.0.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::job::{MOST_RECORDS, MoveRecord};

/// Stores a record; replaces an older one of the same key.
pub(super) fn keep(transaction: &Transaction<'_>, record: &MoveRecord) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS moves (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    )?;
    transaction
        .prepare_cached("INSERT OR REPLACE INTO moves (key, value) VALUES (?1, ?2)")?
        .execute(params![record.key(), record.value()])?;
    Ok(())
}

pub(super) fn records(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<MoveRecord>> {
    if !exist(transaction)? {
        return Ok(Vec::new());
    }
    let mut select = transaction.prepare_cached("SELECT key, value FROM moves LIMIT ?1")?;
    let limit = i64::try_from(MOST_RECORDS).unwrap_or(i64::MAX);
    let texts = select.query_map(params![limit], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let texts: Vec<_> = texts.collect::<rusqlite::Result<_>>()?;
    let read = texts
        .iter()
        .map(|(key, value)| MoveRecord::read(key, value));
    Ok(read.flatten().collect())
}

pub(super) fn delete(
    transaction: &Transaction<'_>,
    records: &[MoveRecord],
) -> rusqlite::Result<()> {
    if !exist(transaction)? {
        return Ok(());
    }
    let mut delete = transaction.prepare_cached("DELETE FROM moves WHERE key = ?1")?;
    for record in records {
        delete.execute(params![record.key()])?;
    }
    Ok(())
}

fn exist(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let found = transaction
        .prepare_cached("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'moves'")?
        .query_row([], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}
