//! Starts commands. All commands share the inherited environment, which is prepared once.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, OsStr, OsString},
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
};

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn},
    sys::signal::{self as nix_signal, SigSet},
    unistd::Pid as NixPid,
};
use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal},
};

use super::{
    command::{CommandSpec, DETAILS_FILE, Input, NotRun, OutputTarget, details_file},
    guard::CONDUCTOR,
    label::{Label, MARK},
    leash::{Leash, StartAnswer},
    signal::Ignored,
};
use crate::job::Owner;

/// For each command the standard library would copy and sort our environment, open `/dev/null` and query every
/// signal. For short commands that is a good part of their cost.
#[derive(Debug)]
pub(crate) struct Spawner {
    variables: Vec<CString>,
    nothing: File,
    nowhere: File,
    attributes: PosixSpawnAttr,
    leash: Leash,
}

/// Ties a command and its descendants to this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bonds {
    pub(crate) label: Label,
    /// The kernel sends this to the command itself when we die.
    pub(crate) at_our_death: Option<Signal>,
}

pub(crate) type Pipes = [Option<OwnedFd>; 2];

pub(crate) struct Spawned {
    pub(crate) leader: Pid,
    pub(crate) pipes: Pipes,
    /// Until this arrives, the new process does not run the command's program yet.
    pub(crate) answer: Option<StartAnswer>,
}

type Around<'a> = (PosixSpawnFileActions, Vec<Cow<'a, CStr>>);

struct Streams {
    actions: PosixSpawnFileActions,
    pipes: Pipes,
    /// The command's ends, open until it has started.
    _theirs: Vec<OwnedFd>,
}

impl Spawner {
    pub(crate) fn ours() -> io::Result<Self> {
        let variables = std::env::vars_os();
        let nothing = File::open("/dev/null")?;
        Ok(Self {
            // The kernel passes no NUL.
            variables: variables
                .filter_map(|(name, value)| variable(&name, &value).ok())
                .collect(),
            leash: Leash::new(nothing.as_raw_fd()),
            nothing,
            nowhere: File::options().write(true).open("/dev/null")?,
            attributes: attributes()?,
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
        // From a job that we may be part of.
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

    /// No code runs between fork and exec: that would make the kernel copy our page tables.
    pub(crate) fn start(
        &self,
        command: &CommandSpec,
        bonds: Option<Bonds>,
    ) -> Result<Spawned, NotRun> {
        let opened = (command.details.as_deref().map(details_file).transpose())
            .and_then(|details| Ok((self.streams(command, details.as_ref())?, details)));
        let (streams, details) = opened.map_err(|source| {
            let program = command.program.clone();
            NotRun::Failed { program, source }
        })?;
        let Streams {
            actions,
            pipes,
            _theirs,
        } = streams;
        let _handed_down = bonds.and_then(|bonds| bonds.label.hand_down());
        let at_our_death = bonds.and_then(|bonds| bonds.at_our_death);
        let environment = self.environment(&command.env, details.as_ref());
        let around = environment.map(|environment| (actions, environment));
        let started = around.and_then(|around| match (at_our_death, &command.cwd) {
            (None, None) => Ok((self.spawn(&command.program, &command.argv, &around)?, None)),
            _ => self.start_leashed(at_our_death, command, around),
        });
        let (leader, answer) =
            started.map_err(|source| NotRun::because(&command.program, source))?;
        Ok(Spawned {
            leader,
            pipes,
            answer,
        })
    }

    fn streams(&self, command: &CommandSpec, details: Option<&File>) -> io::Result<Streams> {
        let mut actions = PosixSpawnFileActions::init()?;
        let (mut pipes, mut theirs) = (Pipes::default(), Vec::new());
        match &command.input {
            Input::Inherit => {}
            Input::Nothing => actions.add_dup2(self.nothing.as_raw_fd(), 0)?,
            Input::Text(text) => {
                let file = Input::file(text)?;
                actions.add_dup2(file.as_raw_fd(), 0)?;
                theirs.push(file.into());
            }
        }
        let outputs = [command.output, command.errors].into_iter().zip(1..);
        for ((output, target), pipe) in outputs.zip(&mut pipes) {
            match output {
                OutputTarget::Inherit => {}
                OutputTarget::Discard => actions.add_dup2(self.nowhere.as_raw_fd(), target)?,
                OutputTarget::Pipe => {
                    let (ours, end) = pipe_with(PipeFlags::CLOEXEC)?;
                    actions.add_dup2(end.as_raw_fd(), target)?;
                    *pipe = Some(ours);
                    theirs.push(end);
                }
            }
        }
        if let Some(file) = details {
            // Onto itself: the command inherits it, and no inherited descriptor has this number.
            actions.add_dup2(file.as_raw_fd(), file.as_raw_fd())?;
        }
        Ok(Streams {
            actions,
            pipes,
            _theirs: theirs,
        })
    }

    fn start_leashed(
        &self,
        at_our_death: Option<Signal>,
        command: &CommandSpec,
        mut around: Around<'_>,
    ) -> io::Result<(Pid, Option<StartAnswer>)> {
        let (answer, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        (around.0).add_dup2(theirs.as_raw_fd(), self.leash.answer)?;
        let start = |program: &Path, argv: &[_]| self.spawn(program, argv, &around);
        let leader = self.leash.start(command, at_our_death, start)?;
        Ok((leader, Some(StartAnswer(answer))))
    }

    fn spawn(
        &self,
        program: &Path,
        argv: &[OsString],
        (actions, environment): &Around<'_>,
    ) -> io::Result<Pid> {
        let arguments = argv.iter().map(|it| text(it.as_bytes()));
        let pid = posix_spawn(
            program,
            actions,
            &self.attributes,
            &arguments.collect::<io::Result<Vec<_>>>()?,
            environment,
        )?;
        Pid::from_raw(pid.as_raw()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn environment(
        &self,
        changes: &[(OsString, Option<OsString>)],
        details: Option<&File>,
    ) -> io::Result<Vec<Cow<'_, CStr>>> {
        let changed = |it: &CStr| changes.iter().any(|(name, _)| is_called(it, name));
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

/// Makes a command lead a group, with the signal actions that a shell gives its programs.
fn attributes() -> io::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    attributes.set_pgroup(NixPid::from_raw(0))?;
    attributes.set_sigmask(&SigSet::empty())?;
    attributes.set_sigdefault(&defaults())?;
    Ok(attributes)
}

/// Returns the signals to reset: all that we were not started to ignore, and SIGPIPE, which every Rust program
/// ignores.
///
/// The C library queries the action of every other signal, and sets it anyway.
fn defaults() -> SigSet {
    let ignored = Ignored::now();
    let mut defaults = match ignored.has_realtime() {
        // Real-time signals have no names to remove them by.
        true => SigSet::empty(),
        false => SigSet::all(),
    };
    for signal in nix_signal::Signal::iterator() {
        let is_ignored = Signal::from_named_raw(signal as i32).is_some_and(|it| ignored.has(it));
        match is_ignored && signal != nix_signal::Signal::SIGPIPE {
            true => defaults.remove(signal),
            false => defaults.add(signal),
        }
    }
    defaults
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
