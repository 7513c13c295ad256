//! Checks of files that we trust with commands or passwords: who could change them.

mod checked_path;

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use thiserror::Error;

pub(crate) use self::checked_path::{CheckedPath, OtherWriters, require_ours};
use crate::suggest::Hint;

#[derive(Debug, Error)]
pub(crate) enum Untrusted {
    #[error("{} belongs to user {owner}, not to {}", path.display(), geteuid().as_raw())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{} is writable by other users (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} is not {wanted}", path.display())]
    Kind { path: PathBuf, wanted: &'static str },
    #[error("cannot inspect {}", path.display())]
    Unseen { path: PathBuf, source: io::Error },
}

impl Untrusted {
    pub(crate) fn remedy(&self) -> Option<Hint> {
        let (text, words, path) = match self {
            Self::Foreign { path, .. } => {
                let us = geteuid().as_raw().to_string();
                ("check the file, then run `chown {}`", us, path)
            }
            Self::Writable { path, .. } => {
                let mode = "go-w".to_owned();
                ("check the file, then run `chmod {}`", mode, path)
            }
            Self::Kind { .. } | Self::Unseen { .. } => return None,
        };
        Some(Hint::new(text, [&[&words, &path.to_string_lossy()]]))
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Trust {
    Us,
    UsAndRoot,
}

/// A poster can choose a name that is too long for any file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename
    )
}

/// Checks that a file has a trusted owner, and that no other user can write it.
pub(crate) fn check(path: &Path, owner: u32, mode: u32, trust: Trust) -> Result<(), Untrusted> {
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

pub(crate) fn unreadable(path: &Path, source: io::Error) -> Untrusted {
    Untrusted::Unseen {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn kind(path: &Path, wanted: &'static str) -> Untrusted {
    Untrusted::Kind {
        path: path.to_owned(),
        wanted,
    }
}
