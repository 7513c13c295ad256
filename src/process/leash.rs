//! A command that dies with whoever started it.
//!
//! The kernel grants that to nobody but the process itself. So it is this program for a moment,
//! which asks for it and becomes the command.

use std::{
    convert::Infallible,
    ffi::{CString, OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    iter::once,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::Path,
};

use nix::unistd::execv;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, signal::unix::SignalKind};

use super::signal::catch_for_good;

pub(crate) const WORD: &str = "__leash";

/// This very program, even if its file was replaced meanwhile.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// Our end of what a command says that could not be started.
pub(crate) struct Leash {
    signal: Signal,
    answer: OwnedFd,
    /// Theirs, which they inherit.
    theirs: OwnedFd,
}

/// What a command says that has been started, until it is one.
#[derive(Debug)]
pub(crate) struct Answer(OwnedFd);

impl Leash {
    /// Makes one for a command that gets this signal when we die.
    pub(crate) fn new(signal: Signal) -> io::Result<Self> {
        let (answer, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        // Nothing else is started until this is dropped.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        Ok(Self {
            signal,
            answer,
            theirs,
        })
    }

    /// Returns the arguments with which [`PROGRAM`] becomes a command.
    pub(crate) fn arguments(&self, program: &Path, argv: &[OsString]) -> Vec<OsString> {
        let own = [
            OsString::from("jobboard"),
            WORD.into(),
            getpid().as_raw_nonzero().to_string().into(),
            self.signal.as_raw().to_string().into(),
            self.theirs.as_raw_fd().to_string().into(),
            program.into(),
        ];
        own.into_iter().chain(argv.iter().cloned()).collect()
    }

    /// Leaves their end to the command, which has just been started.
    pub(crate) fn answer(self) -> Answer {
        Answer(self.answer)
    }
}

impl Answer {
    /// Waits until the command is one, or says why it cannot be.
    pub(crate) async fn hear(self) -> io::Result<()> {
        let mut told = String::new();
        let mut answer = Receiver::from_owned_fd(self.0)?;
        answer.read_to_string(&mut told).await?;
        match told.parse() {
            Ok(number) => Err(io::Error::from_raw_os_error(number)),
            Err(_) => Ok(()),
        }
    }
}

/// Becomes the command that the arguments behind [`WORD`] name, which dies with its parent.
///
/// Returns only if that cannot be; whoever waits for it has been told then.
pub(crate) fn become_command(
    mut arguments: impl Iterator<Item = OsString>,
) -> io::Result<Infallible> {
    let mut next = || arguments.next().ok_or(io::ErrorKind::InvalidInput);
    let (parent, signal, answer) = (number(&next()?)?, number(&next()?)?, number(&next()?)?);
    let (program, name) = (next()?, next()?);
    // Opened anew it is closed by the start of the command, as the one that was inherited is not.
    let mut told = File::options()
        .write(true)
        .open(format!("/proc/self/fd/{answer}"))?;
    nix::unistd::close(answer)?;
    let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    die_with(parent, signal)
        .and_then(|()| execute(program, once(name).chain(arguments)))
        .inspect_err(|failed| {
            // Whoever is to hear it may be dead.
            let _ = write!(told, "{}", failed.raw_os_error().unwrap_or_default());
        })
}

fn die_with(parent: i32, signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal))?;
    match getppid() == Pid::from_raw(parent) {
        true => Ok(()),
        // It is dead already, and so should we be.
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

fn execute(program: OsString, argv: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    // A broken pipe is to end it, as it ends no Rust program: what is caught is not inherited, unlike
    // what is ignored.
    catch_for_good(SignalKind::pipe())?;
    let argv: io::Result<Vec<_>> = argv.map(text).collect();
    // The standard library would have a shell run what is no program.
    Ok(execv(&text(program)?, &argv?)?)
}

fn text(argument: OsString) -> io::Result<CString> {
    Ok(CString::new(argument.into_vec())?)
}

fn number(text: &OsStr) -> io::Result<i32> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
