//! The conductors of an embedded board: rows that expire unless refreshed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use rusqlite::{OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use super::{
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
        registration::{LIFE, Registered},
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
    Ok(())
}

pub(super) fn conductors(
    transaction: &Transaction<'_>,
    view: &View,
) -> rusqlite::Result<Vec<Conductor>> {
    // No conductor survives a reboot.
    let Some(now) = view.boot_time() else {
        return Ok(Vec::new());
    };
    transaction
        .prepare_cached(
            "SELECT name, host, pid, since, owner, unsettled, alive_boot - ?1 FROM conductor
             WHERE alive_boot > ?1
             ORDER BY name",
        )?
        .query_map(params![now], conductor)?
        .collect()
}

fn conductor(row: &Row<'_>) -> rusqlite::Result<Conductor> {
    let left = row.get::<_, i64>(6)?.unsigned_abs();
    Ok(Conductor {
        name: row.get(0)?,
        host: row.get(1)?,
        pid: row.get(2)?,
        since: from_micros(row.get(3)?),
        owner: Owner::from_stored(row.get::<_, Vec<u8>>(4)?),
        silence: Some(LIFE.saturating_sub(Duration::from_millis(left))),
        told: (row.get::<_, Option<String>>(5)?)
            .map(|told| Told::read(told.as_bytes()))
            .unwrap_or_default(),
    })
}
