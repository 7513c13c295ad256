//! The name under which processes use a board file: links, moves and mounts can give one file several names.
//!
//! SQLite keeps the latest changes in a log beside the name, so processes that use two names would overwrite each
//! other's changes. An attribute of the file therefore stores the name in use. Another name replaces it only if the log
//! of the stored name has no changes that would be lost.

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

/// An attribute belongs to the file, not to one of its names.
const ATTRIBUTE: &str = "user.jobboard.name";

/// The size of the longest path with the numbers before it.
const MAX_NAME_BYTES: usize = 8192;

/// A file or directory: device and inode.
type Id = [u64; 2];

/// A name of a file, with the inodes that it had: in another container, the same path may lead to another file.
#[derive(Debug, PartialEq, Eq)]
struct FileName {
    /// Tells the file from a copy, which may have the attribute of the original.
    file: Id,
    directory: Id,
    /// The inode of the log, 0 without a log.
    log: u64,
    path: PathBuf,
}

/// Makes `path` the name in use. Fails while a process uses the stored name, or if the log of the stored name may have
/// changes that would be lost.
pub(super) fn adopt(path: &Path) -> Result<(), OpenError> {
    let Some((_, in_use)) = replacement(path)? else {
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
        Err(error) if is_busy(&error) => return Err(OpenError::InUse(in_use)),
        locked => locked?,
    }
    // Check after locking: until then another process may have filled the log of the other name.
    match replacement(path)? {
        Some((name, _)) => name.store(XattrFlags::empty()),
        None => Ok(()),
    }
}

/// Returns the name that replaces the stored one, and the path of the stored one; `None` if no other name is stored.
///
/// Fails if the log of the stored name may have changes that would be lost.
fn replacement(path: &Path) -> Result<Option<(FileName, PathBuf)>, OpenError> {
    let (name, stored) = names(path)?;
    match stored.filter(|stored| !stored.is_same(&name)) {
        Some(stored) if stored.file == name.file && stored.has_unread_changes(&name) => {
            Err(OpenError::OtherLog(stored.path))
        }
        stored => Ok(stored.map(|stored| (name, stored.path))),
    }
}

/// Ensures that an open file uses this name. While it is open no other name can replace it.
pub(super) fn confirm(path: &Path, file: &Connection) -> Result<(), OpenError> {
    match names(path)? {
        (name, None) => name.store(XattrFlags::CREATE),
        (name, Some(stored)) if stored.is_same(&name) => match stored == name {
            true => Ok(()),
            // Its directory was moved, or its log recreated.
            false => name.store(XattrFlags::REPLACE),
        },
        _ if file.is_readonly("main")? => Ok(()),
        _ => Err(busy().into()),
    }
}

/// Returns the name that this path gives the file, and the stored one.
fn names(path: &Path) -> Result<(FileName, Option<FileName>), OpenError> {
    let name = FileName::of(path).map_err(OpenError::at(path))?;
    let mut buffer = [0; MAX_NAME_BYTES];
    // Boards on file systems without extended attributes are not protected.
    let length = getxattr(&name.path, ATTRIBUTE, &mut buffer).unwrap_or_default();
    Ok((name, FileName::read(&buffer[..length])))
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

    /// Whether the log of this stored name may have changes that neither the file nor the log of `new` has.
    fn has_unread_changes(&self, new: &Self) -> bool {
        let filled = |path| log(path).filter(|log| log.len() > 0);
        if let Some(log) = filled(&new.path) {
            // A log with the stored inode was moved along with the file; any other is older than the stored name.
            return log.ino() != self.log;
        }
        if !id(directory_of(&self.path)).is_ok_and(|directory| directory == self.directory) {
            // The directory was moved, or belongs to another container, so the log cannot be found.
            return true;
        }
        // A log with another inode belongs to the file that is at the stored path now, if that is another file.
        let is_other_file = id(&self.path).is_ok_and(|file| file != self.file);
        filled(&self.path).is_some_and(|log| log.ino() == self.log || !is_other_file)
    }
}

fn id(path: &Path) -> io::Result<Id> {
    fs::metadata(path).map(|found| [found.dev(), found.ino()])
}

/// The log in use, and its inode.
#[derive(Debug)]
pub(super) struct OpenLog(PathBuf, u64);

impl OpenLog {
    /// Returns `None` if the board has no log, as on a read-only mount.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let inode = log(&path)?.ino();
        Some(Self(path, inode))
    }

    pub(super) fn is_there(&self) -> bool {
        log(&self.0).is_some_and(|log| log.ino() == self.1)
    }
}

fn log(path: &Path) -> Option<fs::Metadata> {
    fs::metadata(sibling_file(path, "-wal")).ok()
}
