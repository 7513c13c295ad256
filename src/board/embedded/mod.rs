//! The embedded board: one SQLite file that many processes of one machine share, and no server.

mod change;
mod clock;
mod journal;
mod lapse;
mod look;
mod record;
mod registry;
mod store;
mod watch;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use rusqlite::Transaction;

pub(crate) use self::store::Durability;
use self::{
    clock::Moment,
    registry::Registration,
    store::{OpenError, Store, View, is_busy, is_denied},
};
use crate::{
    board::{
        Board, BoardError, Capabilities, ClaimRules, Event, Health, JobRef, Posted, Query, Result,
        Settled,
    },
    job::{Claim, Claimant, Claimed, Conductor, Draft, Entry, JobKey, Settlement, Shelf},
};

/// How an embedded board is to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    /// How long to wait for other processes before giving up.
    pub(crate) patience: Duration,
}

/// A board in a file.
pub(crate) struct Embedded {
    file: Arc<File>,
    registration: Mutex<Option<Registration>>,
}

/// The file, opened when it is first needed, and created when something is first posted.
struct File {
    name: String,
    options: Options,
    store: Mutex<Option<Store>>,
}

impl Embedded {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            file: Arc::new(File {
                name: format!("sqlite:{}", options.path.display()),
                options,
                store: Mutex::new(None),
            }),
            registration: Mutex::new(None),
        }
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Embedded").field(&self.file.name).finish()
    }
}

impl File {
    fn path(&self) -> &Path {
        &self.options.path
    }

    fn store(&self) -> MutexGuard<'_, Option<Store>> {
        // A panic while the lock was held left at worst a transaction that is rolled back.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the board; `None` if there is none yet.
    async fn read<T>(
        &self,
        mut look: impl FnMut(&Transaction<'_>, &View) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.patiently("read", || {
            let mut store = self.store();
            if store.is_none() {
                *store = Store::open(self.path(), self.options.durability)?;
            }
            store
                .as_mut()
                .map(|store| store.read(&mut look))
                .transpose()
                .map_err(OpenError::Sqlite)
        })
        .await
    }

    /// Changes the board in one transaction; `None` if there is none yet.
    async fn write<T>(
        &self,
        mut change: impl FnMut(&Transaction<'_>, Moment) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.patiently("write to", || {
            let mut store = self.store();
            if store.is_none() {
                *store = Store::open(self.path(), self.options.durability)?;
            }
            store
                .as_mut()
                .map(|store| store.write(&mut change))
                .transpose()
                .map_err(OpenError::Sqlite)
        })
        .await
    }

    /// Changes the board in one transaction, and creates it if there is none yet.
    async fn write_new<T>(
        &self,
        mut change: impl FnMut(&Transaction<'_>, Moment) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.patiently("write to", || {
            let mut store = self.store();
            if store.is_none() {
                *store = Some(Store::create(self.path(), self.options.durability)?);
            }
            // Filled just above; the loop is left only through `?`.
            let Some(store) = store.as_mut() else {
                return Err(OpenError::Foreign);
            };
            store.write(&mut change).map_err(OpenError::Sqlite)
        })
        .await
    }

    /// Tries until no other process is in the way, or patience ends.
    ///
    /// SQLite would wait by itself, but unfairly (in steps of up to 100 ms), and the whole
    /// program with it.
    async fn patiently<T>(
        &self,
        doing: &'static str,
        mut attempt: impl FnMut() -> Result<T, OpenError>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_busy() && start.elapsed() < self.options.patience => {
                    tokio::time::sleep(pause()).await;
                }
                Err(error) => return Err(self.explain(doing, error)),
            }
        }
    }

    fn explain(&self, doing: &'static str, error: OpenError) -> BoardError {
        let board = self.name.clone();
        match error {
            OpenError::Newer { .. } | OpenError::Foreign | OpenError::NetworkFileSystem => {
                BoardError::Failed {
                    doing: "open",
                    board,
                    source: error.into(),
                }
            }
            OpenError::Create { ref source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied
                    || source.kind() == std::io::ErrorKind::ReadOnlyFilesystem =>
            {
                BoardError::Denied {
                    board,
                    source: error.into(),
                }
            }
            OpenError::Create { .. } => BoardError::Failed {
                doing: "create",
                board,
                source: error.into(),
            },
            OpenError::Sqlite(error) if is_busy(&error) => BoardError::Unreachable {
                board,
                source: "another process keeps it locked".into(),
            },
            OpenError::Sqlite(error) if is_denied(&error) => BoardError::Denied {
                board,
                source: error.into(),
            },
            OpenError::Sqlite(error) => BoardError::Failed {
                doing,
                board,
                source: error.into(),
            },
        }
    }
}

/// Returns how long to leave the file to others: 0.2 to 2 ms, different for each process.
fn pause() -> Duration {
    let noise = Moment::now().wall.unsigned_abs() ^ u64::from(std::process::id());
    Duration::from_micros(200 + noise.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1800)
}

#[async_trait]
impl Board for Embedded {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: true,
            has_peers: false,
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        self.file
            .write_new(|transaction, now| {
                drafts
                    .iter()
                    .map(|draft| change::post(transaction, now, draft, claimant))
                    .collect()
            })
            .await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        let pages = stream::try_unfold(look::Cursor::new(query), move |mut cursor| async move {
            if cursor.is_at_end() {
                return Ok(None);
            }
            let page = self
                .file
                .read(|transaction, view| look::page(transaction, view, &mut cursor))
                .await?;
            Ok(page.map(|page| (page, cursor)))
        });
        pages
            .map(|page| {
                let (entries, error) = match page {
                    Ok(entries) => (entries, None),
                    Err(error) => (Vec::new(), Some(Err(error))),
                };
                stream::iter(entries.into_iter().map(Ok).chain(error))
            })
            .flatten()
            .boxed()
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        let found = self
            .file
            .read(|transaction, view| {
                wanted
                    .iter()
                    .map(|wanted| look::find(transaction, view, shelf, wanted))
                    .collect()
            })
            .await?;
        Ok(found.unwrap_or_else(|| vec![Vec::new(); wanted.len()]))
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let claimed = self
            .file
            .write(|transaction, now| change::claim(transaction, now, keys, by, most, rules))
            .await?;
        Ok(claimed.unwrap_or_else(|| no_such_jobs(keys.len())))
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let renewed = self
            .file
            .write(|transaction, now| {
                claims
                    .iter()
                    .map(|claim| change::renew(transaction, now, claim))
                    .collect()
            })
            .await?;
        Ok(renewed.unwrap_or_else(|| no_such_jobs(claims.len())))
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let settled = self
            .file
            .write(|transaction, now| {
                settlements
                    .iter()
                    .map(|settlement| change::settle(transaction, now, settlement))
                    .collect()
            })
            .await?;
        Ok(settled.unwrap_or_else(|| no_such_jobs(settlements.len())))
    }

    async fn restore(&self, keys: &[JobKey]) -> Result<Vec<Result<()>>> {
        let restored = self
            .file
            .write(|transaction, now| {
                keys.iter()
                    .map(|key| change::restore(transaction, now, key))
                    .collect()
            })
            .await?;
        Ok(restored.unwrap_or_else(|| no_such_jobs(keys.len())))
    }

    async fn purge(&self, keys: &[JobKey]) -> Result<Vec<Result<()>>> {
        let purged = self
            .file
            .write(|transaction, now| {
                keys.iter()
                    .map(|key| change::purge(transaction, now, key))
                    .collect()
            })
            .await?;
        Ok(purged.unwrap_or_else(|| no_such_jobs(keys.len())))
    }

    async fn events(&self) -> Result<BoxStream<'_, Result<Event>>> {
        watch::events(&self.file).await
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let registration = Registration::enter(Arc::clone(&self.file), conductor.clone()).await?;
        *self
            .registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(registration);
        Ok(())
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        let conductors = self.file.read(registry::conductors).await?;
        Ok(conductors.unwrap_or_default())
    }

    async fn health(&self) -> Result<Health> {
        let counts = self.file.read(look::counts).await?;
        let (jobs, trashed, is_used) = counts.unwrap_or_default();
        Ok(Health {
            server: format!("SQLite {}", rusqlite::version()),
            jobs,
            trashed,
            is_used,
        })
    }

    async fn close(&self) {
        let registration = self
            .registration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(registration) = registration {
            registration.leave().await;
        }
        if let Some(mut store) = self.file.store().take() {
            store.finish();
        }
    }
}

fn no_such_jobs<T>(count: usize) -> Vec<Result<T>> {
    (0..count).map(|_| Err(BoardError::NoSuchJob)).collect()
}
