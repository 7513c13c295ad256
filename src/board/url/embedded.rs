//! `sqlite:PATH`: a board in a file on this machine.

use std::{fmt, path::PathBuf};

use super::{error::InvalidUrl, query::Query};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EmbeddedUrl {
    pub(crate) path: PathBuf,
    /// Whether each change waits for the disk, so that a power failure loses none.
    pub(crate) sync_full: bool,
    /// Whether the folder is made with the file; a misspelt path makes none.
    pub(crate) makes_folder: bool,
}

impl EmbeddedUrl {
    /// Points at a file, with all else as it is by default.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            sync_full: false,
            makes_folder: false,
        }
    }
}

/// Parses what follows `sqlite:`.
///
/// The path is taken as it is, up to the first `?`: people copy it from elsewhere, and a `%` in
/// it is nothing special to them.
pub(super) fn parse(rest: &str) -> Result<EmbeddedUrl, InvalidUrl> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    check_path(path)?;
    let mut query = Query::parse(query, &["sync"])?;
    let choices = [("normal", false), ("full", true)];
    let sync_full = query.choice("sync", "use full or normal", &choices)?;
    Ok(EmbeddedUrl {
        sync_full: sync_full.unwrap_or_default(),
        ..EmbeddedUrl::new(path)
    })
}

fn check_path(path: &str) -> Result<(), InvalidUrl> {
    match path {
        "" => Err(InvalidUrl::NoFile),
        ":memory:" => Err(InvalidUrl::InMemory),
        // Elsewhere `sqlite:///jobs.db` is a relative path; ours would be an absolute one.
        // And another URL may have a password, which errors would repeat with the path.
        path if path.starts_with("//") || path.contains("://") => Err(InvalidUrl::FileWithHost),
        path if path == "~" || path.starts_with("~/") => Err(InvalidUrl::Tilde),
        _ => Ok(()),
    }
}

impl fmt::Display for EmbeddedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = if self.sync_full { "?sync=full" } else { "" };
        write!(f, "sqlite:{}{query}", self.path.display())
    }
}
