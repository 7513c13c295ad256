//! The handler directory, whose programs run by the names of jobs, and policies that other conductors publish.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, AtFlags, FileType, accessat};

use super::{ExecutionPolicy, Forbidden, Glob};
use crate::{
    job::{MAX_HANDLERS, PublishedPolicy},
    trust::{CheckedPath, OtherWriters, Trust, Untrusted, is_absent, kind, unreadable},
};

/// Directories of programs for all users: never a handler directory.
const FOR_EVERYBODY: [&str; 10] = [
    "/",
    "/bin",
    "/sbin",
    "/usr",
    "/usr/bin",
    "/usr/sbin",
    "/usr/games",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/sbin",
];

/// Whether a handler may have this name, unlike the leftovers of editors and package managers.
pub(super) fn is_name(name: &str) -> bool {
    const LEFTOVERS: [&str; 9] = [
        "~",
        ".bak",
        ".dpkg-dist",
        ".dpkg-old",
        ".orig",
        ".rej",
        ".rpmnew",
        ".rpmorig",
        ".rpmsave",
    ];
    let is_leftover = LEFTOVERS.iter().any(|end| name.ends_with(end));
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']) && !is_leftover
}

#[derive(Debug, Clone)]
pub(crate) enum Handlers {
    Directory(Directory),
    /// One command for every job, and why another conductor cannot run it.
    ForEach {
        program: PathBuf,
        argv: Vec<OsString>,
        problem: Option<String>,
    },
    /// The handlers that another conductor reports: why each cannot run, and the number of further ones.
    Published(BTreeMap<String, Option<String>>, usize),
}

impl Handlers {
    pub(super) fn find(&self, name: &str) -> Result<Option<PathBuf>, Forbidden> {
        match self {
            Self::Directory(directory) => Ok(directory.find(name)?),
            Self::ForEach { program, .. } => Ok(Some(program.clone())),
            Self::Published(handlers, more) => match handlers.get(name) {
                Some(None) => Ok(Some(name.into())),
                Some(Some(problem)) => Err(Forbidden::Refused(problem.clone())),
                None if *more > 0 => Err(Forbidden::Unpublished),
                None => Ok(None),
            },
        }
    }
}

/// A handler directory that only this user and root can change.
#[derive(Debug, Clone)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(directory: &Path) -> Result<Self, Untrusted> {
        let path = std::path::absolute(directory);
        let handlers = Self(path.map_err(|source| unreadable(directory, source))?);
        handlers.directory().map(|_| handlers)
    }

    /// `search` lists the directories of `PATH`.
    pub(crate) fn is_program_directory(&self, search: &[PathBuf]) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let Some(ours) = real(&self.0) else {
            return false;
        };
        let known = FOR_EVERYBODY.iter().map(Path::new);
        let mut all = known.chain(search.iter().map(PathBuf::as_path));
        all.any(|directory| real(directory).as_ref() == Some(&ours))
    }

    /// Holds the directory open during the search, and walks its path again each time. The result is free of links,
    /// and only this user and root can redirect it. So a script can find its own directory.
    fn find(&self, name: &str) -> Result<Option<PathBuf>, Untrusted> {
        let directory = self.directory()?;
        let handler = match directory.step(OsStr::new(name)) {
            Ok(handler) => handler,
            Err(Untrusted::Unseen { source, .. }) if is_absent(&source) => return Ok(None),
            Err(error) => return Err(error),
        };
        if FileType::from_raw_mode(handler.stat.st_mode) != FileType::RegularFile {
            return Err(kind(&handler.path, "a regular file"));
        }
        handler.check(Trust::UsAndRoot)?;
        match accessat(&directory.file, name, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(Some(handler.path)),
            Err(_) => Err(kind(&handler.path, "executable by the conductor's user")),
        }
    }

    /// Returns the names of the handlers, why each cannot run, and the number of further ones.
    pub(super) fn published(&self) -> (BTreeMap<String, Option<String>>, usize) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| is_name(name)).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(MAX_HANDLERS);
        let handlers = names.into_iter().take(MAX_HANDLERS).map(|name| {
            let problem = self.find(&name).err();
            (name, problem.map(|problem| problem.to_string()))
        });
        (handlers.collect(), more)
    }

    fn directory(&self) -> Result<CheckedPath, Untrusted> {
        let directory = CheckedPath::to(&self.0, OtherWriters::Nobody)?;
        if FileType::from_raw_mode(directory.stat.st_mode) != FileType::Directory {
            return Err(kind(&directory.path, "a directory"));
        }
        directory.check(Trust::UsAndRoot)?;
        Ok(directory)
    }
}

/// A peer may publish any number of directories, and each is tried with each pattern.
const MAX_FOLDERS: usize = 64;

/// The time for a match grows with the length of the pattern times that of the path, in bytes.
const MAX_PATH: usize = 1024;

impl ExecutionPolicy {
    /// Allows all programs and variables, and assumes that every program exists.
    pub(crate) fn unrestricted() -> Self {
        Self::of(&PublishedPolicy::default())
    }

    /// The other machine's programs are unknown: an allowed program counts as present.
    pub(crate) fn of(takes: &PublishedPolicy) -> Self {
        let globs = |texts: &Vec<String>| texts.iter().map(|it| Glob::from(&**it)).collect();
        let handlers = takes.handlers.clone();
        Self {
            programs: takes.programs.as_ref().map(globs),
            variables: takes.variables.as_ref().map(globs),
            handlers: match &takes.command {
                Some(command) => Some(Handlers::ForEach {
                    program: PathBuf::from(&command.program),
                    argv: Vec::new(),
                    problem: command.problem.clone(),
                }),
                None => handlers.map(|names| Handlers::Published(names, takes.more_handlers)),
            },
            search: takes
                .search
                .iter()
                .take(MAX_FOLDERS)
                .map(PathBuf::from)
                .collect(),
            found: None,
        }
    }

    fn is_of_peer(&self) -> bool {
        self.found.is_none()
    }

    /// Whether one of the patterns matches. A peer's long patterns match nothing.
    pub(super) fn fits(&self, globs: &[Glob], text: &OsStr) -> bool {
        let is_tried = |glob: &&Glob| !self.is_of_peer() || glob.len() <= MAX_PATH;
        let mut tried = globs.iter().filter(is_tried);
        text.to_str()
            .is_some_and(|text| tried.any(|glob| glob.fits(text)))
    }

    /// Returns the path of a posting's program, if it may exist.
    pub(super) fn elsewhere(&self, name: &str) -> Result<PathBuf, Forbidden> {
        let Some(globs) = &self.programs else {
            return Ok(name.into());
        };
        if name.len() > MAX_PATH {
            return Err(Forbidden::NotAllowed(name.to_owned()));
        }
        let places: Vec<PathBuf> = match Path::new(name).is_absolute() {
            true => vec![name.into()],
            false => self
                .search
                .iter()
                .map(|directory| directory.join(name))
                .collect(),
        };
        let mut places = places.into_iter();
        let allowed = places.find(|place| self.fits(globs, place.as_os_str()));
        allowed.ok_or_else(|| Forbidden::NotAllowed(name.to_owned()))
    }
}
