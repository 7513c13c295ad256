//! What keeps a file from being opened as a board.

use std::path::PathBuf;

use rusqlite::ErrorCode;
use thiserror::Error;

/// The layout of `schema.sql` that is written now.
pub(super) const SCHEMA_VERSION: i32 = 4;

/// What keeps a file from being opened as a board.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error("it has layout {found}, and this jobboard knows layouts up to {SCHEMA_VERSION}")]
    Newer { found: i32 },
    #[error("the file is a database of another program")]
    Foreign,
    #[error("it is a folder")]
    Folder,
    #[error("it is no regular file")]
    NoFile,
    #[error("its file was removed, or another one was put in its place")]
    Replaced,
    #[error(
        "another file was put in its place, which belongs to somebody else or can be written by others"
    )]
    Loosened,
    /// A file was to be made there.
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    /// A board was looked for there.
    #[error("there is no folder {}", .0.display())]
    Nowhere(PathBuf),
    #[error("it is on a network file system, which cannot be shared safely")]
    NetworkFileSystem,
    #[error("cannot get at {}", path.display())]
    Inaccessible {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl OpenError {
    /// Whether another process is in the way, which a little patience may mend.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if is_busy(error))
    }
}

/// Whether another process held a lock that was needed.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
