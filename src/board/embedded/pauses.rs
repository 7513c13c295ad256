//! Pauses and move records: a row each.

use rusqlite::params;

use super::store::{
    MOVES,
    transaction::{BoardView, Change},
};
use crate::{
    board::EventKind,
    job::{
        AuditEntry, MAX_PAUSES, MAX_RECORD_BYTES, MAX_RECORDS, MAX_TEXT_BYTES, MoveRecord, Pause,
    },
};

impl Change<'_> {
    pub(super) fn pause(&self, pause: &Pause) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO pause (names, pause) VALUES (?1, ?2)";
        self.run(sql, params![pause.names, pause.write()])?;
        self.log_names(EventKind::Paused, &pause.names, &pause.audit)
    }

    pub(super) fn resume(&self, names: &str, audit: &AuditEntry) -> rusqlite::Result<bool> {
        let is_removed = self.run("DELETE FROM pause WHERE names = ?1", [names])? > 0;
        if is_removed {
            self.log_names(EventKind::Resumed, names, audit)?;
        }
        Ok(is_removed)
    }

    pub(super) fn put_move(&self, record: &MoveRecord) -> rusqlite::Result<()> {
        self.make_table(MOVES)?;
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
    let count = view.count("pause")?;
    let mut read: Vec<Pause> = view.all(
        &format!(
            "SELECT CASE WHEN octet_length(pause) <= {MAX_RECORD_BYTES} THEN pause END, names
             FROM pause NOT INDEXED WHERE octet_length(names) <= {MAX_TEXT_BYTES}
             LIMIT {MAX_PAUSES}"
        ),
        [],
        |row| {
            let pause = row.get_ref(0)?.as_bytes().unwrap_or_default();
            Ok(Pause::read(row.get_ref(1)?.as_bytes()?, pause))
        },
    )?;
    // The index would load long names.
    read.sort_by(|a, b| a.names.cmp(&b.names));
    Ok(Pause::bounded(read, count))
}

pub(super) fn moves(view: &BoardView<'_>) -> rusqlite::Result<Vec<MoveRecord>> {
    if !view.has_table("moves")? {
        return Ok(Vec::new());
    }
    let records: Vec<_> = view.all(
        &format!(
            "SELECT key, value FROM moves
             WHERE octet_length(key) + octet_length(value) <= {} LIMIT {MAX_RECORDS}",
            MoveRecord::MAX_BYTES
        ),
        [],
        |row| {
            let (key, value) = (row.get_ref(0)?.as_str(), row.get_ref(1)?.as_str());
            let text = key.ok().zip(value.ok());
            Ok(text.and_then(|(key, value)| MoveRecord::read(key, value)))
        },
    )?;
    Ok(records.into_iter().flatten().collect())
}
