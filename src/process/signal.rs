//! The signals that reach this process.

use std::{fs, future, io, task::Poll, thread};

use nix::sys::signal::{self as nix_signal, SigSet};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// The signals by which people and supervisors end a program.
pub(crate) const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// What else ends a program that does not heed it, as clocks, limits and containers send it.
pub(crate) const ENDING_TOO: [Signal; 6] = [
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::XCPU,
    Signal::IO,
    Signal::POWER,
];

/// The signals that mean what a program has them mean.
pub(crate) const STEERING: [Signal; 2] = [Signal::USR1, Signal::USR2];

/// Signals that are caught from when this was made on, and told one by one.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Leaves out those that we were started to ignore. The others do not end this process any more, even
    /// when this is dropped.
    pub(crate) fn ending() -> io::Result<Self> {
        Self::unless_ignored(ENDING)
    }

    /// Catches these signals, except those that we were started to ignore.
    pub(crate) fn unless_ignored(signals: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let ignored = Ignored::now();
        let caught = signals.into_iter().filter(|&it| !ignored.has(it));
        Self::catch(&caught.collect::<Vec<_>>())
    }

    /// Catches these signals, whether or not they were ignored.
    pub(crate) fn catch(signals: &[Signal]) -> io::Result<Self> {
        let catch = |&signal: &Signal| {
            let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))?;
            // Whoever started us may have blocked it, and would have us wait for it in vain.
            if let Ok(signal) = nix_signal::Signal::try_from(signal.as_raw()) {
                SigSet::from(signal).thread_unblock()?;
            }
            Ok((signal, stream))
        };
        signals
            .iter()
            .map(catch)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Makes sure that we are told how a child ended, also if we were started to ignore it.
    ///
    /// Whoever was not need not be interrupted whenever one ends.
    pub(crate) fn heed_children() -> io::Result<()> {
        if Ignored::now().has(Signal::CHILD) {
            // What is once caught stays caught.
            Self::catch(&[Signal::CHILD])?;
        }
        Ok(())
    }

    /// Makes sure that a file which may not get longer is an error of whoever writes it, and not our
    /// end; what we start is ended by it as ever.
    pub(crate) fn heed_file_limit() -> io::Result<()> {
        if !Ignored::now().has(Signal::XFSZ) {
            // What is once caught stays caught, and is not inherited, unlike what is ignored.
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

    /// Returns a signal that has reached us already.
    pub(crate) async fn pending(&mut self) -> Option<Signal> {
        // Yielding lets the runtime look for signals that no other future has waited for.
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

/// Catches a signal for as long as this process lives, where there is no runtime.
pub(super) fn catch_for_good(signal: SignalKind) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build()?;
    let _inside = runtime.enter();
    // What is once caught stays caught, whatever becomes of this.
    unix::signal(signal).map(drop)
}

/// Returns the code to end with for a child that ended with this code, or by this signal.
pub(super) fn code_of(code: Option<i32>, signal: Option<i32>) -> u8 {
    let code = code.or(signal.map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// For a process that heeds no [`ENDING`] signal itself; the signal then ends it as ever.
pub(crate) fn before_the_end(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let ignored = Ignored::now();
    let ending = ENDING.into_iter().filter(|&it| !ignored.has(it));
    let mut signals = signal_hook::iterator::Signals::new(ending.map(Signal::as_raw))?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            act();
            // It fails for signals without a usual end alone.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    thread::Builder::new().spawn(wait).map(drop)
}

/// The signals that this process ignores, as those below `nohup` do.
pub(crate) struct Ignored(u64);

impl Ignored {
    /// Looks up what is ignored now; nothing, if the kernel does not tell.
    pub(crate) fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        Self(mask.map_or(0, |hex| u64::from_str_radix(hex.trim(), 16).unwrap_or(0)))
    }

    pub(crate) fn has(&self, signal: Signal) -> bool {
        self.0 >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Whether any of the signals is ignored that have numbers only.
    pub(crate) fn has_realtime(&self) -> bool {
        // The first ones are the C library's own, which leaves them ignored in what it starts.
        self.0 >> 34 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rust_programs_ignore_is_known() {
        let ignored = Ignored::now();
        assert!(ignored.has(Signal::PIPE));
        assert!(!ignored.has(Signal::TERM));
    }
}
