//! Access to a board file that several processes share: opening on demand and waiting for locks.

use std::{
    io,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    Begin, FileOptions, OpenError, Store,
    disk::{FileIdentity, make_file, require_directory, sibling_file, with_suffix},
    error::limit_behind,
    is_busy, is_denied,
    transaction::{BoardView, Change},
};
use crate::{
    backoff::jittered,
    board::{BoardError, Result, error::OPEN, net::cause::BoardErrorKind},
    suggest::Hint,
};

/// How long to leave the file to other processes: at most this, at least a tenth of it.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(2);

/// Opened on the first use, and created by the first post.
pub(crate) struct BoardFile {
    pub(crate) name: String,
    pub(crate) options: FileOptions,
    store: Mutex<Option<Store>>,
    begin: Begin,
    first: OnceLock<FileIdentity>,
    /// How often the file was found replaced or missing.
    replacements: AtomicU64,
}

impl BoardFile {
    pub(crate) fn new(options: FileOptions, begin: Begin) -> Self {
        Self {
            name: format!("sqlite:{}", options.path.display()),
            options,
            store: Mutex::new(None),
            begin,
            first: OnceLock::new(),
            replacements: AtomicU64::new(0),
        }
    }

    pub(crate) fn close(&self) {
        if let Some(mut store) = self.store.lock().take() {
            store.finish();
        }
    }

    pub(crate) fn replacements(&self) -> u64 {
        self.replacements.load(Ordering::Relaxed)
    }

    /// After its file was replaced, one request fails, so that callers notice the other board.
    fn locked(&self) -> Result<MutexGuard<'_, Option<Store>>, OpenError> {
        let mut store = self.store.lock();
        if store.as_ref().is_some_and(|store| !store.is_current()) {
            *store = None;
            self.replacements.fetch_add(1, Ordering::Relaxed);
            return Err(OpenError::Replaced);
        }
        Ok(store)
    }

    /// Opens the board; `None` if it does not exist yet.
    fn opened(&self) -> Result<MutexGuard<'_, Option<Store>>, OpenError> {
        let mut store = self.locked()?;
        if store.is_some() {
            return Ok(store);
        }
        let was_open = self.first.get().is_some();
        match Store::open(&self.options) {
            Ok(Some(opened)) => *store = Some(self.checked(opened)?),
            // A missing file does not mean an empty board, and may return.
            Ok(None) | Err(OpenError::LeftLog(_)) if was_open => return Err(OpenError::Replaced),
            Ok(None) if self.options.makes_directory => {}
            Ok(None) => require_directory(&self.options.path, OpenError::Nowhere)?,
            Err(error) => return Err(error),
        }
        Ok(store)
    }

    fn create(&self) -> Result<Store, OpenError> {
        let made = make_file(&self.options.path, self.options.makes_directory);
        match made.and_then(|()| Store::create(&self.options)) {
            Err(OpenError::LeftLog(_)) if self.first.get().is_some() => Err(OpenError::Replaced),
            created => self.checked(created?),
        }
    }

    /// Refuses a file that other users can write: the conductor excluded those at its start.
    fn checked(&self, store: Store) -> Result<Store, OpenError> {
        let identity = store.identity;
        match identity.is_looser_than(self.first.get_or_init(|| identity)) {
            true => Err(OpenError::Loosened),
            false => Ok(store),
        }
    }

    /// `None` if the board does not exist yet.
    pub(crate) async fn read<T>(
        &self,
        mut look: impl FnMut(&BoardView<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.with_retries("read", || {
            let mut store = self.opened()?;
            let done = store.as_mut().map(|store| store.read(&mut look));
            Ok(done.transpose()?)
        })
        .await
    }

    /// Changes the board in one transaction; `None` if it does not exist yet.
    pub(crate) async fn write<T>(
        &self,
        mut change: impl FnMut(&Change<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.with_retries("write to", || {
            let mut store = self.opened()?;
            let done = store.as_mut();
            let done = done.map(|store| store.write(self.begin, &mut change));
            Ok(done.transpose()?)
        })
        .await
    }

    /// Changes the board in one transaction, and creates it if necessary.
    pub(crate) async fn write_new<T>(
        &self,
        mut change: impl FnMut(&Change<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.with_retries("write to", || {
            let mut store = self.locked()?;
            let store = match &mut *store {
                Some(store) => store,
                none => none.insert(self.create()?),
            };
            Ok(store.write(self.begin, &mut change)?)
        })
        .await
    }

    /// SQLite's own wait is unfair, with steps of up to 100 ms, and blocks the whole program.
    async fn with_retries<T>(
        &self,
        doing: &'static str,
        mut attempt: impl FnMut() -> Result<T, OpenError>,
    ) -> Result<T> {
        let start = Instant::now();
        loop {
            match attempt() {
                Ok(answer) => return Ok(answer),
                Err(error) if start.elapsed() < error.patience(self.options.op_timeout) => {
                    tokio::time::sleep(jittered(MAX_RETRY_DELAY, 0.9)).await;
                }
                Err(error) => return Err(self.explain(doing, error)),
            }
        }
    }

    pub(crate) fn is_writable(&self) -> Result<()> {
        let writable = rustix::fs::access(&self.options.path, rustix::fs::Access::WRITE_OK);
        writable.map_err(|error| {
            let error = io::Error::from(error);
            let why = format!("the board file is not writable: {error}");
            BoardErrorKind::Denied.error("write to", &self.name, why.into())
        })
    }

    fn altered_hint(&self) -> Hint {
        let path = self.options.path.to_string_lossy();
        let text = "`sqlite3 {} .schema` shows the tables and indexes; drop what was added";
        Hint::new(text, [&[&path]])
    }

    fn other_name_hint(&self, name: &Path) -> Hint {
        let own = with_suffix(&self.options.path, "-wal");
        let paths = [name, &sibling_file(name, "-wal"), &own, &self.options.path];
        let [other, log, own, file] = paths.map(|path| path.to_string_lossy().into_owned());
        match name.exists() {
            true => Hint::other_board(&format!("sqlite:{other}")),
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
            OpenError::NoDirectory(directory) => {
                let (board, directory) = (board.to_owned(), directory.clone());
                return BoardError::NoDirectory { board, directory };
            }
            OpenError::InUse(_)
            | OpenError::OtherLog(_)
            | OpenError::LeftLog(_)
            | OpenError::ForeignLog(_)
            | OpenError::Altered { .. } => {
                let name = " under this name";
                let (qualifier, hint) = match &error {
                    OpenError::Altered { .. } => ("", self.altered_hint()),
                    OpenError::ForeignLog(file) => {
                        let file = file.to_string_lossy();
                        let text = "`ls -l {}` shows its owner; if it is the log of this board, change its owner, else remove it";
                        ("", Hint::new(text, [&[&file]]))
                    }
                    OpenError::InUse(other) | OpenError::OtherLog(other) => {
                        (name, self.other_name_hint(other))
                    }
                    _ => (
                        name,
                        "move this file next to the board file, or remove it".into(),
                    ),
                };
                let (board, source) = (board.to_owned(), error.into());
                return BoardError::NotOpened {
                    board,
                    qualifier,
                    source,
                    hint: Box::new(hint),
                };
            }
            OpenError::Nowhere(_) => BoardErrorKind::Misdirected,
            OpenError::Newer { .. }
            | OpenError::Older { .. }
            | OpenError::Foreign
            | OpenError::Directory
            | OpenError::NoFile
            | OpenError::NetworkFileSystem => {
                doing = OPEN;
                BoardErrorKind::Failed
            }
            OpenError::Replaced => BoardErrorKind::Unreachable,
            OpenError::Loosened => BoardErrorKind::Denied,
            OpenError::Inaccessible { source, .. } => match source.kind() {
                PermissionDenied | ReadOnlyFilesystem => BoardErrorKind::Denied,
                _ => BoardErrorKind::Failed,
            },
            OpenError::Sqlite(error) if is_busy(error) => {
                let why = "another process holds the lock of the board file";
                return BoardErrorKind::Unreachable.error(doing, board, why.into());
            }
            OpenError::Sqlite(error) => {
                let limit = limit_behind(error);
                let kind = match limit.is_none() && is_denied(error) {
                    true => BoardErrorKind::Denied,
                    false => BoardErrorKind::Failed,
                };
                // The text alone: the source of SQLite's errors repeats it with a number.
                let why = limit.unwrap_or_else(|| error.to_string());
                return kind.error(doing, board, why.into());
            }
        };
        kind.error(doing, board, error.into())
    }
}
