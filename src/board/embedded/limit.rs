//! Limits of this process that SQLite runs into, and does not name.

use std::{fs::File, io};

use rusqlite::ffi;
use rustix::process::{Resource, getrlimit};

/// How many files SQLite opens at once: the board, its log, the index of that, and the folder.
const OPENED_AT_ONCE: usize = 4;

/// Returns in words which limit of this process is behind an error, if one is.
pub(super) fn limit_behind(error: &rusqlite::Error) -> Option<String> {
    match error.sqlite_error()?.extended_code {
        ffi::SQLITE_CANTOPEN => too_many_open_files(),
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE => {
            let most = getrlimit(Resource::Fsize).current?;
            let allow = "allow more with `ulimit -f unlimited`";
            Some(format!(
                "no file may have more than {most} bytes here: {allow}"
            ))
        }
        _ => None,
    }
}

/// Says so if no more files can be opened; what SQLite had opened itself is closed by now.
fn too_many_open_files() -> Option<String> {
    let opened: io::Result<Vec<_>> = (0..OPENED_AT_ONCE)
        .map(|_| File::open("/dev/null"))
        .collect();
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let allow = "allow more with `ulimit -n 1024`";
    opened
        .is_err()
        .then(|| format!("no more than {most} files may be open here: {allow}"))
}
