//! Pauses: a row for each glob.

use rusqlite::{Transaction, params};

use super::{
    events::journal::{self, About},
    store::clock::Moment,
};
use crate::{
    board::{EventKind, wire::as_json},
    job::{Pause, Remark},
};

pub(super) fn pause(
    transaction: &Transaction<'_>,
    now: Moment,
    pause: &Pause,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO pause (names, pause) VALUES (?1, ?2)")?
        .execute(params![pause.names, as_json(pause)])?;
    let about = About::Names(&pause.names, &pause.remark);
    journal::write(transaction, now, EventKind::Paused, about)
}

pub(super) fn resume(
    transaction: &Transaction<'_>,
    now: Moment,
    names: &str,
    remark: &Remark,
) -> rusqlite::Result<bool> {
    let removed = transaction
        .prepare_cached("DELETE FROM pause WHERE names = ?1")?
        .execute(params![names])?;
    if removed > 0 {
        let about = About::Names(names, remark);
        journal::write(transaction, now, EventKind::Resumed, about)?;
    }
    Ok(removed > 0)
}

pub(super) fn pauses(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<Pause>> {
    let mut select = transaction.prepare_cached("SELECT pause FROM pause ORDER BY names")?;
    let texts = select.query_map([], |row| row.get::<_, String>(0))?;
    let texts: Vec<_> = texts.collect::<rusqlite::Result<_>>()?;
    let read = texts.iter().map(|text| serde_json::from_str(text));
    Ok(read.filter_map(std::result::Result::ok).collect())
}
