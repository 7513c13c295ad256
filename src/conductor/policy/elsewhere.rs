//! The policy of another conductor, from its registry entry.

use std::path::{Path, PathBuf};

use super::{ExecutionPolicy, Forbidden, Glob, Handlers, Programs, Variables, fits};
use crate::job::Takes;

/// A peer may publish any number of directories, and each is tried with each pattern.
const MOST_FOLDERS: usize = 64;

/// The time for a match grows with the length of the pattern times that of the path, in bytes.
const LONGEST_PATH: usize = 1024;

impl ExecutionPolicy {
    /// Allows all programs and variables, and assumes that every program exists.
    pub(crate) fn unrestricted() -> Self {
        Self::of(&Takes::default())
    }

    /// The other machine's programs are unknown: an allowed program counts as present.
    pub(crate) fn of(takes: &Takes) -> Self {
        let globs = |texts: &[String]| {
            let usual = texts.iter().filter(|it| it.len() <= LONGEST_PATH);
            usual.map(|it| Glob::from(&**it)).collect()
        };
        let handlers = takes.handlers.clone();
        Self {
            programs: match &takes.programs {
                None => Programs::Any,
                Some(texts) if texts.is_empty() => Programs::None,
                Some(texts) => Programs::Like(globs(texts)),
            },
            variables: match &takes.variables {
                None => Variables::Any,
                Some(texts) => Variables::Like(globs(texts)),
            },
            handlers: handlers.map(|names| Handlers::Published(names, takes.more_handlers)),
            search: takes
                .search
                .iter()
                .take(MOST_FOLDERS)
                .map(PathBuf::from)
                .collect(),
            found: None,
        }
    }

    /// Returns the path of a posting's program, if it may exist.
    pub(super) fn elsewhere(&self, name: &str) -> Result<PathBuf, Forbidden> {
        let Programs::Like(globs) = &self.programs else {
            return Ok(name.into());
        };
        if name.len() > LONGEST_PATH {
            return Err(Forbidden::NotAllowed(name.to_owned()));
        }
        let places: Vec<PathBuf> = match Path::new(name).is_absolute() {
            true => vec![name.into()],
            false => self.search.iter().map(|folder| folder.join(name)).collect(),
        };
        let mut places = places.into_iter();
        let allowed = places.find(|place| fits(globs, place.as_os_str()));
        allowed.ok_or_else(|| Forbidden::NotAllowed(name.to_owned()))
    }
}
