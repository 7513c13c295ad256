//! Pauses: a row for each glob.

use rusqlite::params;

use super::store::transaction::{BoardView, Change};
use crate::{
    board::{EventKind, wire::as_json},
    job::{Pause, Remark},
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
}

pub(super) fn pauses(view: &BoardView<'_>) -> rusqlite::Result<Vec<Pause>> {
    let read: Vec<_> = view.all("SELECT pause FROM pause ORDER BY names", [], |row| {
        Ok(serde_json::from_str(&row.get::<_, String>(0)?).ok())
    })?;
    Ok(read.into_iter().flatten().collect())
}
