//! The front: the process that a shell knows, while its child, the worker, does the work.
//!
//! A shell may stop what it started at any time. The one who keeps a claim alive must go on
//! nevertheless; so the one who is stopped is another, and has nothing else to do.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, ExitStatus},
};

use nix::sys::{
    prctl::set_name,
    signal::{self as nix_signal, SigSet},
    signalfd::{SfdFlags, SignalFd},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open,
        set_parent_process_death_signal,
    },
    termios::Termios,
};
use tokio::signal::unix::SignalKind;

use super::{
    group::{Stat, own_group},
    signal::{ENDING, Ignored, catch_for_good, code_of},
    terminal::{Terminal, Tty},
};

/// The variable that tells a worker who its front is; no command may see it.
pub(crate) const MARK: &str = "JOBBOARD_FRONT";

#[derive(Debug)]
pub(crate) enum Role {
    /// It was the front, and ends with this code.
    Done(u8),
    /// It does the work for a front, whose terminal this is.
    Worker(Terminal),
    /// It does the work, and there is no terminal.
    Alone,
}

/// Divides this process in two if a command is to run on a terminal.
///
/// `mark` is the value of [`MARK`] in the environment, `args` all arguments but the name of the
/// program. Returns in the process that does the work, and in the other one when that has ended.
/// To be called while there is only one thread.
pub(crate) fn enter(mark: Option<&OsStr>, args: &[OsString]) -> io::Result<Role> {
    let front = mark.and_then(|mark| Pid::from_raw(mark.to_str()?.parse().ok()?));
    // In a group that is led from outside of a container nobody here can hand the terminal on.
    let terminal = Tty::ours().and_then(|tty| Some((tty, own_group()?)));
    match (front, terminal) {
        (Some(front), terminal) => hold(front, terminal),
        (None, Some((tty, _))) => Front::start(tty, args)?.stand().map(Role::Done),
        (None, None) => Ok(Role::Alone),
    }
}

fn hold(front: Pid, terminal: Option<(Tty, Pid)>) -> io::Result<Role> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Some(front) {
        return Ok(Role::Done(128 + 15));
    }
    forwarded().thread_unblock()?;
    // Started from `/proc/self/exe`, it would be listed as "exe".
    let _ = set_name(c"jobboard");
    Ok(match terminal {
        Some((tty, group)) => Role::Worker(Terminal::of_front(front, group, tty)),
        None => Role::Alone,
    })
}

/// Makes sure that we are told how the worker ended, also if we were started to ignore it.
fn heed_children() -> io::Result<()> {
    if Ignored::now().has(Signal::CHILD) {
        catch_for_good(SignalKind::child())?;
    }
    Ok(())
}

/// Returns the signals that a front passes on, blocked in it so that they can be read.
fn forwarded() -> SigSet {
    let ignored = Ignored::now();
    let signals = ENDING.into_iter().chain([Signal::TSTP, Signal::CONT]);
    signals
        .filter(|&signal| !ignored.has(signal))
        .filter_map(|signal| nix_signal::Signal::try_from(signal.as_raw()).ok())
        .collect()
}

struct Front {
    tty: Tty,
    modes: Option<Termios>,
    inbox: SignalFd,
    worker: Child,
    /// Whether the shell has our group in the foreground, whoever else may hold the terminal.
    in_foreground: bool,
}

struct Received {
    signal: Signal,
    /// `None` for one that the kernel sent, as it does for a terminal.
    sender: Option<u32>,
}

impl Front {
    /// Starts the worker: this very program once more, in our group, with our streams.
    fn start(tty: Tty, args: &[OsString]) -> io::Result<Self> {
        let signals = forwarded();
        // Before there is a worker, that would have to be told of them; it unblocks them for itself.
        signals.thread_block()?;
        let inbox = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        heed_children()?;
        let worker = Command::new("/proc/self/exe")
            .arg0("jobboard")
            .args(args)
            .env(MARK, getpid().to_string())
            .spawn()?;
        Ok(Self {
            modes: tty.modes(),
            in_foreground: has_our_group(&tty),
            tty,
            inbox,
            worker,
        })
    }

    /// Passes signals on until the worker ends, and returns the code to end with.
    fn stand(mut self) -> io::Result<u8> {
        let end = pidfd_open(self.worker_pid(), PidfdFlags::empty())?;
        loop {
            let inbox = self.inbox.as_fd();
            let mut fds = [
                PollFd::new(&inbox, PollFlags::IN),
                PollFd::new(&end, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            while let Some(received) = self.receive()? {
                self.pass_on(&received)?;
            }
            if let Some(status) = self.worker.try_wait()? {
                return Ok(self.conclude(status));
            }
        }
    }

    fn receive(&self) -> io::Result<Option<Received>> {
        /// The kernel's own `si_code`.
        const SI_KERNEL: i32 = 0x80;
        let Some(info) = self.inbox.read_signal()? else {
            return Ok(None);
        };
        let signal = i32::try_from(info.ssi_signo).ok();
        Ok(signal
            .and_then(Signal::from_named_raw)
            .map(|signal| Received {
                signal,
                sender: (info.ssi_code != SI_KERNEL).then_some(info.ssi_pid),
            }))
    }

    /// Passes a signal on to the worker, and stops when the job is to stop.
    fn pass_on(&mut self, received: &Received) -> io::Result<()> {
        let signal = received.signal;
        let is_from_worker = received.sender == Some(self.worker.id());
        // Before the command has started and after it has ended, the terminal reaches both.
        let worker_has_it = received.sender.is_none() && self.is_together();
        if signal == Signal::CONT {
            self.in_foreground = has_our_group(&self.tty);
        }
        if !is_from_worker && !worker_has_it {
            // It cannot be gone: only we reap it.
            let _ = kill_process(self.worker_pid(), signal);
        }
        // Otherwise the worker first stops the command, and then us.
        if signal == Signal::TSTP && (is_from_worker || self.is_together()) {
            act_by_default(nix_signal::SIGTSTP)?;
        }
        Ok(())
    }

    /// Whether the worker is still, or again, in our group.
    fn is_together(&self) -> bool {
        Stat::of(self.worker_pid()).is_some_and(|stat| stat.group == own_group())
    }

    /// Ends as the worker did, which ended as the command did.
    fn conclude(&self, status: ExitStatus) -> u8 {
        // A worker that was killed left the terminal with the command, in whatever state.
        if status.signal().is_some()
            && self.in_foreground
            && let Some(group) = own_group()
        {
            self.tty.lend(group);
            self.tty.set_modes(self.modes.as_ref());
        }
        let code = code_of(status.code(), status.signal());
        if code == 130 {
            // A shell goes on with its loop or script unless it sees that it was interrupted.
            let _ = act_by_default(nix_signal::SIGINT);
        }
        code
    }

    fn worker_pid(&self) -> Pid {
        Pid::from_child(&self.worker)
    }
}

/// Whether we are of the group that may read from the terminal.
fn has_our_group(tty: &Tty) -> bool {
    own_group().is_some_and(|group| tty.foreground() == Some(group))
}

/// Lets a blocked signal do what it does to a program that knows nothing of it.
fn act_by_default(signal: nix_signal::Signal) -> io::Result<()> {
    let only = SigSet::from(signal);
    nix_signal::raise(signal)?;
    only.thread_unblock()?;
    only.thread_block()?;
    Ok(())
}
