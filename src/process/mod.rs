//! Processes: commands, process groups, guards, and the terminal.

pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod forwarder;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod job_control;
pub(crate) mod label;
pub(crate) mod lease_times;
pub(crate) mod lineage;
pub(crate) mod service_manager;
pub(crate) mod signal;
#[cfg(test)]
pub(crate) mod simulation;
pub(crate) mod spawn;
pub(crate) mod terminal;
mod vfork;

use rustix::{
    process::{Pid, getpid},
    system::uname,
};

#[cfg(test)]
pub(crate) use self::simulation::part;

/// Returns the pid of this process, or of the current conductor of a simulation.
pub(crate) fn own_pid() -> Pid {
    #[cfg(test)]
    if let Some(pid) = simulation::own_pid() {
        return pid;
    }
    getpid()
}

pub(crate) fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Marks a future as part of this program, so that a simulation can stop or kill the whole program.
#[cfg(not(test))]
pub(crate) fn part<F>(future: F) -> F {
    future
}
