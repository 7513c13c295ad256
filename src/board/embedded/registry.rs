//! The conductors of an embedded board: rows that expire unless refreshed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use rusqlite::{Row, params, types::ValueRef};
use uuid::Uuid;

use super::store::{
    DEPARTED,
    clock::{BoardClock, from_micros},
    file::BoardFile,
    texts::{bytes_or_none, text_of},
    transaction::{BoardView, Change},
};
use crate::{
    board::{
        BoardError, EventKind, Result,
        own_entry::{ConductorEntry, LIFE, MAX_CONDUCTORS, kept},
    },
    job::{Conductor, ConductorReport, Owner},
};

pub(super) struct ConductorRow {
    file: Arc<BoardFile>,
    conductor: Conductor,
    token: String,
}

impl ConductorRow {
    pub(super) async fn enter(file: Arc<BoardFile>, conductor: Conductor) -> Result<Self> {
        let token = Uuid::new_v4().to_string();
        let entered = file.write_new(|change| change.put_conductor(&conductor, &token));
        if !entered.await? {
            let name = conductor.name;
            return Err(BoardError::NameTaken { name });
        }
        Ok(Self {
            file,
            conductor,
            token,
        })
    }
}

#[async_trait]
impl ConductorEntry for ConductorRow {
    async fn publish(&self, report: &ConductorReport) -> Result<()> {
        let conductor = Conductor {
            report: report.clone(),
            ..self.conductor.clone()
        };
        let kept = self
            .file
            .write(|change| change.put_conductor(&conductor, &self.token));
        kept.await.map(drop)
    }

    async fn remove(&self) -> Result<()> {
        let (name, token) = (&self.conductor.name, &self.token);
        let removed = self
            .file
            .write(|change| change.delete_conductor(name, token));
        removed.await.map(drop)
    }
}

impl Change<'_> {
    /// Writes the row of a conductor; false if another process has the name.
    fn put_conductor(&self, conductor: &Conductor, token: &str) -> rusqlite::Result<bool> {
        // Expired entries are already gone: every transaction begins by removing them.
        let sql = "SELECT token FROM conductor WHERE name = ?1";
        match self.first(sql, [&conductor.name], |row| text_of(row, 0))? {
            Some(other) if other != token => return Ok(false),
            Some(_) => {}
            None => {
                self.delete_departed(&conductor.name, None)?;
                self.log_conductor(EventKind::ConductorJoined, &conductor.name)?;
            }
        }
        self.run(
            "INSERT OR REPLACE INTO conductor
             (name, host, pid, since, owner, token, alive_boot, unsettled)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                conductor.name,
                conductor.host,
                conductor.pid,
                conductor.since.timestamp_micros(),
                conductor.owner.as_bytes(),
                token,
                self.now.after(LIFE).0,
                conductor.report.write(),
            ],
        )?;
        Ok(true)
    }

    fn delete_conductor(&self, name: &str, token: &str) -> rusqlite::Result<()> {
        let sql = "DELETE FROM conductor WHERE name = ?1 AND token = ?2";
        if self.run(sql, [name, token])? > 0 {
            self.log_conductor(EventKind::ConductorLeft, name)?;
        }
        self.delete_departed(name, Some(token))
    }
}

/// Returns at most [`MAX_CONDUCTORS`], and the number of registrations.
pub(super) fn conductors(view: &BoardView<'_>) -> rusqlite::Result<(Vec<Conductor>, usize)> {
    // No conductor survives a reboot: its last heartbeat came before this boot.
    let alive = view.boot_time().map_or("0", |_| "alive_boot");
    let registered = rows(view, "conductor", alive, view.now.boot, |_| LIFE)?;
    let count = view.count("conductor")?;
    // A registered conductor replaces a departed one of its name.
    let all = departed(view)?.into_iter().chain(registered);
    let conductors: BTreeMap<_, _> = all.map(|it| (it.name.clone(), it)).collect();
    let listed = conductors.into_values();
    let listed = listed.filter(|it| it.silence < Some(kept(&it.report)));
    Ok((listed.take(MAX_CONDUCTORS).collect(), count))
}

/// Reads a table of conductors, whose column `until` is the time of their expiry in milliseconds.
fn rows(
    view: &BoardView<'_>,
    table: &str,
    until: &str,
    now: i64,
    life: fn(&ConductorReport) -> Duration,
) -> rusqlite::Result<Vec<Conductor>> {
    let texts = ["name", "host", "owner", "unsettled"];
    let [name, host, owner, unsettled] = texts.map(|column| view.bounded(column));
    let sql = format!(
        "SELECT {name}, {host}, pid, since, {owner}, {unsettled}, {until} - ?1 FROM {table}
         LIMIT {MAX_CONDUCTORS}"
    );
    view.all(&sql, [now], |row| conductor(row, life))
}

fn conductor(
    row: &Row<'_>,
    life: impl Fn(&ConductorReport) -> Duration,
) -> rusqlite::Result<Conductor> {
    let report = read_status(row, 5)?;
    let left: i64 = row.get(6)?;
    let (life, distance) = (life(&report), Duration::from_millis(left.unsigned_abs()));
    let silence = match left {
        1.. => life.saturating_sub(distance),
        _ => life.saturating_add(distance),
    };
    Ok(Conductor {
        name: text_of(row, 0)?,
        host: text_of(row, 1)?,
        pid: row.get(2)?,
        since: from_micros(row.get(3)?),
        owner: Owner::from_stored(bytes_or_none(row, 4)?.unwrap_or_default()),
        silence: Some(silence),
        has_left: silence >= LIFE,
        report,
    })
}

/// Reads the status of a conductor; 0.1.0 stored none.
pub(super) fn read_status(row: &Row<'_>, at: usize) -> rusqlite::Result<ConductorReport> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(text) => ConductorReport::read(text),
        _ => ConductorReport::default(),
    })
}

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
        self.make_table(DEPARTED)?;
        let expired = "DELETE FROM conductor_seen WHERE kept_boot <= ?1";
        self.run(expired, [now.boot])?;
        let until_wall = now.wall_millis().saturating_add(until - now.boot);
        self.run(
            "INSERT OR REPLACE INTO conductor_seen
             SELECT name, host, pid, since, owner, token, unsettled, ?2, ?3 FROM conductor
             WHERE name = ?1",
            params![name, until, until_wall],
        )
        .map(drop)
    }

    fn delete_departed(&self, name: &str, token: Option<&str>) -> rusqlite::Result<()> {
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
                [self.now.boot, self.now.wall_millis()],
            )?;
        }
        Ok(())
    }
}

fn departed(view: &BoardView<'_>) -> rusqlite::Result<Vec<Conductor>> {
    if !view.has_table("conductor_seen")? {
        return Ok(Vec::new());
    }
    let until = view.boot_time().map_or("kept_wall", |_| "kept_boot");
    rows(view, "conductor_seen", until, view.expired_until(), kept)
}
