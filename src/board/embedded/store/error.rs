//! Errors when a file is opened as a board, and the process limits behind SQLite errors.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Error, ErrorCode, ffi};
use rustix::process::{Resource, getrlimit};
use thiserror::Error as ThisError;

/// The current layout of `schema.sql`.
pub(super) const SCHEMA_VERSION: i32 = 4;

#[derive(Debug, ThisError)]
pub(crate) enum OpenError {
    #[error(
        "the file has layout {found}; this version of jobboard supports layouts up to \
         {SCHEMA_VERSION}"
    )]
    Newer { found: i32 },
    #[error(
        "the file has layout {found}, from before jobboard 0.2.0; list it once with jobboard 0.2.0 \
         to convert it"
    )]
    Older { found: i32 },
    #[error("the file is another program's database")]
    Foreign,
    #[error("another program has added or changed the table or index {name}")]
    Altered { name: String },
    #[error("the path is a directory")]
    Directory,
    #[error("the path is not a regular file")]
    NoFile,
    #[error("the board file was removed or replaced")]
    Replaced,
    #[error(
        "the board file was replaced by one that belongs to another user or that other users can \
         write to"
    )]
    Loosened,
    #[error("the directory {} does not exist", .0.display())]
    NoDirectory(PathBuf),
    #[error("the directory {} does not exist", .0.display())]
    Nowhere(PathBuf),
    #[error("another process uses the file under the name {}", .0.display())]
    InUse(PathBuf),
    #[error("the file was last used as {}, whose log may contain more jobs", .0.display())]
    OtherLog(PathBuf),
    #[error("the file does not exist, but {} does and may contain jobs of a moved board", .0.display())]
    LeftLog(PathBuf),
    #[error(
        "{} belongs to another user or is not a regular file, and SQLite would apply it to the board",
        .0.display()
    )]
    ForeignLog(PathBuf),
    #[error("the file is on a network file system, where SQLite cannot lock safely")]
    NetworkFileSystem,
    #[error("cannot access {}", path.display())]
    Inaccessible {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl OpenError {
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Inaccessible {
            path: path.to_owned(),
            source,
        }
    }

    /// Returns how long a retry may help: another process may be in the way.
    pub(crate) fn patience(&self, most: Duration) -> Duration {
        match self {
            Self::Sqlite(error) if is_busy(error) => most,
            // A conductor keeps its board open for days.
            Self::InUse(_) => most.min(Duration::from_millis(200)),
            _ => Duration::ZERO,
        }
    }
}

pub(super) fn busy() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)
}

pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Files that SQLite opens together: the board, its log, the log's index, and the directory.
const OPENED_AT_ONCE: usize = 4;

pub(crate) fn limit_behind(error: &rusqlite::Error) -> Option<String> {
    match error.sqlite_error()?.extended_code {
        ffi::SQLITE_CANTOPEN => too_many_open_files(),
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE => {
            let most = getrlimit(Resource::Fsize).current?;
            let allow = "raise the limit with `ulimit -f unlimited`";
            Some(format!(
                "this process may write at most {most} bytes per file; {allow}"
            ))
        }
        _ => None,
    }
}

/// Reports an exhausted file limit; SQLite has closed its own files by now.
fn too_many_open_files() -> Option<String> {
    let opened: io::Result<Vec<_>> = (0..OPENED_AT_ONCE)
        .map(|_| File::open("/dev/null"))
        .collect();
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let allow = "raise the limit with `ulimit -n 1024`";
    opened
        .is_err()
        .then(|| format!("this process may open at most {most} files; {allow}"))
}
