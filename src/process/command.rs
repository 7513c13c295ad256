//! The command of a job: its program, arguments and environment.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{self, Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, CWD, MemfdFlags, Mode, accessat, fchmod, memfd_create},
    io::Errno,
};
use serde_json::Value;
use thiserror::Error;

use super::label::JOB;
use crate::{job::Fence, trace::Span};

#[derive(Debug, Error)]
pub(crate) enum NotRun {
    #[error("program {} not found", shown(program))]
    NotFound { program: PathBuf },
    #[error("cannot execute {}: its interpreter does not exist", program.display())]
    NoInterpreter { program: PathBuf },
    #[error("cannot execute {}", program.display())]
    NotExecutable { program: PathBuf, source: io::Error },
    /// The machine has no room for another process, or this process no free descriptor.
    #[error("cannot start {}", program.display())]
    Failed { program: PathBuf, source: io::Error },
    /// The kernel would report this like a missing program.
    #[error("cannot start {}", program.display())]
    NoDirectory { program: PathBuf, source: io::Error },
}

fn shown(program: &Path) -> std::path::Display<'_> {
    let is_empty = program.as_os_str().is_empty();
    if is_empty { Path::new("''") } else { program }.display()
}

impl NotRun {
    pub(crate) fn because(program: &Path, source: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let program = program.to_owned();
        match (Errno::from_io_error(&source), source.kind()) {
            // The standard library has no kind for the first two.
            (Some(Errno::MFILE | Errno::NFILE), _) | (_, Kind::OutOfMemory | Kind::WouldBlock) => {
                Self::Failed { program, source }
            }
            (_, Kind::NotFound) if program.is_file() => Self::NoInterpreter { program },
            (_, Kind::NotFound | Kind::NotADirectory) => Self::NotFound { program },
            _ => Self::NotExecutable { program, source },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Inherit,
    Nothing,
    Text(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputTarget {
    Inherit,
    Discard,
    /// To us, through a pipe from [`Process::take_pipes`](super::child::Process::take_pipes).
    Pipe,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandSpec {
    pub(crate) program: PathBuf,
    /// The program as its arguments name it, then the arguments.
    pub(crate) argv: Vec<OsString>,
    /// Variables added to our environment, and (`None`) those removed from it.
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) input: Input,
    pub(crate) output: OutputTarget,
    pub(crate) errors: OutputTarget,
    /// Content of the file that [`DETAILS_FILE`] names.
    pub(crate) details: Option<Vec<u8>>,
}

/// Variable with the path of a file with the details of the job.
pub(super) const DETAILS_FILE: &str = "JOBBOARD_DETAILS_FILE";

impl CommandSpec {
    /// `search` is a list of directories as in `PATH`.
    pub(crate) fn here(argv: &[OsString], search: Option<&OsStr>) -> Result<Self, NotRun> {
        let name = argv.first().map_or(OsStr::new(""), OsString::as_os_str);
        // An empty entry means the current directory.
        let here = std::env::split_paths(search.unwrap_or_default());
        let directories: Vec<_> = here
            .map(|directory| Path::new(".").join(directory))
            .collect();
        Ok(Self {
            input: Input::Inherit,
            output: OutputTarget::Inherit,
            errors: OutputTarget::Inherit,
            ..Self::quiet(find(name, &directories)?, argv.to_vec())
        })
    }

    /// A command without input and output.
    pub(crate) fn quiet(program: PathBuf, argv: Vec<OsString>) -> Self {
        Self {
            program,
            argv,
            env: Vec::new(),
            cwd: None,
            input: Input::Nothing,
            output: OutputTarget::Discard,
            errors: OutputTarget::Discard,
            details: None,
        }
    }

    pub(crate) fn introduce(
        &mut self,
        uuid: &str,
        name: &str,
        attempt: u32,
        fence: &Fence,
        details: Option<&Value>,
    ) {
        self.details = Some(details_text(details).into_bytes());
        self.set(JOB, uuid);
        // No variable can contain a NUL.
        self.set("JOBBOARD_NAME", name.replace('\0', " "));
        self.set("JOBBOARD_ATTEMPT", attempt.to_string());
        self.set("JOBBOARD_FENCE", &fence.0);
    }

    pub(crate) fn check_directory(&self) -> Result<(), NotRun> {
        match self.cwd.as_deref().filter(|it| !it.is_dir()) {
            None => Ok(()),
            Some(cwd) => Err(NotRun::NoDirectory {
                program: self.program.clone(),
                source: io::Error::other(format!("the directory {} does not exist", cwd.display())),
            }),
        }
    }

    pub(crate) fn trace(&mut self, span: Option<&Span>) {
        for (name, value) in span.into_iter().flat_map(Span::variables) {
            self.env.push((name.into(), value.map(OsString::from)));
        }
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.into(), Some(value.into())));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.env.push((name.into(), None));
    }
}

pub(crate) fn details_text(details: Option<&Value>) -> String {
    details.map_or_else(|| "{}".to_owned(), Value::to_string) + "\n"
}

/// Creates the file with the details, private to our user.
///
/// The command inherits its descriptor. A file in memory ends with its last open descriptor. So no crash leaves
/// details on a disk, and no directory is needed. It costs a few microseconds.
pub(super) fn details_file(details: &[u8]) -> io::Result<fs::File> {
    let file = Input::file(details)?;
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    Ok(file)
}

impl Input {
    /// Stores a text in a file in memory: unlike a pipe it needs no writer, even if the command reads only a part.
    pub(crate) fn file(text: &[u8]) -> io::Result<fs::File> {
        let flags = MemfdFlags::CLOEXEC;
        let file = match memfd_create("input", flags | MemfdFlags::NOEXEC_SEAL) {
            // Kernels before 6.3 do not know that flag, which `vm.memfd_noexec` may require.
            Err(Errno::INVAL) => memfd_create("input", flags),
            file => file,
        };
        let file = fs::File::from(file?);
        io::Write::write_all(&mut &file, text)?;
        io::Seek::rewind(&mut &file)?;
        Ok(file)
    }
}

/// A name with a slash is a path relative to the current directory, as in a shell.
pub(crate) fn find(name: &OsStr, search: &[PathBuf]) -> Result<PathBuf, NotRun> {
    let not_found = || NotRun::NotFound {
        program: name.into(),
    };
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_encoded_bytes().contains(&b'/') {
        let program = path::absolute(name);
        let program = program.map_err(|source| NotRun::because(name.as_ref(), source))?;
        return usable(&program).map(|()| program);
    }
    let mut found_unusable = None;
    for directory in search {
        let Ok(program) = path::absolute(directory.join(name)) else {
            continue;
        };
        match usable(&program) {
            Ok(()) => return Ok(program),
            Err(error @ NotRun::NotExecutable { .. }) if program.is_file() => {
                found_unusable.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(found_unusable.unwrap_or_else(not_found))
}

fn usable(program: &Path) -> Result<(), NotRun> {
    let because = |source| NotRun::because(program, source);
    if fs::metadata(program).map_err(because)?.is_dir() {
        return Err(because(io::ErrorKind::IsADirectory.into()));
    }
    accessat(CWD, program, Access::EXEC_OK, AtFlags::EACCESS).map_err(|error| because(error.into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn resource_shortage_is_no_fault_of_the_program() {
        for lack in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN] {
            let error = NotRun::because("/bin/true".as_ref(), lack.into());
            assert!(matches!(error, NotRun::Failed { .. }), "{lack:?}");
        }
    }

    #[test]
    fn programs_are_found_as_by_a_shell() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("plain");
        fs::write(&plain, "").unwrap();
        let search = [
            "/nonexistent".into(),
            directory.path().to_owned(),
            "/bin".into(),
        ];

        let sh = find("sh".as_ref(), &search).unwrap();
        assert_eq!(sh, Path::new("/bin/sh"));
        let unusable = find("plain".as_ref(), &search);
        assert!(matches!(unusable, Err(NotRun::NotExecutable { .. })));
        let absent = find("absent".as_ref(), &search);
        assert!(matches!(absent, Err(NotRun::NotFound { .. })));

        fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("plain".as_ref(), &search).unwrap(), plain);
    }

    #[test]
    fn names_with_a_slash_are_not_searched() {
        let absent = find("./sh".as_ref(), &["/bin".into()]);
        assert!(matches!(absent, Err(NotRun::NotFound { .. })));
        let found = find("/bin/../bin/sh".as_ref(), &[]).unwrap();
        assert_eq!(found, Path::new("/bin/../bin/sh"));
        for unusable in ["/etc/passwd", "/etc"] {
            let found = find(unusable.as_ref(), &[]);
            assert!(
                matches!(found, Err(NotRun::NotExecutable { .. })),
                "{unusable}"
            );
        }
    }
}
