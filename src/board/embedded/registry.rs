//! The conductors of an embedded board: rows that expire unless refreshed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::{
    departed,
    events::journal::{self, About},
    store::{
        clock::{Moment, from_micros},
        file::File,
        view::View,
    },
};
use crate::{
    board::{
        BoardError, EventKind, Result,
        registration::{LIFE, Registered, kept},
        wire::as_json,
    },
    job::{Conductor, Owner, Told},
};

pub(super) struct Entrant {
    file: Arc<File>,
    conductor: Mutex<Conductor>,
    token: String,
}

impl Entrant {
    pub(super) async fn enter(file: Arc<File>, conductor: Conductor) -> Result<Self> {
        let token = Uuid::new_v4().to_string();
        let is_entered = file
            .write_new(|transaction, now| enter(transaction, now, &conductor, &token))
            .await?;
        if !is_entered {
            return Err(BoardError::NameTaken {
                name: conductor.name,
            });
        }
        Ok(Self {
            file,
            conductor: Mutex::new(conductor),
            token,
        })
    }
}

#[async_trait]
impl Registered for Entrant {
    fn set_told(&self, told: &Told) {
        self.conductor.lock().told = told.clone();
    }

    async fn keep(&self) -> Result<()> {
        let conductor = self.conductor.lock().clone();
        let kept = self
            .file
            .write(|transaction, now| enter(transaction, now, &conductor, &self.token));
        kept.await.map(drop)
    }

    async fn remove(&self) -> Result<()> {
        let name = self.conductor.lock().name.clone();
        let removed = self
            .file
            .write(|transaction, now| leave(transaction, now, &name, &self.token));
        removed.await.map(drop)
    }
}

fn enter(
    transaction: &Transaction<'_>,
    now: Moment,
    conductor: &Conductor,
    token: &str,
) -> rusqlite::Result<bool> {
    // Expired entries are already gone: every transaction begins by removing them.
    let present: Option<String> = transaction
        .prepare_cached("SELECT token FROM conductor WHERE name = ?1")?
        .query_row(params![conductor.name], |row| row.get(0))
        .optional()?;
    match present {
        Some(other) if other != token => return Ok(false),
        Some(_) => {}
        None => {
            departed::forget(transaction, &conductor.name, None)?;
            let about = About::Conductor(&conductor.name);
            journal::write(transaction, now, EventKind::ConductorJoined, about)?;
        }
    }
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO conductor
             (name, host, pid, since, owner, token, alive_boot, unsettled)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            conductor.name,
            conductor.host,
            conductor.pid,
            conductor.since.timestamp_micros(),
            conductor.owner.as_bytes(),
            token,
            now.after(LIFE).0,
            as_json(&conductor.told),
        ])?;
    Ok(true)
}

fn leave(
    transaction: &Transaction<'_>,
    now: Moment,
    name: &str,
    token: &str,
) -> rusqlite::Result<()> {
    let removed = transaction
        .prepare_cached("DELETE FROM conductor WHERE name = ?1 AND token = ?2")?
        .execute(params![name, token])?;
    if removed > 0 {
        let about = About::Conductor(name);
        journal::write(transaction, now, EventKind::ConductorLeft, about)?;
    }
    departed::forget(transaction, name, Some(token))
}

pub(super) fn conductors(
    transaction: &Transaction<'_>,
    view: &View,
) -> rusqlite::Result<Vec<Conductor>> {
    // No conductor survives a reboot: its last heartbeat came before this boot.
    let alive = view.boot_time().map_or("0", |_| "alive_boot");
    let registered = transaction
        .prepare_cached(&format!(
            "SELECT name, host, pid, since, owner, unsettled, {alive} - ?1 FROM conductor"
        ))?
        .query_map(params![view.now.boot], |row| conductor(row, |_| LIFE))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut conductors = BTreeMap::new();
    // A registered conductor replaces a departed one of its name.
    for it in departed::read(transaction, view)?
        .into_iter()
        .chain(registered)
    {
        conductors.insert(it.name.clone(), it);
    }
    let listed = conductors.into_values();
    Ok(listed
        .filter(|it| it.silence < Some(kept(&it.told)))
        .collect())
}

/// Reads a row whose last column is the rest of its life in milliseconds.
pub(super) fn conductor(
    row: &Row<'_>,
    life: impl Fn(&Told) -> Duration,
) -> rusqlite::Result<Conductor> {
    let told = read_told(row.get(5)?);
    let left: i64 = row.get(6)?;
    let (life, distance) = (life(&told), Duration::from_millis(left.unsigned_abs()));
    let silence = match left {
        1.. => life.saturating_sub(distance),
        _ => life.saturating_add(distance),
    };
    Ok(Conductor {
        name: row.get(0)?,
        host: row.get(1)?,
        pid: row.get(2)?,
        since: from_micros(row.get(3)?),
        owner: Owner::from_stored(row.get::<_, Vec<u8>>(4)?),
        silence: Some(silence),
        has_left: silence >= LIFE,
        told,
    })
}

/// Reads the status of a conductor; 0.1.0 stored none.
pub(super) fn read_told(text: Option<String>) -> Told {
    text.map(|text| Told::read(text.as_bytes()))
        .unwrap_or_default()
}
