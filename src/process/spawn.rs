//! Starts commands. All commands share the inherited environment, which is prepared once.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, OsStr, OsString, c_int},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
};

use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};

pub(crate) use super::vfork::ChildLifetime;
use super::{
    command::{CommandSpec, DETAILS_FILE, Input, NotRun, OutputTarget, details_file},
    guard::CONDUCTOR,
    label::MARK,
    signal::Ignored,
    vfork::ChildSetup,
};
use crate::job::Owner;

/// For each command the standard library would copy and sort our environment, open `/dev/null` and query every
/// signal. For short commands that is a good part of their cost.
#[derive(Debug)]
pub(crate) struct Spawner {
    variables: Vec<CString>,
    nothing: File,
    nowhere: File,
    defaults: Vec<c_int>,
}

pub(crate) type Pipes = [Option<OwnedFd>; 2];

/// A standard stream of a command.
enum Stream<'a> {
    Inherited,
    Shared(&'a File),
    /// Open here until the command has started.
    Own(OwnedFd),
}

impl Stream<'_> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Inherited => None,
            Self::Shared(file) => Some(file.as_fd()),
            Self::Own(descriptor) => Some(descriptor.as_fd()),
        }
    }
}

impl Spawner {
    pub(crate) fn ours() -> io::Result<Self> {
        let variables = std::env::vars_os();
        Ok(Self {
            // The kernel passes no NUL.
            variables: variables
                .filter_map(|(name, value)| variable(&name, &value).ok())
                .collect(),
            nothing: File::open("/dev/null")?,
            nowhere: File::options().write(true).open("/dev/null")?,
            defaults: Ignored::now().others(),
        })
    }

    /// Takes the current environment without the withheld variables, and names the conductor to its commands.
    pub(crate) fn of_conductor(
        withheld: &[&str],
        mark: &str,
        conductor: &Owner,
    ) -> io::Result<Self> {
        let mut spawner = Self::ours()?;
        for name in withheld {
            spawner.unset(name);
        }
        // This process may itself be the command of a job.
        spawner.unset(DETAILS_FILE);
        spawner.set(MARK, mark)?;
        spawner.set(CONDUCTOR, &conductor.to_string())?;
        Ok(spawner)
    }

    fn unset(&mut self, name: &str) {
        self.variables
            .retain(|variable| !is_called(variable, name.as_ref()));
    }

    fn set(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.unset(name);
        self.variables
            .push(variable(name.as_ref(), value.as_ref())?);
        Ok(())
    }

    /// Returns the leader of the command's group, and our ends of its pipes.
    pub(crate) fn start(
        &self,
        command: &CommandSpec,
        lifetime: Option<ChildLifetime>,
    ) -> Result<(Pid, Pipes), NotRun> {
        let failed = |source| {
            let program = command.program.clone();
            NotRun::Failed { program, source }
        };
        let details = command.details.as_deref().map(details_file).transpose();
        let details = details.map_err(failed)?;
        let (streams, pipes) = self.streams(command).map_err(failed)?;
        let setup = || {
            let argv = command.argv.iter().map(|it| text(it.as_bytes()));
            let path = |it: &Path| text(it.as_os_str().as_bytes());
            ChildSetup {
                program: path(&command.program)?,
                argv: argv.collect::<io::Result<_>>()?,
                environment: self.environment(&command.env, details.as_ref())?,
                directory: command.cwd.as_deref().map(path).transpose()?,
                streams: streams.each_ref().map(Stream::descriptor),
                kept: details.as_ref().map(AsFd::as_fd),
                lifetime,
                defaults: &self.defaults,
            }
            .start()
        };
        let leader = setup().map_err(|source| NotRun::because(&command.program, source))?;
        Ok((leader, pipes))
    }

    fn streams(&self, command: &CommandSpec) -> io::Result<([Stream<'_>; 3], Pipes)> {
        let input = match &command.input {
            Input::Inherit => Stream::Inherited,
            Input::Nothing => Stream::Shared(&self.nothing),
            Input::Text(text) => Stream::Own(Input::file(text)?.into()),
        };
        let output = |target| {
            Ok::<_, io::Error>(match target {
                OutputTarget::Inherit => (Stream::Inherited, None),
                OutputTarget::Discard => (Stream::Shared(&self.nowhere), None),
                OutputTarget::Pipe => {
                    let (ours, end) = pipe_with(PipeFlags::CLOEXEC)?;
                    (Stream::Own(end), Some(ours))
                }
            })
        };
        let (errors, from_errors) = output(command.errors)?;
        let (output, from_output) = output(command.output)?;
        Ok(([input, output, errors], [from_output, from_errors]))
    }

    fn environment(
        &self,
        changes: &[(OsString, Option<OsString>)],
        details: Option<&File>,
    ) -> io::Result<Vec<Cow<'_, CStr>>> {
        let changed = |it: &CStr| {
            let has_details = details.is_some() && is_called(it, DETAILS_FILE.as_ref());
            has_details || changes.iter().any(|(name, _)| is_called(it, name))
        };
        let kept = self.variables.iter().filter(|it| !changed(it));
        let mut all = Vec::with_capacity(self.variables.len() + changes.len());
        all.extend(kept.map(|it| Cow::Borrowed(it.as_c_str())));
        for (at, (name, value)) in changes.iter().enumerate() {
            let is_last = !changes[at + 1..].iter().any(|(later, _)| later == name);
            if let (true, Some(value)) = (is_last, value) {
                all.push(Cow::Owned(variable(name, value)?));
            }
        }
        if let Some(file) = details {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            all.push(Cow::Owned(variable(DETAILS_FILE.as_ref(), path.as_ref())?));
        }
        Ok(all)
    }
}

fn variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    let mut variable = name.to_owned().into_vec();
    variable.reserve_exact(value.len() + 2);
    variable.push(b'=');
    variable.extend_from_slice(value.as_bytes());
    text(variable)
}

fn text(bytes: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::other("the argument contains a NUL byte"))
}

fn is_called(variable: &CStr, name: &OsStr) -> bool {
    let rest = variable.to_bytes().strip_prefix(name.as_bytes());
    rest.is_some_and(|rest| rest.first() == Some(&b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(changes: &[(&str, Option<&str>)]) -> Vec<(OsString, Option<OsString>)> {
        let change = |&(name, value): &(&str, Option<&str>)| (name.into(), value.map(Into::into));
        changes.iter().map(change).collect()
    }

    fn texts(environment: &[Cow<'_, CStr>]) -> Vec<String> {
        let text = |it: &Cow<'_, CStr>| it.to_string_lossy().into_owned();
        environment.iter().map(text).collect()
    }

    #[test]
    fn command_inherits_unchanged_variables() {
        let mut spawner = Spawner::ours().unwrap();
        spawner.variables.clear();
        for (name, value) in [("A", "1"), ("AB", "2"), ("C", "3"), ("C", "4"), ("D", "5")] {
            spawner.set(name, value).unwrap();
        }
        spawner.unset("D");
        let changes = changes(&[
            ("A", Some("6")),
            ("C", None),
            ("E", Some("7")),
            ("E", Some("8")),
        ]);
        let environment = spawner.environment(&changes, None).unwrap();
        assert_eq!(texts(&environment), ["AB=2", "A=6", "E=8"]);
    }
}
