//! The file of a board as several processes share it: opened when needed, and waited for.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Transaction;

use super::{
    Durability, OpenError, Store, View,
    clock::Moment,
    disk::{Identity, beside, make_file, require_folder, with_suffix},
    error::limit_behind,
    is_busy, is_denied,
};
use crate::board::{BoardError, Result, net::problem::Kind, wire::posting::Limit};
use crate::suggest::Hint;

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) path: PathBuf,
    /// Whether the folder is made, too, when the file is.
    pub(crate) makes_folder: bool,
    pub(crate) durability: Durability,
    pub(crate) patience: Duration,
    pub(crate) limit: Limit,
    pub(crate) history: u32,
}

/// The file, opened when it is first needed, and created when something is first posted.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) options: Options,
    store: Mutex<Option<Store>>,
    /// The file that was first opened.
    first: OnceLock<Identity>,
    /// How often it was noticed that another one is in its place, or none.
    losses: AtomicU64,
}

impl File {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            name: format!("sqlite:{}", options.path.display()),
            options,
            store: Mutex::new(None),
            first: OnceLock::new(),
            losses: AtomicU64::new(0),
        }
    }

    /// Leaves the file; it is opened again when it is needed again.
    pub(crate) fn close(&self) {
        if let Some(mut store) = self.store.lock().take() {
            store.finish();
        }
    }

    pub(crate) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Returns the error by which that is told to whoever has not noticed.
    pub(crate) fn replaced(&self) -> BoardError {
        self.explain("read", OpenError::Replaced)
    }

    /// A file that was replaced is an error once, so that nobody takes it for the same board. It is not
    /// opened at all if others can write it: a conductor has made sure at the start that they cannot.
    fn opened(
        &self,
        open: impl FnOnce(&Path, Durability) -> Result<Option<Store>, OpenError>,
    ) -> Result<MutexGuard<'_, Option<Store>>, OpenError> {
        let mut store = self.store.lock();
        if store.as_ref().is_some_and(|store| !store.is_current()) {
            *store = None;
            self.losses.fetch_add(1, Ordering::Relaxed);
            return Err(OpenError::Replaced);
        }
        if store.is_some() {
            return Ok(store);
        }
        match open(&self.options.path, self.options.durability)? {
            Some(opened) => {
                let identity = opened.identity;
                if identity.is_looser_than(self.first.get_or_init(|| identity)) {
                    return Err(OpenError::Loosened);
                }
                *store = Some(opened);
            }
            // A board that is gone is not one on which nothing was ever posted.
            None if self.first.get().is_some() => return Err(OpenError::Replaced),
            None if self.options.makes_folder => {}
            None => require_folder(&self.options.path, OpenError::Nowhere)?,
        }
        Ok(store)
    }

    /// Reads the board; `None` if there is none yet.
    pub(crate) async fn read<T>(
        &self,
        mut look: impl FnMut(&Transaction<'_>, &View) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.patiently("read", || {
            let mut store = self.opened(Store::open)?;
            let done = store.as_mut().map(|store| store.read(&mut look));
            Ok(done.transpose()?)
        })
        .await
    }

    /// Changes the board in one transaction; `None` if there is none yet.
    pub(crate) async fn write<T>(
        &self,
        mut change: impl FnMut(&Transaction<'_>, Moment) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.patiently("write to", || {
            let mut store = self.opened(Store::open)?;
            let done = store.as_mut().map(|store| store.write(&mut change));
            Ok(done.transpose()?)
        })
        .await
    }

    /// Changes the board in one transaction, and creates it if there is none yet.
    pub(crate) async fn write_new<T>(
        &self,
        mut change: impl FnMut(&Transaction<'_>, Moment) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.patiently("write to", || {
            let create = |path: &_, durability| {
                make_file(path, self.options.makes_folder)?;
                Store::create(path, durability).map(Some)
            };
            let mut store = self.opened(create)?;
            // Filled just above; the loop is left only through `?`.
            let Some(store) = store.as_mut() else {
                return Err(OpenError::Foreign);
            };
            store.write(&mut change).map_err(OpenError::Sqlite)
        })
        .await
    }

    /// SQLite would wait by itself, but unfairly (in steps of up to 100 ms), and would block the whole
    /// program.
    async fn patiently<T>(
        &self,
        doing: &'static str,
        mut attempt: impl FnMut() -> Result<T, OpenError>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(error) if start.elapsed() < error.patience(self.options.patience) => {
                    tokio::time::sleep(pause()).await;
                }
                Err(error) => return Err(self.explain(doing, error)),
            }
        }
    }

    /// Fails if we may not write the file.
    pub(crate) fn is_writable(&self) -> Result<()> {
        let writable = rustix::fs::access(&self.options.path, rustix::fs::Access::WRITE_OK);
        writable.map_err(|error| BoardError::Denied {
            board: self.name.clone(),
            source: format!(
                "the board file is not writable: {}",
                std::io::Error::from(error)
            )
            .into(),
        })
    }

    fn way_out(&self, name: &Path) -> Hint {
        let own = with_suffix(&self.options.path, "-wal");
        let paths = [name, &beside(name, "-wal"), &own, &self.options.path];
        let [other, log, own, file] = paths.map(|path| path.to_string_lossy().into_owned());
        match name.exists() {
            true => {
                let board = format!("sqlite:{other}");
                Hint::new("use `--board {}`", [&[&board]])
            }
            false => Hint::new(
                "`mv {} {}` keeps the jobs in the log; `cp {} COPY` makes a board without them",
                [&[&log], &[&own], &[&file]],
            ),
        }
    }

    pub(crate) fn explain(&self, doing: &'static str, error: OpenError) -> BoardError {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        let (mut doing, board) = (doing, &self.name);
        let kind = match &error {
            OpenError::NoFolder(folder) => {
                let (board, folder) = (board.to_owned(), folder.clone());
                return BoardError::NoFolder { board, folder };
            }
            OpenError::InUse(_) | OpenError::OtherLog(_) | OpenError::LeftLog(_) => {
                let hint = Box::new(match &error {
                    OpenError::InUse(name) | OpenError::OtherLog(name) => self.way_out(name),
                    _ => "move this file next to the board file, or remove it".into(),
                });
                let (board, source) = (board.to_owned(), error.into());
                return BoardError::OtherName {
                    board,
                    source,
                    hint,
                };
            }
            OpenError::Nowhere(_) => Kind::Misdirected,
            OpenError::Newer { .. }
            | OpenError::Foreign
            | OpenError::Folder
            | OpenError::NoFile
            | OpenError::NetworkFileSystem => {
                doing = "open";
                Kind::Failed
            }
            OpenError::Replaced => Kind::Unreachable,
            OpenError::Loosened => Kind::Denied,
            OpenError::Inaccessible { source, .. } => match source.kind() {
                PermissionDenied | ReadOnlyFilesystem => Kind::Denied,
                _ => Kind::Failed,
            },
            OpenError::Sqlite(error) if is_busy(error) => {
                let why = "another process holds the lock of the board file";
                return Kind::Unreachable.error(doing, board, why.into());
            }
            OpenError::Sqlite(error) => {
                let limit = limit_behind(error);
                let kind = match limit.is_none() && is_denied(error) {
                    true => Kind::Denied,
                    false => Kind::Failed,
                };
                // Its text alone: the source of SQLite's errors says the same again, with a number.
                let why = limit.unwrap_or_else(|| error.to_string());
                return kind.error(doing, board, why.into());
            }
        };
        kind.error(doing, board, error.into())
    }
}

/// Returns how long to leave the file to others: 0.2 to 2 ms, different for each process.
fn pause() -> Duration {
    let noise = Moment::now().wall.unsigned_abs() ^ u64::from(std::process::id());
    Duration::from_micros(200 + noise.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 1800)
}
