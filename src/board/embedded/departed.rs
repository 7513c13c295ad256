//! Conductors whose registration ended without notice, kept while their claims may last.
//!
//! The first one creates their table: boards without one keep the layout of 0.2.0.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{
    registry,
    store::{clock::Moment, view::View},
};
use crate::{
    board::registration::{LIFE, kept},
    job::{Conductor, Told},
};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS conductor_seen (
        name      TEXT PRIMARY KEY,
        host      TEXT NOT NULL,
        pid       INTEGER NOT NULL,
        since     INTEGER NOT NULL,
        owner     BLOB NOT NULL,
        token     TEXT NOT NULL,
        unsettled TEXT,
        kept_boot INTEGER NOT NULL,
        kept_wall INTEGER NOT NULL
    ) STRICT";

/// Copies a registered conductor whose heartbeat was due at `alive` on the boot clock.
pub(super) fn keep(
    transaction: &Transaction<'_>,
    now: Moment,
    name: &str,
    told: &Told,
    alive: i64,
) -> rusqlite::Result<()> {
    let (until, _) = Moment { boot: alive, ..now }.after(kept(told).saturating_sub(LIFE));
    if until <= now.boot {
        return Ok(());
    }
    transaction.execute_batch(TABLE)?;
    transaction.execute(
        "DELETE FROM conductor_seen WHERE kept_boot <= ?1",
        [now.boot],
    )?;
    transaction.execute(
        "INSERT OR REPLACE INTO conductor_seen
         SELECT name, host, pid, since, owner, token, unsettled, ?2, ?3 FROM conductor
         WHERE name = ?1",
        params![
            name,
            until,
            (now.wall / 1000).saturating_add(until - now.boot)
        ],
    )?;
    Ok(())
}

/// Deletes the conductor of this name, and of this token if there is one.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    name: &str,
    token: Option<&str>,
) -> rusqlite::Result<()> {
    if exist(transaction)? {
        transaction.execute(
            "DELETE FROM conductor_seen WHERE name = ?1 AND token = coalesce(?2, token)",
            params![name, token],
        )?;
    }
    Ok(())
}

/// Converts the deadlines of an earlier boot to the clock of this one.
pub(super) fn follow_reboot(transaction: &Transaction<'_>, now: Moment) -> rusqlite::Result<()> {
    if exist(transaction)? {
        transaction.execute(
            "UPDATE conductor_seen
             SET kept_boot = ?1 + min(max(0, kept_wall - ?2), 1000000000000000)",
            params![now.boot, now.wall / 1000],
        )?;
    }
    Ok(())
}

pub(super) fn read(transaction: &Transaction<'_>, view: &View) -> rusqlite::Result<Vec<Conductor>> {
    if !exist(transaction)? {
        return Ok(Vec::new());
    }
    let until = view.boot_time().map_or("kept_wall", |_| "kept_boot");
    transaction
        .prepare_cached(&format!(
            "SELECT name, host, pid, since, owner, unsettled, {until} - ?1 FROM conductor_seen"
        ))?
        .query_map([view.deadline()], |row| registry::conductor(row, kept))?
        .collect()
}

fn exist(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let found = transaction
        .prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'conductor_seen'")?
        .query_row([], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}
