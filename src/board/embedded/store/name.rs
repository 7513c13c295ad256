//! The name under which processes use a board file.
//!
//! Each name of a file has its own log, so processes that use two names would overwrite each other's changes. The
//! file stores the name; another name replaces it only if that loses nothing.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, config::DbConfig};
use rustix::{
    fs::{XattrFlags, getxattr, setxattr},
    io::Errno,
};

use super::{
    disk::{OpenMode, directory_of, open_file, sibling_file},
    error::{OpenError, busy, is_busy},
};

/// An attribute applies to the file under all its names. SQLite writes first to the log of one name.
const ATTRIBUTE: &str = "user.jobboard.name";

/// The longest path, and the numbers before it.
const MAX_NAME_BYTES: usize = 8192;

/// A file or directory: device and inode.
type Id = [u64; 2];

/// A name of a file. Its path alone may mean another file in another container.
#[derive(Debug, PartialEq, Eq)]
struct FileName {
    /// A copy may have the attribute of the original.
    file: Id,
    directory: Id,
    log: u64,
    path: PathBuf,
}

/// Makes this name the one in use, or fails.
pub(super) fn adopt(path: &Path) -> Result<(), OpenError> {
    let Some((_, first)) = other_name(path)? else {
        return Ok(());
    };
    let file = open_file(path, OpenMode::Shared)?;
    if file.is_readonly("main")? {
        return Ok(());
    }
    file.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // This lock is on the file itself, and excludes processes that have it open by any name.
    file.pragma_update(None, "locking_mode", "exclusive")?;
    match file.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        Err(error) if is_busy(&error) => return Err(OpenError::InUse(first)),
        locked => locked?,
    }
    // Check after locking: until then another process may have filled the log of the other name.
    match other_name(path)? {
        Some((name, _)) => name.store(XattrFlags::empty()),
        None => Ok(()),
    }
}

fn other_name(path: &Path) -> Result<Option<(FileName, PathBuf)>, OpenError> {
    let (name, kept) = read_names(path)?;
    match kept.filter(|kept| !kept.is_same(&name)) {
        Some(kept) if kept.file == name.file && kept.may_have_more(&name) => {
            Err(OpenError::OtherLog(kept.path))
        }
        kept => Ok(kept.map(|kept| (name, kept.path))),
    }
}

/// Ensures that an open file uses this name. While it is open no other name can replace it.
pub(super) fn confirm(path: &Path, file: &Connection) -> Result<(), OpenError> {
    match read_names(path)? {
        (name, None) => name.store(XattrFlags::CREATE),
        (name, Some(kept)) if kept.is_same(&name) => match kept == name {
            true => Ok(()),
            // Its directory was moved, or its log recreated.
            false => name.store(XattrFlags::REPLACE),
        },
        _ if file.is_readonly("main")? => Ok(()),
        _ => Err(busy().into()),
    }
}

fn read_names(path: &Path) -> Result<(FileName, Option<FileName>), OpenError> {
    let name = FileName::of(path).map_err(OpenError::at(path))?;
    let mut buffer = [0; MAX_NAME_BYTES];
    // Boards on file systems without extended attributes are not protected.
    let length = getxattr(&name.path, ATTRIBUTE, &mut buffer).unwrap_or_default();
    let kept = FileName::read(&buffer[..length]);
    Ok((name, kept))
}

impl FileName {
    fn of(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        Ok(Self {
            file: id(&path)?,
            directory: id(directory_of(&path))?,
            log: log(&path).map_or(0, |log| log.ino()),
            path,
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(6, |byte| *byte == b' ');
        let mut number = || str::from_utf8(parts.next()?).ok()?.parse().ok();
        Some(Self {
            file: [number()?, number()?],
            directory: [number()?, number()?],
            log: number()?,
            path: OsStr::from_bytes(parts.next()?).into(),
        })
    }

    /// Stores it with the file. Users without that right only read the board.
    fn store(&self, how: XattrFlags) -> Result<(), OpenError> {
        let ([device, file], [directory_device, directory]) = (self.file, self.directory);
        let log = self.log;
        let numbers = format!("{device} {file} {directory_device} {directory} {log} ");
        let text = [numbers.as_bytes(), self.path.as_os_str().as_bytes()].concat();
        match setxattr(&self.path, ATTRIBUTE, &text, how) {
            Err(Errno::EXIST) => Err(busy().into()),
            _ => Ok(()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let last = |it: &Self| it.path.file_name().map(OsStr::to_owned);
        let name = |it: &Self| (it.file, it.directory, last(it));
        name(self) == name(other)
    }

    /// Whether its log may contain changes missing from the file and the other log.
    fn may_have_more(&self, other: &Self) -> bool {
        let is_filled = |path| log(path).filter(|log| log.len() > 0);
        if let Some(log) = is_filled(&other.path) {
            // The log was moved along, or is older than the last use by this name.
            return log.ino() != self.log;
        }
        if !id(directory_of(&self.path)).is_ok_and(|directory| directory == self.directory) {
            // It was moved away, or belongs to another container.
            return true;
        }
        // Another file at this path has its own log.
        let is_replaced = id(&self.path).is_ok_and(|file| file != self.file);
        is_filled(&self.path).is_some_and(|log| log.ino() == self.log || !is_replaced)
    }
}

fn id(path: &Path) -> io::Result<Id> {
    fs::metadata(path).map(|found| [found.dev(), found.ino()])
}

fn log(path: &Path) -> Option<fs::Metadata> {
    fs::metadata(sibling_file(path, "-wal")).ok()
}
