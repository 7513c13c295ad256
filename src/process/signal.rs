//! The signals that reach this process.

use std::{ffi::c_int, fs, future, io, task::Poll, time::Duration};

use nix::sys::signal::{self as nix_signal, SigSet};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// People and supervisors end a program with these signals.
pub(crate) const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Signals from timers, limits and containers that end a program by default.
pub(crate) const ENDING_TOO: [Signal; 6] = [
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::IO,
    Signal::POWER,
];

pub(crate) const STEERING: [Signal; 2] = [Signal::USR1, Signal::USR2];

/// A second signal within this time is an echo of the first: a shell and the kernel may both send one.
pub(crate) const ECHO: Duration = Duration::from_millis(200);

/// Signals that are caught from creation on and reported one by one.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Leaves out signals that this process was started to ignore. The others no longer end it, even after this is
    /// dropped.
    pub(crate) fn ending() -> io::Result<Self> {
        Self::unless_ignored(ENDING)
    }

    /// Catches these signals, except those that this process was started to ignore.
    pub(crate) fn unless_ignored(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let ignored = Ignored::now();
        let caught = signals.into_iter().filter(|&it| !ignored.has(it));
        Self::catch(&caught.collect::<Vec<_>>())
    }

    pub(crate) fn catch(signals: &[Signal]) -> io::Result<Self> {
        let catch = |&signal: &Signal| {
            let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
            // The parent may have blocked it, so that it would never arrive.
            set_of([signal]).thread_unblock()?;
            Ok((signal, stream))
        };
        let caught: io::Result<_> = signals.iter().map(catch).collect();
        caught.map(Self)
    }

    /// Turns a write beyond the file size limit into an error instead of our end. The limit still ends our commands.
    pub(crate) fn catch_file_limit_signal() -> io::Result<()> {
        if !Ignored::now().has(Signal::XFSZ) {
            // A caught signal stays caught, and unlike an ignored one it is not inherited.
            Self::catch(&[Signal::XFSZ])?;
        }
        Ok(())
    }

    pub(crate) async fn next(&mut self) -> Signal {
        future::poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    pub(crate) async fn pending(&mut self) -> Option<Signal> {
        // Yielding lets the runtime collect signals that no other future waits for.
        tokio::select! {
            biased;
            signal = self.next() => return Some(signal),
            () = tokio::task::yield_now() => {}
        }
        tokio::select! {
            biased;
            signal = self.next() => Some(signal),
            () = future::ready(()) => None,
        }
    }
}

pub(super) fn set_of(signals: impl IntoIterator<Item = Signal>) -> SigSet {
    let raw = signals.into_iter().map(Signal::as_raw);
    raw.filter_map(|signal| nix_signal::Signal::try_from(signal).ok())
        .collect()
}

/// Makes the kernel keep each child until we have seen its end, even if our parent ignored the ends of children.
///
/// Otherwise the default stays, and no signal interrupts us.
pub(crate) fn keep_ended_children() -> io::Result<()> {
    if !Ignored::now().has(Signal::CHILD) {
        return Ok(());
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build()?;
    let _inside = runtime.enter();
    // The signal stays caught after the drop.
    unix::signal(SignalKind::child()).map(drop)
}

/// Returns our exit code for a child that ended with this code or signal.
pub(crate) fn code_of(code: Option<i32>, signal: Option<i32>) -> u8 {
    let code = code.or(signal.map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The signals that this process ignores, as under `nohup`.
pub(crate) struct Ignored(u64);

impl Ignored {
    /// Empty if the kernel does not report them.
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self(mask.map_or(0, |hex| u64::from_str_radix(hex.trim(), 16).unwrap_or(0)))
    }

    pub(crate) fn has(&self, signal: Signal) -> bool {
        self.0 >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Returns all other signals, and SIGPIPE, which every Rust program ignores.
    pub(super) fn others(&self) -> Vec<c_int> {
        let is_other = |&signal: &c_int| self.0 >> (signal - 1) & 1 == 0;
        let others = (1..=64).filter(is_other);
        others.chain([Signal::PIPE.as_raw()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_ignored_by_rust_are_known() {
        let ignored = Ignored::now();
        assert!(ignored.has(Signal::PIPE));
        assert!(!ignored.has(Signal::TERM));
    }
}
