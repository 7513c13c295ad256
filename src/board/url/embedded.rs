//! `sqlite:PATH`: a board in a file on this machine.

use std::{fmt, path::PathBuf};

use super::{error::InvalidUrl, query::UrlQuery};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EmbeddedUrl {
    pub(crate) path: PathBuf,
    /// Whether each change waits for the disk, so that a power failure loses none.
    pub(crate) sync_full: bool,
    /// Whether to create the directory; false keeps a misspelt path from creating one.
    pub(crate) makes_directory: bool,
}

impl EmbeddedUrl {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            sync_full: false,
            makes_directory: false,
        }
    }
}

/// Parses the part after `sqlite:`.
///
/// The path is literal up to the first `?`: users copy it from elsewhere, and `%` has no meaning in it.
pub(super) fn parse(rest: &str) -> Result<EmbeddedUrl, InvalidUrl> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    check_path(path)?;
    let mut query = UrlQuery::parse(query, &["sync"])?;
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
        // Elsewhere `sqlite:///jobs.db` is a relative path; ours would be absolute. Another URL may have a password,
        // which errors would repeat with the path.
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
