//! The conductors of an embedded board: rows that live on as long as they are refreshed.

use std::{sync::Arc, time::Duration};

use rusqlite::{OptionalExtension, Row, Transaction, params};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    clock::{Moment, from_micros},
    file::File,
    journal::{self, About},
    store::View,
};
use crate::{
    board::{BoardError, EventKind, Result},
    job::{Conductor, Owner},
};

/// How long a conductor that says nothing counts as alive.
const LIFE: Duration = Duration::from_secs(30);

/// How often a conductor says that it is alive.
const REFRESH: Duration = Duration::from_secs(10);

/// The entry of this process in the registry.
pub(super) struct Registration {
    file: Arc<File>,
    name: String,
    token: String,
    refresh: JoinHandle<()>,
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
        let refresh = tokio::spawn(refresh(Arc::clone(&file), conductor.clone(), token.clone()));
        Ok(Self {
            file,
            name: conductor.name,
            token,
            refresh,
        })
    }

    /// Removes the entry.
    pub(super) async fn leave(self) {
        self.refresh.abort();
        // An entry that cannot be removed is gone half a minute later.
        let _ = self
            .file
            .write(|transaction, now| leave(transaction, now, &self.name, &self.token))
            .await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.refresh.abort();
    }
}

async fn refresh(file: Arc<File>, conductor: Conductor, token: String) {
    loop {
        tokio::time::sleep(REFRESH).await;
        // A refresh that fails is made up for by the next one, or the entry lapses.
        let _ = file
            .write(|transaction, now| enter(transaction, now, &conductor, &token))
            .await;
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
            "INSERT OR REPLACE INTO conductor (name, host, pid, since, owner, token, alive_boot)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            conductor.name,
            conductor.host,
            conductor.pid,
            conductor.since.timestamp_micros(),
            conductor.owner.as_bytes(),
            token,
            now.after(LIFE).0,
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
            "SELECT name, host, pid, since, owner FROM conductor WHERE alive_boot > ?1
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
        unsettled: Vec::new(),
    })
}
