//! A command that dies with its parent, or begins in another folder.
//!
//! Only a process itself can ask the kernel for these. So the command is another program first, which asks and then becomes
//! the command: one of three hundred bytes in memory, or this very program where that may not be executed.

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

use super::{command::Command, signal::catch_for_good};

pub(crate) const WORD: &str = "__leash";

/// This very program, even if its file was replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";

/// The kernel ends a leash with the thread that has started it, so that has to be the first one.
#[derive(Debug)]
pub(super) struct Leash {
    /// `None` where it cannot be made.
    small: Option<File>,
    is_refused: AtomicBool,
    /// The descriptor on which a command says that it cannot be started.
    pub(super) answer: i32,
}

/// What a command says that has been started, until it is one.
#[derive(Debug)]
pub(crate) struct Answer(pub(super) OwnedFd);

impl Leash {
    /// `answer` is a descriptor that commands have no other use for.
    pub(super) fn new(answer: i32) -> Self {
        Self {
            small: small(answer).ok(),
            is_refused: AtomicBool::new(false),
            answer,
        }
    }

    /// Has `start` called with the program and the arguments that become a command.
    pub(super) fn start<T>(
        &self,
        command: &Command,
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
    // Kernels before 6.3 do not know that flag, nor files in memory that may not be executed.
    let file = match file {
        Err(Errno::INVAL) => memfd_create("leash", flags),
        file => file,
    };
    let mut file = File::from(file?);
    file.write_all(&image)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SEAL)?;
    // What somebody may write to is not executed.
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn is_refusal(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    error.is_some_and(|it| [Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::NOENT].contains(&it))
}

impl Answer {
    /// Waits until the command is one, or says why it cannot be.
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

/// Returns only if it cannot become the command; whoever waits for it has been told then.
pub(crate) fn become_command(
    mut arguments: impl Iterator<Item = OsString>,
) -> io::Result<Infallible> {
    let mut next = || arguments.next().ok_or(io::ErrorKind::InvalidInput);
    let (parent, answer) = (number(&next()?)?, number(&next()?)?);
    let (signal, folder, program) = (next()?, next()?, next()?);
    // Opened anew it is closed by the start of the command, as the one that was inherited is not.
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
            // Whoever is to hear it may be dead.
            let _ = told.write_all(&number.to_ne_bytes());
        })
}

fn prepare(signal: Option<Signal>, parent: i32, folder: &OsStr) -> io::Result<()> {
    set_parent_process_death_signal(signal)?;
    if getppid() != Pid::from_raw(parent) {
        // It is dead already, and so should we be.
        return Err(io::ErrorKind::NotFound.into());
    }
    if !folder.is_empty() {
        chdir(folder)?;
    }
    Ok(())
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
