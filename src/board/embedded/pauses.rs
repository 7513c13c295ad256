//! Pauses and move records: a row each.

use rusqlite::params;

use super::store::transaction::{BoardView, Change};
use crate::{
    board::{EventKind, wire::as_json},
    job::{MOST_RECORDS, MoveRecord, Pause, Remark},
};

impl Change<'_> {
    pub(super) fn pause(&self, pause: &Pause) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO pause (names, pause) VALUES (?1, ?2)";
        self.run(sql, params![pause.names, as_json(pause)])?;
        self.log_names(EventKind::Paused, &pause.names, &pause.remark)
    }

    pub(super) fn resume(&self, names: &str, remark: &Remark) -> rusqlite::Result<bool> {
        let is_removed = self.run("DELETE FROM pause WHERE names = ?1", [names])? > 0;
        if is_removed {
            self.log_names(EventKind::Resumed, names, remark)?;
        }
        Ok(is_removed)
    }

    /// The first move creates the table: boards without one keep the layout of 0.2.0.
    pub(super) fn put_move(&self, record: &MoveRecord) -> rusqlite::Result<()> {
        self.make_table(
            "CREATE TABLE IF NOT EXISTS moves (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
        )?;
        let sql = "INSERT OR REPLACE INTO moves (key, value) VALUES (?1, ?2)";
        self.run(sql, params![record.key(), record.value()])
            .map(drop)
    }

    pub(super) fn delete_moves(&self, records: &[MoveRecord]) -> rusqlite::Result<()> {
        if self.has_table("moves")? {
            for record in records {
                self.run("DELETE FROM moves WHERE key = ?1", [record.key()])?;
            }
        }
        Ok(())
    }
}

pub(super) fn pauses(view: &BoardView<'_>) -> rusqlite::Result<Vec<Pause>> {
    let read: Vec<_> = view.all("SELECT pause FROM pause ORDER BY names", [], |row| {
        Ok(serde_json::from_str(&row.get::<_, String>(0)?).ok())
    })?;
    Ok(read.into_iter().flatten().collect())
}

pub(super) fn moves(view: &BoardView<'_>) -> rusqlite::Result<Vec<MoveRecord>> {
    if !view.has_table("moves")? {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(MOST_RECORDS).unwrap_or(i64::MAX);
    let records: Vec<_> = view.all("SELECT key, value FROM moves LIMIT ?1", [limit], |row| {
        Ok(MoveRecord::read(
            &row.get::<_, String>(0)?,
            &row.get::<_, String>(1)?,
        ))
    })?;
    Ok(records.into_iter().flatten().collect())
}
