//! The first process of a container: reaps orphans and passes signals on.
//!
//! The kernel shields this process from most signals and gives it all orphans. So the program runs as a child of
//! itself, and this process does nothing else.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use nix::sys::{
    signal::{self as nix_signal, SigSet},
    signalfd::SignalFd,
};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::signal::{ENDING, ENDING_TOO, STEERING, code_of};

pub(crate) fn is_first() -> bool {
    getpid().is_init()
}

/// Call it while there is only one thread.
pub(crate) fn stand() -> io::Result<u8> {
    let signals: SigSet = ENDING
        .into_iter()
        .chain(ENDING_TOO)
        .chain(STEERING)
        .chain([Signal::CHILD])
        .filter_map(|signal| nix_signal::Signal::try_from(signal.as_raw()).ok())
        .collect();
    // Before the child starts, so that no signal is lost. The child unblocks the signals that it catches.
    signals.thread_block()?;
    let inbox = SignalFd::new(&signals)?;
    let child = Command::new("/proc/self/exe")
        .arg0("jobboard")
        .args(std::env::args_os().skip(1))
        .spawn()?;
    loop {
        while let Some((pid, status)) = wait(WaitOptions::NOHANG).ok().flatten() {
            if pid == Pid::from_child(&child) {
                return Ok(code_of(status.exit_status(), status.terminating_signal()));
            }
        }
        if let Some(info) = inbox.read_signal()? {
            pass_on(info.ssi_signo, info.ssi_code, &child);
        }
    }
}

fn pass_on(number: u32, code: i32, child: &Child) {
    /// The kernel's own `si_code`: a terminal has already signalled the whole group.
    const SI_KERNEL: i32 = 0x80;
    let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
    if let Some(signal) = signal.filter(|it| *it != Signal::CHILD && code != SI_KERNEL) {
        // Only we reap it, so the pid is still its own.
        let _ = kill_process(Pid::from_child(child), signal);
    }
}
