//! Lends the terminal to a command, and takes part in the shell's job control for it.
//!
//! The shell knows only the front. This process, the worker, is the front's child and must keep running while the job
//! is stopped. So the worker and the command have a process group each.

use std::{cell::Cell, fs::File, io, os::fd::OwnedFd, time::Duration};

use nix::sys::signal::{self as nix_signal, SigSet, SigmaskHow};
use rustix::{
    process::{Pid, Signal, getppid, kill_process, kill_process_group, setpgid},
    stdio,
    termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp},
};
use tokio::time;

use super::{
    child::{CommandEnd, Process},
    group::{ProcessGroup, Stat},
    signal::Signals,
};
use crate::optional::or_never;

#[derive(Debug)]
pub(crate) struct Terminal {
    tty: Tty,
    front: Pid,
    /// The process group that the shell knows: the front and its pipeline.
    front_group: Pid,
    /// Whether the command gets the terminal without asking for it.
    is_for_command: bool,
    /// Whether the command, or a job below it, holds the terminal.
    is_lent: Cell<bool>,
    modes: Option<Termios>,
    events: Option<Signals>,
}

impl Terminal {
    /// Acts for this front, our parent, while we are still in its group.
    pub(crate) fn of_front(front: Pid, front_group: Pid, tty: Tty) -> Self {
        Self {
            tty,
            front,
            front_group,
            is_for_command: false,
            is_lent: Cell::new(false),
            modes: None,
            events: None,
        }
    }

    /// From here until [`Terminal::rejoin`] nothing may be read from the terminal or written to it.
    pub(crate) fn step_aside(&mut self) -> io::Result<()> {
        // In a pipeline other programs may need the terminal, so the command has to ask for it.
        self.is_for_command = isatty(stdio::stdin()) && isatty(stdio::stdout());
        self.modes = self.tty.modes();
        self.events = Some(Signals::catch(&[
            Signal::CHILD,
            Signal::CONT,
            Signal::TSTP,
        ])?);
        setpgid(None, None)?;
        Ok(())
    }

    pub(crate) fn give_foreground(&self, command: ProcessGroup) {
        if self.is_for_command && self.tty.foreground() == Some(self.front_group) {
            self.tty.give_foreground(command.leader());
            self.is_lent.set(true);
        }
    }

    pub(crate) async fn event(&mut self) -> Signal {
        or_never(self.events.as_mut().map(Signals::next)).await
    }

    pub(crate) async fn handle_signal(&mut self, event: Signal, process: &Process) {
        let command = process.group();
        if event == Signal::CONT {
            self.give_foreground(command);
            command.signal(Signal::CONT);
        } else if event == Signal::TSTP {
            command.signal(Signal::TSTP);
        } else if let Some(reason) = process.stopped() {
            self.suspend(command, reason).await;
        }
    }

    pub(crate) fn is_front_gone(&self) -> bool {
        getppid() != Some(self.front)
    }

    pub(crate) fn reclaim_foreground(&mut self, command: ProcessGroup, ended: Option<CommandEnd>) {
        // The command may have given it to a job below it.
        let is_with_command = self.tty.foreground() == Some(command.leader());
        if is_with_command
            || (self.is_lent.get() && self.tty.foreground() != Some(self.front_group))
        {
            if !matches!(ended, Some(CommandEnd::Exit(_))) {
                self.tty.set_modes(self.modes.as_ref());
            }
            self.tty.give_foreground(self.front_group);
            self.share(ended);
        }
        self.rejoin();
        // A stopped front could not report the command's end to the shell.
        if self.is_front_stopped() {
            let _ = kill_process(self.front, Signal::CONT);
        }
    }

    /// Returns to the front's group, where the terminal may be used again.
    pub(crate) fn rejoin(&self) {
        // It cannot fail while the front lives. Without the front no group remains to rejoin.
        let _ = setpgid(None, Some(self.front_group));
    }

    /// Repeats the signal for the front's whole group, such as the shell of a script, as if we were not there.
    fn share(&self, ended: Option<CommandEnd>) {
        if let Some(CommandEnd::Signal(number)) = ended
            && let Some(signal @ (Signal::INT | Signal::QUIT)) = Signal::from_named_raw(number)
        {
            let _ = kill_process_group(self.front_group, signal);
        }
    }

    /// Gives a stopped command the terminal if it needs that, or else stops the whole job for the shell.
    async fn suspend(&mut self, command: ProcessGroup, reason: Signal) {
        let holder = self.tty.foreground();
        let is_lent = holder == Some(command.leader());
        let asks = matches!(reason, Signal::TTIN | Signal::TTOU);
        if asks && (is_lent || holder == Some(self.front_group)) {
            self.tty.give_foreground(command.leader());
            self.is_lent.set(true);
            command.signal(Signal::CONT);
            return;
        }
        if is_lent {
            self.tty.give_foreground(self.front_group);
        }
        if self.stop_front().await {
            // The shell holds the terminal now, and may return it.
            self.is_lent.set(false);
        } else {
            // No shell would ever continue the job, so nothing stops here.
            if is_lent {
                self.tty.give_foreground(command.leader());
            }
            command.signal(Signal::CONT);
        }
    }

    fn is_front_stopped(&self) -> bool {
        !self.is_front_gone() && Stat::of(self.front).is_some_and(|stat| stat.state == 'T')
    }

    /// Stops the front and the shell's whole job, and returns whether that worked.
    async fn stop_front(&self) -> bool {
        // Not SIGSTOP: the kernel withholds SIGTSTP where no process could continue the job.
        let _ = kill_process_group(self.front_group, Signal::TSTP);
        for _ in 0..20 {
            if self.is_front_stopped() {
                return true;
            }
            time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

/// Whether this process has a controlling terminal, and so gets a signal when that hangs up.
pub(crate) fn is_controlled() -> bool {
    File::open("/dev/tty").is_ok()
}

#[derive(Debug)]
pub(crate) struct Tty(OwnedFd);

impl Tty {
    /// Finds our terminal among the standard streams.
    pub(crate) fn ours() -> Option<Self> {
        let streams = [stdio::stdin(), stdio::stdout(), stdio::stderr()];
        // This is refused for a terminal that does not control us.
        let found = streams.into_iter().find(|fd| tcgetpgrp(fd).is_ok())?;
        rustix::io::fcntl_dupfd_cloexec(found, 3).ok().map(Self)
    }

    pub(crate) fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.0).ok()
    }

    pub(crate) fn give_foreground(&self, group: Pid) {
        let _ = unstopped(|| tcsetpgrp(&self.0, group));
    }

    pub(crate) fn modes(&self) -> Option<Termios> {
        tcgetattr(&self.0).ok()
    }

    pub(crate) fn set_modes(&self, modes: Option<&Termios>) {
        if let Some(modes) = modes {
            let _ = unstopped(|| tcsetattr(&self.0, OptionalActions::Drain, modes));
        }
    }
}

/// Blocks SIGTTOU, which would stop a background group that changes the terminal.
fn unstopped<T>(action: impl FnOnce() -> T) -> T {
    // Only for this call: a command would inherit it.
    let before = SigSet::from(nix_signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = action();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    result
}
