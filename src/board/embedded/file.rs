//! The file of a board as several processes share it: opened when needed, and waited for.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::Transaction;

use super::{
    clock::Moment,
    store::{Durability, OpenError, Store, View, is_busy, is_denied},
};
use crate::board::{BoardError, Result};

/// How an embedded board is to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    /// How long to wait for other processes before giving up.
    pub(crate) patience: Duration,
}

/// The file, opened when it is first needed, and created when something is first posted.
pub(super) struct File {
    name: String,
    options: Options,
    store: Mutex<Option<Store>>,
}

impl File {
    pub(super) fn new(options: Options) -> Self {
        Self {
            name: format!("sqlite:{}", options.path.display()),
            options,
            store: Mutex::new(None),
        }
    }

    /// Returns how people may call the board in it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Leaves the file; it is opened again when it is needed again.
    pub(super) fn close(&self) {
        if let Some(mut store) = self.store().take() {
            store.finish();
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.options.path
    }

    fn store(&self) -> MutexGuard<'_, Option<Store>> {
        // A panic while the lock was held left at worst a transaction that is rolled back.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the board; `None` if there is none yet.
    pub(super) async fn read<T>(
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
    pub(super) async fn write<T>(
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
    pub(super) async fn write_new<T>(
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
            OpenError::Newer { .. }
            | OpenError::Foreign
            | OpenError::Folder
            | OpenError::NetworkFileSystem => BoardError::Failed {
                doing: "open",
                board,
                source: error.into(),
            },
            OpenError::Inaccessible { ref source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied
                    || source.kind() == std::io::ErrorKind::ReadOnlyFilesystem =>
            {
                BoardError::Denied {
                    board,
                    source: error.into(),
                }
            }
            OpenError::Inaccessible { .. } => BoardError::Failed {
                doing,
                board,
                source: error.into(),
            },
            OpenError::Sqlite(error) if is_busy(&error) => BoardError::Unreachable {
                board,
                source: "another process keeps it locked".into(),
            },
            // Its text alone: the source of SQLite's errors says the same again, with a number.
            OpenError::Sqlite(error) if is_denied(&error) => BoardError::Denied {
                board,
                source: error.to_string().into(),
            },
            OpenError::Sqlite(error) => BoardError::Failed {
                doing,
                board,
                source: error.to_string().into(),
            },
        }
    }
}

/// Returns how long to leave the file to others: 0.2 to 2 ms, different for each process.
fn pause() -> Duration {
    let noise = Moment::now().wall.unsigned_abs() ^ u64::from(std::process::id());
    Duration::from_micros(200 + noise.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1800)
}
