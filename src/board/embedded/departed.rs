//! Conductors whose registration ended without notice, kept while their claims may last.
//!
//! The first one creates their table: boards without one keep the layout of 0.2.0.

use rusqlite::params;

use super::{
    registry,
    store::{
        clock::BoardClock,
        transaction::{BoardView, Change},
    },
};
use crate::{
    board::registration::{LIFE, kept},
    job::{Conductor, ConductorReport},
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

impl Change<'_> {
    /// Copies a registered conductor whose heartbeat was due at `alive` on the boot clock.
    pub(super) fn keep_departed(
        &self,
        name: &str,
        report: &ConductorReport,
        alive: i64,
    ) -> rusqlite::Result<()> {
        let now = self.now;
        let (until, _) = BoardClock { boot: alive, ..now }.after(kept(report).saturating_sub(LIFE));
        if until <= now.boot {
            return Ok(());
        }
        self.make_table(TABLE)?;
        self.run(
            "DELETE FROM conductor_seen WHERE kept_boot <= ?1",
            [now.boot],
        )?;
        let until_wall = (now.wall / 1000).saturating_add(until - now.boot);
        self.run(
            "INSERT OR REPLACE INTO conductor_seen
             SELECT name, host, pid, since, owner, token, unsettled, ?2, ?3 FROM conductor
             WHERE name = ?1",
            params![name, until, until_wall],
        )
        .map(drop)
    }

    pub(super) fn delete_departed(&self, name: &str, token: Option<&str>) -> rusqlite::Result<()> {
        if self.has_table("conductor_seen")? {
            let sql = "DELETE FROM conductor_seen WHERE name = ?1 AND token = coalesce(?2, token)";
            self.run(sql, params![name, token])?;
        }
        Ok(())
    }

    /// Converts the deadlines of an earlier boot to the clock of this one.
    pub(super) fn convert_departed(&self) -> rusqlite::Result<()> {
        if self.has_table("conductor_seen")? {
            self.run(
                "UPDATE conductor_seen
                 SET kept_boot = ?1 + min(max(0, kept_wall - ?2), 1000000000000000)",
                [self.now.boot, self.now.wall / 1000],
            )?;
        }
        Ok(())
    }
}

pub(super) fn departed(view: &BoardView<'_>) -> rusqlite::Result<Vec<Conductor>> {
    if !view.has_table("conductor_seen")? {
        return Ok(Vec::new());
    }
    let until = view.boot_time().map_or("kept_wall", |_| "kept_boot");
    let sql = format!(
        "SELECT name, host, pid, since, owner, unsettled, {until} - ?1 FROM conductor_seen"
    );
    view.all(&sql, [view.deadline()], |row| {
        registry::conductor(row, kept)
    })
}
