//! Who could change what we are about to trust.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use thiserror::Error;

use super::way::{Others, Way};

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
pub(super) enum Trust {
    Us,
    UsAndRoot,
}

/// Checks that nobody but us can post to an embedded board, or put another one in its place.
///
/// A board that does not exist yet will be ours alone; where it is to be must be so already.
pub(crate) fn check_board(path: &Path) -> Result<(), Untrusted> {
    let board = match Way::to(path, Others::OurGroup) {
        Ok(board) => board.path,
        Err(Untrusted::Unseen { path: gone, source }) if is_absent(&source) => {
            let path = std::path::absolute(path).map_err(|source| unseen(path, source))?;
            if !path.parent().is_some_and(Path::exists) {
                // We make its folder; nobody else is to make it before.
                let there = gone.parent().unwrap_or(&gone);
                return Way::to(there, Others::OurGroup)?.check_place(Others::OurGroup);
            }
            gone
        }
        Err(error) => return Err(error),
    };
    let folder = board.parent().ok_or_else(|| kind(&board, "a file"))?;
    Way::to(folder, Others::OurGroup)?.check(Trust::Us)?;
    let name = board.file_name().unwrap_or_default().as_encoded_bytes();
    // What lies beside the board is part of it: the journal, the shared memory, the signal.
    for entry in fs::read_dir(folder).map_err(|source| unseen(folder, source))? {
        let entry = entry.map_err(|source| unseen(folder, source))?;
        if entry.file_name().as_encoded_bytes().starts_with(name) {
            let file = entry.path();
            match fs::symlink_metadata(&file) {
                Ok(found) => check(&file, found.uid(), found.mode(), Trust::Us)?,
                // The journal comes and goes with those who have the board open.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(unseen(&file, source)),
            }
        }
    }
    Ok(())
}

/// Whether no file can have that name here, which a poster may have chosen too long.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename
    )
}

/// Checks that a file of this owner and mode belongs to those, and that nobody else can write it.
pub(super) fn check(path: &Path, owner: u32, mode: u32, trust: Trust) -> Result<(), Untrusted> {
    let is_trusted =
        owner == geteuid().as_raw() || (matches!(trust, Trust::UsAndRoot) && owner == 0);
    let mode = mode & 0o7777;
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

pub(super) fn unseen(path: &Path, source: io::Error) -> Untrusted {
    Untrusted::Unseen {
        path: path.to_owned(),
        source,
    }
}

pub(super) fn kind(path: &Path, wanted: &'static str) -> Untrusted {
    Untrusted::Kind {
        path: path.to_owned(),
        wanted,
    }
}
