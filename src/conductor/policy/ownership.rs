//! Who could change what we are about to trust.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, CWD, accessat},
    process::geteuid,
};
use thiserror::Error;

/// Says why a file cannot be trusted with what is executed.
#[derive(Debug, Error)]
pub(crate) enum Untrusted {
    #[error("{} belongs to the user {owner}, and jobs would run as {}", path.display(), geteuid().as_raw())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{} can be written by others (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} is not {wanted}", path.display())]
    Kind { path: PathBuf, wanted: &'static str },
    #[error("{} cannot be looked at", path.display())]
    Unseen { path: PathBuf, source: io::Error },
}

/// Whose files are trusted.
#[derive(Clone, Copy)]
enum Trust {
    Us,
    UsAndRoot,
}

/// Checks that nobody but us can post to an embedded board.
///
/// A board that does not exist yet will be ours alone; its folder must be so already.
pub(crate) fn check_board(path: &Path) -> Result<(), Untrusted> {
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(source) => return Err(unseen(path, source)),
    };
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(kind(&path, "a file")),
    };
    if !folder.try_exists().unwrap_or(true) {
        return Ok(());
    }
    check(folder, &look(folder)?, Trust::Us)?;
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // What lies beside the board is part of it: the journal, the shared memory, the signal.
    for entry in fs::read_dir(folder).map_err(|source| unseen(folder, source))? {
        let entry = entry.map_err(|source| unseen(folder, source))?;
        if entry.file_name().as_encoded_bytes().starts_with(name) {
            let file = entry.path();
            match fs::symlink_metadata(&file) {
                Ok(found) => check(&file, &found, Trust::Us)?,
                // The journal comes and goes with those who have the board open.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(unseen(&file, source)),
            }
        }
    }
    Ok(())
}

/// Checks that nobody but us and root can put a handler into a folder.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Untrusted> {
    let found = look(folder)?;
    if !found.is_dir() {
        return Err(kind(folder, "a folder"));
    }
    check(folder, &found, Trust::UsAndRoot)
}

/// Returns the handler of that name, if there is one; it must be ours or root's alone.
pub(super) fn check_handler(folder: &Path, name: &str) -> Result<Option<PathBuf>, Untrusted> {
    let path = folder.join(name);
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(unseen(&path, source)),
    };
    if !found.is_file() {
        return Err(kind(&path, "a regular file"));
    }
    check_folder(folder)?;
    check(&path, &found, Trust::UsAndRoot)?;
    match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(Some(path)),
        Err(_) => Err(kind(&path, "executable")),
    }
}

/// Whether no file can have that name here, which a poster may have chosen too long.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename
    )
}

fn check(path: &Path, found: &Metadata, trust: Trust) -> Result<(), Untrusted> {
    let owner = found.uid();
    let is_trusted =
        owner == geteuid().as_raw() || (matches!(trust, Trust::UsAndRoot) && owner == 0);
    let mode = found.permissions().mode() & 0o7777;
    match (is_trusted, mode & 0o022) {
        (false, _) => Err(Untrusted::Foreign {
            path: path.to_owned(),
            owner,
        }),
        (true, 0) => Ok(()),
        (true, _) => Err(Untrusted::Writable {
            path: path.to_owned(),
            mode,
        }),
    }
}

fn look(path: &Path) -> Result<Metadata, Untrusted> {
    fs::metadata(path).map_err(|source| unseen(path, source))
}

fn unseen(path: &Path, source: io::Error) -> Untrusted {
    Untrusted::Unseen {
        path: path.to_owned(),
        source,
    }
}

fn kind(path: &Path, wanted: &'static str) -> Untrusted {
    Untrusted::Kind {
        path: path.to_owned(),
        wanted,
    }
}
