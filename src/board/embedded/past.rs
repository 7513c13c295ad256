//! The history of an embedded board.

use std::collections::HashMap;

use rusqlite::{Row, Transaction, params};

use super::{
    read::record::{entry, malformed, text_of},
    store::{
        clock::{Moment, from_micros},
        view::View,
    },
};
use crate::{
    board::Detail,
    job::{Departure, End, Entry, Owner, shortened},
};

/// How many old entries are dropped together.
const AT_ONCE: i64 = 64;

/// Adds a job to the history and drops old entries.
pub(super) fn keep(
    transaction: &Transaction<'_>,
    now: Moment,
    sequence: i64,
    (departure, has_succeeded): (Departure, bool),
    history: u32,
) -> rusqlite::Result<()> {
    if history == 0 {
        return Ok(());
    }
    transaction
        .prepare_cached(
            "INSERT INTO past (ended_on, outcome, succeeded, sequence, uuid, name, priority,
                               created_on, book_name, book_uuid, claimed_on, attempts, postponed,
                               failures, first_claimed_on, remark)
             SELECT ?2, ?3, ?4, sequence, uuid, name, priority, created_on, book_name, book_uuid,
                    claimed_on, min(attempts + ahead, 4294967295), postponed, failures,
                    first_claimed_on, remark
             FROM job WHERE sequence = ?1",
        )?
        .execute(params![sequence, now.wall, departure.name(), has_succeeded])?;
    let last = transaction.last_insert_rowid();
    if last % AT_ONCE == 0 {
        transaction
            .prepare_cached("DELETE FROM past WHERE id <= ?1")?
            .execute(params![last - i64::from(history)])?;
    }
    Ok(())
}

/// Returns the history, latest end first.
pub(super) fn entries(
    transaction: &Transaction<'_>,
    view: &View,
    history: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let owners = owners(transaction)?;
    // First the columns of an unclaimed record.
    transaction
        .prepare_cached(
            "SELECT sequence, uuid, 2, name, priority, created_on, NULL, book_name, book_uuid, NULL,
                    NULL, NULL, NULL, attempts, postponed, NULL, failures, NULL, 0, NULL, 0, 0,
                    first_claimed_on, remark, ended_on, outcome, succeeded, claimed_on
             FROM past ORDER BY id DESC LIMIT ?1",
        )?
        .query_map(params![history], |row| read(row, view, &owners))?
        .collect()
}

/// Returns the owners of recently ended jobs by number, from the journal.
fn owners(transaction: &Transaction<'_>) -> rusqlite::Result<HashMap<i64, Owner>> {
    transaction
        .prepare_cached(
            "SELECT sequence, owner FROM event
             WHERE kind = 'consumed' AND sequence IS NOT NULL AND owner IS NOT NULL",
        )?
        .query_map([], |row| {
            let owner: Vec<u8> = row.get(1)?;
            Ok((row.get(0)?, Owner::from_stored(owner)))
        })?
        .collect()
}

fn read(row: &Row<'_>, view: &View, owners: &HashMap<i64, Owner>) -> rusqlite::Result<Entry> {
    let outcome = text_of(row, 25)?;
    let Ok(departure) = outcome.parse() else {
        return malformed(
            row,
            (view, Detail::Brief),
            &format!("the job has the unknown outcome {:?}", shortened(&outcome)),
        );
    };
    let mut entry = entry(row, view, Detail::Brief)?;
    if let Entry::Job(job) = &mut entry {
        job.ended = Some(End {
            on: from_micros(row.get(24)?),
            departure,
            owner: owners.get(&row.get(0)?).cloned(),
            claimed_on: row.get::<_, Option<i64>>(27)?.map(from_micros),
            has_succeeded: row.get(26)?,
        });
    }
    Ok(entry)
}
