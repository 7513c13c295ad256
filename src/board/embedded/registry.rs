//! The conductors of an embedded board: rows that live on as long as they are refreshed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{OptionalExtension, Row, Transaction, params};
use tokio::task::JoinHandle;
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
    board::{BoardError, EventKind, Result},
    job::{Conductor, Owner, Unsettled},
};

/// How long a conductor that says nothing counts as alive.
const LIFE: Duration = Duration::from_secs(30);

/// How often a conductor says that it is alive.
const REFRESH: Duration = Duration::from_secs(10);

/// The entry of this process in the registry.
pub(super) struct Registration {
    place: Place,
    refresh: JoinHandle<()>,
}

/// Where somebody is registered, and what is to be stored there.
#[derive(Clone)]
pub(super) struct Place {
    file: Arc<File>,
    conductor: Arc<Mutex<Conductor>>,
    token: String,
}

impl Registration {
    /// Enters a conductor, unless another one is alive under its name.
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
        let place = Place {
            file,
            conductor: Arc::new(Mutex::new(conductor)),
            token,
        };
        let refresh = tokio::spawn(place.clone().refresh());
        Ok(Self { place, refresh })
    }

    /// Returns where it is.
    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Removes the entry.
    pub(super) async fn leave(self) {
        self.refresh.abort();
        let Place { file, token, .. } = &self.place;
        let name = self.place.conductor().name;
        // An entry that cannot be removed is gone half a minute later.
        let _ = file
            .write(|transaction, now| leave(transaction, now, &name, token))
            .await;
    }
}

impl Place {
    /// Says which jobs the conductor cannot settle; what fails now is made up for by a refresh.
    pub(super) async fn tell_unsettled(&self, jobs: &[Unsettled]) -> Result<()> {
        let conductor = self.conductor.lock();
        conductor.unwrap_or_else(PoisonError::into_inner).unsettled = jobs.to_vec();
        self.keep().await
    }

    fn conductor(&self) -> Conductor {
        let conductor = self.conductor.lock();
        conductor.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn keep(&self) -> Result<()> {
        let conductor = self.conductor();
        let kept = self
            .file
            .write(|transaction, now| enter(transaction, now, &conductor, &self.token));
        kept.await.map(drop)
    }

    async fn refresh(self) {
        loop {
            tokio::time::sleep(REFRESH).await;
            // One that fails is made up for by the next one, or the entry lapses.
            let _ = self.keep().await;
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

fn enter(
    transaction: &Transaction<'_>,
    now: Moment,
    conductor: &Conductor,
    token: &str,
) -> rusqlite::Result<bool> {
    // Those that died are already gone: every transaction begins with what has lapsed.
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
            (!conductor.unsettled.is_empty())
                .then(|| serde_json::json!(conductor.unsettled).to_string()),
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

/// Returns the conductors that are alive.
pub(super) fn conductors(
    transaction: &Transaction<'_>,
    view: &View,
) -> rusqlite::Result<Vec<Conductor>> {
    // Nothing of an earlier boot is alive.
    let Some(now) = view.boot_time() else {
        return Ok(Vec::new());
    };
    transaction
        .prepare_cached(
            "SELECT name, host, pid, since, owner, unsettled FROM conductor WHERE alive_boot > ?1
             ORDER BY name",
        )?
        .query_map(params![now], conductor)?
        .collect()
}

fn conductor(row: &Row<'_>) -> rusqlite::Result<Conductor> {
    Ok(Conductor {
        name: row.get(0)?,
        host: row.get(1)?,
        pid: row.get(2)?,
        since: from_micros(row.get(3)?),
        owner: Owner::from_stored(row.get::<_, Vec<u8>>(4)?),
        // What cannot be read says nothing.
        unsettled: (row.get::<_, Option<String>>(5)?)
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default(),
    })
}
