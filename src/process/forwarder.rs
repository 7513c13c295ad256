//! A process that stands in for its child: it runs this program again, and only passes signals on to it.
//!
//! The first process of a container is one: the kernel shields it from most signals and gives it all orphans.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use nix::{
    errno::Errno,
    sys::signalfd::{SfdFlags, SignalFd},
};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::signal::{ENDING, ENDING_TOO, STEERING, code_of, set_of};

pub(super) struct Forwarder {
    inbox: SignalFd,
    pub(super) child: Child,
}

pub(super) struct ReceivedSignal {
    pub(super) signal: Signal,
    /// `None` for a signal of the kernel, such as one from the terminal.
    pub(super) sender: Option<u32>,
}

impl Forwarder {
    /// Starts this program as a child; call it while there is only one thread. `command` has the arguments.
    ///
    /// The signals are blocked first, so that none is lost. The child unblocks the signals that it catches.
    pub(super) fn start(
        signals: impl IntoIterator<Item = Signal>,
        command: impl FnOnce(&mut Command) -> &mut Command,
    ) -> io::Result<Self> {
        let signals = set_of(signals.into_iter().chain([Signal::CHILD]));
        signals.thread_block()?;
        Ok(Self {
            inbox: SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?,
            child: command(Command::new("/proc/self/exe").arg0("jobboard")).spawn()?,
        })
    }

    pub(super) fn receive(&self) -> io::Result<Option<ReceivedSignal>> {
        const SI_KERNEL: i32 = 0x80;
        let info = match self.inbox.read_signal() {
            Ok(Some(info)) => info,
            Ok(None) | Err(Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let signal = i32::try_from(info.ssi_signo).ok();
        let received = |signal| ReceivedSignal {
            signal,
            sender: (info.ssi_code != SI_KERNEL).then_some(info.ssi_pid),
        };
        Ok(signal.and_then(Signal::from_named_raw).map(received))
    }

    pub(super) fn pass_on(&self, signal: Signal) {
        // Only this process reaps the child, so the pid is still its own.
        let _ = kill_process(self.child_pid(), signal);
    }

    pub(super) fn child_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

pub(crate) fn is_first() -> bool {
    getpid().is_init()
}

/// Reaps orphans and passes signals on. Call it while there is only one thread.
pub(crate) fn run() -> io::Result<u8> {
    let signals = ENDING.into_iter().chain(ENDING_TOO).chain(STEERING);
    let forwarder = Forwarder::start(signals, |command| command.args(std::env::args_os().skip(1)))?;
    loop {
        while let Some((pid, status)) = wait(WaitOptions::NOHANG).ok().flatten() {
            if pid == forwarder.child_pid() {
                return Ok(code_of(status.exit_status(), status.terminating_signal()));
            }
        }
        // A terminal has already signalled the whole group.
        let received = forwarder.receive()?.filter(|it| it.sender.is_some());
        if let Some(received) = received.filter(|it| it.signal != Signal::CHILD) {
            forwarder.pass_on(received.signal);
        }
    }
}
