//! The front: the process that the shell knows, while its child, the worker, does the work.
//!
//! A shell may stop its child at any time, but a lease needs a running process. So the shell stops the front, which
//! only passes signals on.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
};

use nix::sys::{
    prctl::set_name,
    signal::{self as nix_signal, SigSet},
};
use rustix::{
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
    termios::Termios,
};

use super::{
    forwarder::{Forwarder, ReceivedSignal},
    group::{Stat, own_group},
    signal::{ENDING, Ignored, code_of, set_of},
    terminal::{Terminal, Tty},
};

/// The variable that names the front to a worker. Commands do not inherit it.
pub(crate) const MARK: &str = "JOBBOARD_FRONT";

#[derive(Debug)]
pub(crate) enum Role {
    /// It was the front, and exits with this code.
    Done(u8),
    /// The worker of a front, with the front's terminal.
    Worker(Terminal),
    Alone,
}

/// Splits this process in two if a command runs on a terminal.
///
/// `mark` is the value of [`MARK`] in the environment; `args` are all arguments without the program's name. Returns
/// in the worker, and in the front once the worker has ended. Call it while there is only one thread.
pub(crate) fn enter(mark: Option<&OsStr>, args: &[OsString]) -> io::Result<Role> {
    let front = mark.and_then(|mark| Pid::from_raw(mark.to_str()?.parse().ok()?));
    // Without a group leader inside the container the terminal cannot be passed on.
    let terminal = Tty::ours().and_then(|tty| Some((tty, own_group()?)));
    match (front, terminal) {
        (Some(front), terminal) => hold(front, terminal),
        (None, Some((tty, _))) => Front::start(tty, args)?.forward().map(Role::Done),
        (None, None) => Ok(Role::Alone),
    }
}

fn hold(front: Pid, terminal: Option<(Tty, Pid)>) -> io::Result<Role> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Some(front) {
        return Ok(Role::Done(128 + 15));
    }
    set_of(forwarded().chain([Signal::CHILD])).thread_unblock()?;
    // A process started from `/proc/self/exe` would be listed as "exe".
    let _ = set_name(c"jobboard");
    Ok(match terminal {
        Some((tty, group)) => Role::Worker(Terminal::of_front(front, group, tty)),
        None => Role::Alone,
    })
}

fn forwarded() -> impl Iterator<Item = Signal> {
    let ignored = Ignored::now();
    let signals = ENDING.into_iter().chain([Signal::TSTP, Signal::CONT]);
    signals.filter(move |&signal| !ignored.has(signal))
}

struct Front {
    tty: Tty,
    modes: Option<Termios>,
    worker: Forwarder,
    /// Whether the shell has our group in the foreground, whichever group uses the terminal.
    in_foreground: bool,
}

impl Front {
    fn start(tty: Tty, args: &[OsString]) -> io::Result<Self> {
        let worker = Forwarder::start(forwarded(), |command| {
            command.args(args).env(MARK, getpid().to_string())
        })?;
        Ok(Self {
            modes: tty.modes(),
            in_foreground: has_our_group(&tty),
            tty,
            worker,
        })
    }

    fn forward(mut self) -> io::Result<u8> {
        loop {
            match self.worker.receive()? {
                Some(received) if received.signal != Signal::CHILD => self.pass_on(&received)?,
                _ => {
                    if let Some(status) = self.worker.child.try_wait()? {
                        return Ok(self.conclude(status));
                    }
                }
            }
        }
    }

    fn pass_on(&mut self, received: &ReceivedSignal) -> io::Result<()> {
        let signal = received.signal;
        let is_from_worker = received.sender == Some(self.worker.child.id());
        // Before the command starts and after it ends, the terminal signals both processes.
        let worker_has_it = received.sender.is_none() && self.is_together();
        if signal == Signal::CONT {
            self.in_foreground = has_our_group(&self.tty);
        }
        if !is_from_worker && !worker_has_it {
            self.worker.pass_on(signal);
        }
        // Otherwise the worker stops the command first, and then this process.
        if signal == Signal::TSTP && (is_from_worker || self.is_together()) {
            act_by_default(nix_signal::SIGTSTP)?;
        }
        Ok(())
    }

    fn is_together(&self) -> bool {
        Stat::of(self.worker.child_pid()).is_some_and(|stat| stat.group == own_group())
    }

    /// Ends like the worker, which ended like the command.
    fn conclude(&self, status: ExitStatus) -> u8 {
        // A killed worker left the terminal with the command, in any state.
        if status.signal().is_some()
            && self.in_foreground
            && let Some(group) = own_group()
        {
            self.tty.give_foreground(group);
            self.tty.set_modes(self.modes.as_ref());
        }
        let code = code_of(status.code(), status.signal());
        if code == 130 {
            // A shell continues its loop or script unless it sees the interruption.
            let _ = act_by_default(nix_signal::SIGINT);
        }
        code
    }
}

fn has_our_group(tty: &Tty) -> bool {
    own_group().is_some_and(|group| tty.foreground() == Some(group))
}

fn act_by_default(signal: nix_signal::Signal) -> io::Result<()> {
    let only = SigSet::from(signal);
    nix_signal::raise(signal)?;
    only.thread_unblock()?;
    only.thread_block()?;
    Ok(())
}
