//! A command that dies with its parent, or starts in another directory.
//!
//! Only a process itself can ask the kernel for these. So another program starts first, asks, and then becomes the
//! command. It has three hundred bytes in memory; where such files may not run, it is this very program.

mod small;

use std::{
    convert::Infallible,
    ffi::{CString, OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::unistd::execv;
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
    process::{Pid, Signal, chdir, getpid, getppid, set_parent_process_death_signal},
};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, signal::unix::SignalKind};

use super::{command::CommandSpec, signal::catch_for_good};

pub(crate) const WORD: &str = "__leash";

/// This very program, even if its file was replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";

/// The kernel ends a leashed command with the thread that started it, so that must be the main thread.
#[derive(Debug)]
pub(super) struct Leash {
    /// `None` where it cannot be made.
    small: Option<File>,
    is_refused: AtomicBool,
    /// The descriptor for the error if the command cannot start.
    pub(super) answer: i32,
}

#[derive(Debug)]
pub(crate) struct StartAnswer(pub(super) OwnedFd);

impl Leash {
    /// `answer` is a descriptor that commands do not use.
    pub(super) fn new(answer: i32) -> Self {
        Self {
            small: small(answer).ok(),
            is_refused: AtomicBool::new(false),
            answer,
        }
    }

    /// Calls `start` with the program and the arguments that become a command.
    pub(super) fn start<T>(
        &self,
        command: &CommandSpec,
        at_our_death: Option<Signal>,
        start: impl Fn(&Path, &[OsString]) -> io::Result<T>,
    ) -> io::Result<T> {
        let signal = at_our_death.and_then(|it| u8::try_from(it.as_raw()).ok());
        let folder = command.cwd.as_deref().unwrap_or(Path::new(""));
        let numbers = [getpid().as_raw_nonzero().get(), self.answer];
        let [parent, answer] = numbers.map(|it| it.to_string().into());
        let mut argv = vec!["jobboard".into(), WORD.into(), parent, answer];
        let own = argv.len();
        argv.push(OsString::from_vec(signal.into_iter().collect()));
        argv.extend([folder, &command.program].map(OsString::from));
        argv.extend_from_slice(&command.argv);
        if let Some(small) = &self.small
            && !self.is_refused.load(Ordering::Relaxed)
        {
            let program = format!("/proc/self/fd/{}", small.as_raw_fd());
            match start(program.as_ref(), &argv[own..]) {
                Err(error) if is_refusal(&error) => self.is_refused.store(true, Ordering::Relaxed),
                started => return started,
            }
        }
        start(OURSELVES.as_ref(), &argv)
    }
}

fn small(answer: i32) -> io::Result<File> {
    let image = small::image(getpid().as_raw_nonzero().get(), answer);
    let image = image.ok_or(io::ErrorKind::Unsupported)?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("leash", flags | MemfdFlags::EXEC);
    // Kernels before 6.3 know neither that flag nor files in memory that cannot run.
    let file = match file {
        Err(Errno::INVAL) => memfd_create("leash", flags),
        file => file,
    };
    let mut file = File::from(file?);
    file.write_all(&image)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SEAL)?;
    // The kernel runs no file that is open for writing.
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn is_refusal(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    error.is_some_and(|it| [Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::NOENT].contains(&it))
}

impl StartAnswer {
    pub(crate) async fn hear(self) -> io::Result<()> {
        let mut number = Vec::new();
        Receiver::from_owned_fd(self.0)?
            .read_to_end(&mut number)
            .await?;
        match number.try_into() {
            Ok(number) => Err(io::Error::from_raw_os_error(-i32::from_ne_bytes(number))),
            Err(_) => Ok(()),
        }
    }
}

/// Returns only if it cannot become the command, after reporting the error.
pub(crate) fn become_command(
    mut arguments: impl Iterator<Item = OsString>,
) -> io::Result<Infallible> {
    let mut next = || arguments.next().ok_or(io::ErrorKind::InvalidInput);
    let (parent, answer) = (number(&next()?)?, number(&next()?)?);
    let (signal, folder, program) = (next()?, next()?, next()?);
    // A fresh descriptor closes when the command starts; the inherited one does not.
    let mut told = File::options()
        .write(true)
        .open(format!("/proc/self/fd/{answer}"))?;
    nix::unistd::close(answer)?;
    let signal = signal.as_bytes().first();
    let signal = signal.and_then(|&it| Signal::from_named_raw(it.into()));
    prepare(signal, parent, &folder)
        .and_then(|()| execute(program, arguments))
        .inspect_err(|failed| {
            let number = -failed.raw_os_error().unwrap_or_default();
            // The reader may be dead.
            let _ = told.write_all(&number.to_ne_bytes());
        })
}

fn prepare(signal: Option<Signal>, parent: i32, folder: &OsStr) -> io::Result<()> {
    set_parent_process_death_signal(signal)?;
    if getppid() != Pid::from_raw(parent) {
        // The parent is dead already, so exit too.
        return Err(io::ErrorKind::NotFound.into());
    }
    if !folder.is_empty() {
        chdir(folder)?;
    }
    Ok(())
}

fn execute(program: OsString, argv: impl Iterator<Item = OsString>) -> io::Result<Infallible> {
    // Rust programs ignore SIGPIPE, but it must end the command. A caught signal is not inherited, unlike an ignored
    // one.
    catch_for_good(SignalKind::pipe())?;
    let argv: io::Result<Vec<_>> = argv.map(text).collect();
    // The standard library would pass an invalid program to a shell.
    Ok(execv(&text(program)?, &argv?)?)
}

fn text(argument: OsString) -> io::Result<CString> {
    Ok(CString::new(argument.into_vec())?)
}

fn number(text: &OsStr) -> io::Result<i32> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
