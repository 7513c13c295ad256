//! The board file in the file system: its identity, creation and opening.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::StatVfsMountFlags;

use super::error::OpenError;

const URI_ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    owner: u32,
    mode: u32,
}

impl FileIdentity {
    pub(crate) fn of(path: &Path) -> Result<Self, OpenError> {
        let found = fs::metadata(path).map_err(OpenError::at(path))?;
        // Anything else may be endless or block.
        match (found.is_dir(), found.is_file()) {
            (true, _) => Err(OpenError::Directory),
            (false, false) => Err(OpenError::NoFile),
            (false, true) => Ok(Self {
                device: found.dev(),
                inode: found.ino(),
                owner: found.uid(),
                mode: found.mode(),
            }),
        }
    }

    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether a user can write this file who could not write the other one.
    pub(crate) fn is_looser_than(&self, other: &Self) -> bool {
        const OTHERS: u32 = 0o022;
        self.owner != other.owner || self.mode & OTHERS & !other.mode != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// With other processes, through the log and index beside the file.
    Shared,
    /// Alone: on a read-only mount no other process writes.
    Alone,
}

pub(crate) fn open_file(path: &Path, mode: OpenMode) -> rusqlite::Result<Connection> {
    // SQLite reads a name that begins with `file:` as a URI, with other files and options.
    let path = &Path::new(".").join(path);
    match mode {
        OpenMode::Shared => Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        ),
        OpenMode::Alone
            if fs::metadata(with_suffix(path, "-wal")).map_or(true, |log| log.len() == 0) =>
        {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            let escaped = percent_encode(path.as_os_str().as_bytes(), URI_ESCAPED);
            Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)
        }
        OpenMode::Alone => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            // Takes no locks, which need write access.
            let connection = Connection::open_with_flags_and_vfs(path, flags, "unix-none")?;
            // Changes in the log are then read in memory.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
            Ok(connection)
        }
    }
}

pub(crate) fn is_mounted_read_only(path: &Path) -> bool {
    let system = rustix::fs::statvfs(path);
    system.is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Refuses a path with a log but no file: the file was moved, and the log may contain its latest jobs.
pub(crate) fn refuse_left_log(path: &Path) -> Result<(), OpenError> {
    let log = sibling_file(path, "-wal");
    let is_left = fs::metadata(&log).is_ok_and(|it| it.len() > 0);
    // Another process may have created the file and its log since the first look.
    match is_left && !path.try_exists().map_err(OpenError::at(path))? {
        true => Err(OpenError::LeftLog(log)),
        false => Ok(()),
    }
}

/// Creates the file with access for its user alone, and its directory if asked.
pub(crate) fn make_file(path: &Path, makes_directory: bool) -> Result<(), OpenError> {
    let inaccessible = OpenError::at(path);
    if path.try_exists().map_err(&inaccessible)? {
        return Ok(());
    }
    refuse_left_log(path)?;
    if !makes_directory {
        require_directory(path, OpenError::NoDirectory)?;
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory_of(path))
        .map_err(&inaccessible)?;
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.flush());
    match made {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(inaccessible),
    }
}

pub(crate) fn require_directory(
    path: &Path,
    missing: fn(PathBuf) -> OpenError,
) -> Result<(), OpenError> {
    let directory = directory_of(path);
    match directory.try_exists() {
        Ok(false) => Err(missing(directory.to_owned())),
        Ok(true) | Err(_) => Ok(()),
    }
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
}

/// Rejects a network file system, where the locks of other machines are invisible.
pub(crate) fn refuse_network_file_system(path: &Path) -> Result<(), OpenError> {
    const NETWORK: [i64; 3] = [0x6969, 0xff53_4d42, 0xfe53_4d42];
    match rustix::fs::statfs(path) {
        Ok(system) if NETWORK.contains(&system.f_type) => Err(OpenError::NetworkFileSystem),
        _ => Ok(()),
    }
}

/// Rejects a log or a journal that another user planted beside the board: SQLite would apply it.
///
/// In a sticky directory, users can create files, but cannot replace the board. In any other directory, they can do
/// both.
pub(super) fn refuse_foreign_log(path: &Path) -> Result<(), OpenError> {
    const STICKY: u32 = 0o1000;
    const GROUP: u32 = 0o020;
    const OTHERS: u32 = 0o002;
    let real = fs::canonicalize(path);
    let path = real.as_deref().unwrap_or(path);
    let (Ok(board), Ok(directory)) = (fs::metadata(path), fs::metadata(directory_of(path))) else {
        // The caller notices that it is gone.
        return Ok(());
    };
    let directory = directory.mode();
    // Its members may write the board as well.
    let is_of_group = board.mode() & GROUP != 0 && directory & OTHERS == 0;
    let is_open = directory & STICKY == 0 || board.mode() & OTHERS != 0 || is_of_group;
    let trusted = [board.uid(), rustix::process::geteuid().as_raw(), 0];
    for suffix in ["-journal", "-wal", "-shm"] {
        let file = sibling_file(path, suffix);
        let Ok(found) = fs::symlink_metadata(&file) else {
            continue;
        };
        // A link may give a file of the owner that others can write.
        let is_own = trusted.contains(&found.uid()) && found.nlink() == 1;
        if !found.is_file() || !(is_open || is_own) {
            return Err(OpenError::ForeignLog(file));
        }
    }
    Ok(())
}

/// Returns the name of a file beside the board. Links lead to one name, as in SQLite.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let real = fs::canonicalize(path);
    sibling_file(real.as_deref().unwrap_or(path), suffix)
}

/// Like [`with_suffix`], for a path that is no link.
pub(super) fn sibling_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
