//! Programs that can be stopped and killed: conductors and their guards.

use std::cell::Cell;

thread_local! {
    /// The program that is being polled.
    static CURRENT: Cell<Option<u32>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Runs,
    /// By SIGSTOP: time passes, and none of its code runs.
    Stopped,
    /// By SIGKILL.
    Dead,
}

pub(crate) fn current() -> Option<u32> {
    CURRENT.get()
}

pub(crate) fn guard_of(conductor: u32) -> u32 {
    conductor | 1 << 31
}

/// Until it is dropped, this program is the current one.
pub(super) struct Inside(Option<u32>);

impl Inside {
    pub(super) fn of(program: Option<u32>) -> Self {
        Self(CURRENT.replace(program))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
