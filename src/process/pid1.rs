//! The first process of a container: reaps orphans and passes signals on.
//!
//! The kernel shields this process from most signals and gives it all orphans. So the program runs as a child of
//! itself, and this process does nothing else.

use std::io;

use rustix::process::{Signal, WaitOptions, getpid, wait};

use super::{
    signal::{ENDING, ENDING_TOO, STEERING, code_of},
    stand::Stand,
};

pub(crate) fn is_first() -> bool {
    getpid().is_init()
}

/// Call it while there is only one thread.
pub(crate) fn stand() -> io::Result<u8> {
    let signals = ENDING.into_iter().chain(ENDING_TOO).chain(STEERING);
    let stand = Stand::start(signals, |command| command.args(std::env::args_os().skip(1)))?;
    loop {
        while let Some((pid, status)) = wait(WaitOptions::NOHANG).ok().flatten() {
            if pid == stand.child_pid() {
                return Ok(code_of(status.exit_status(), status.terminating_signal()));
            }
        }
        // A terminal has already signalled the whole group.
        let received = stand.receive()?.filter(|it| it.sender.is_some());
        if let Some(received) = received.filter(|it| it.signal != Signal::CHILD) {
            stand.pass_on(received.signal);
        }
    }
}
