//! The policy of another conductor, as the registry tells it.

use std::path::{Path, PathBuf};

use super::{Glob, Handlers, InvalidGlob, Policy, Programs, Unfit, Variables, fits};
use crate::job::Takes;

impl Policy {
    /// What there is on the other machine is not known: a program that it may run counts as being there.
    pub(crate) fn of(takes: &Takes) -> Result<Self, InvalidGlob> {
        let globs = |texts: &[String]| -> Result<Vec<Glob>, InvalidGlob> {
            texts.iter().map(|text| text.parse()).collect()
        };
        let handlers = takes.handlers.clone();
        Ok(Self {
            programs: match &takes.programs {
                None => Programs::Any,
                Some(texts) if texts.is_empty() => Programs::None,
                Some(texts) => Programs::Like(globs(texts)?),
            },
            variables: match &takes.variables {
                None => Variables::Any,
                Some(texts) => Variables::Like(globs(texts)?),
            },
            handlers: handlers.map(|told| Handlers::Told(told, takes.more_handlers)),
            search: takes.search.iter().map(PathBuf::from).collect(),
            found: None,
        })
    }

    /// Returns where a program would be that a posting names, if it may be there.
    pub(super) fn elsewhere(&self, name: &str) -> Result<PathBuf, Unfit> {
        let Programs::Like(globs) = &self.programs else {
            return Ok(name.into());
        };
        let places: Vec<PathBuf> = match Path::new(name).is_absolute() {
            true => vec![name.into()],
            false => self.search.iter().map(|folder| folder.join(name)).collect(),
        };
        let mut places = places.into_iter();
        let allowed = places.find(|place| fits(globs, place.as_os_str()));
        allowed.ok_or_else(|| Unfit::NotAllowed(name.to_owned()))
    }
}
