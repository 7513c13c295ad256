//! Replaces the kernel in simulations: clocks, processes, signals and random numbers.
//!
//! The machine belongs to one thread and follows tokio's paused clock. Without a machine, nothing changes.

mod dice;
mod guard;
mod machine;
mod part;
mod planted;
mod processes;
mod program;

use std::{collections::HashSet, time::Duration};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal};
use tokio::sync::watch;

pub(crate) use self::{
    dice::Dice,
    guard::{Mailbox, start_guard},
    machine::{Machine, MachineScope},
    part::{part, part_of},
    planted::Planted,
    program::{Standing, guard_of},
};
use self::{
    machine::machine,
    processes::{ProcessTable, pid_of},
    program::current,
};
use super::{
    child::CommandEnd,
    command::CommandSpec,
    group::{ProcessEnd, ProcessGroup, Stat},
    guard::Orphan,
    label::{JOB, Label},
    spawn::ChildLifetime,
};

/// Greater than every process id of Linux, so that a stray signal hits no real process.
const FIRST_PID: i32 = 1 << 23;

pub(crate) type End = watch::Receiver<Option<CommandEnd>>;

pub(crate) fn has(planted: Planted) -> bool {
    machine().is_some_and(|machine| machine.has(planted))
}

pub(crate) fn uptime() -> Option<Duration> {
    Some(machine()?.uptime())
}

pub(crate) fn wall() -> Option<DateTime<Utc>> {
    Some(machine()?.wall())
}

pub(crate) fn chance() -> Option<f64> {
    Some(machine()?.with_dice(Dice::chance))
}

pub(crate) fn is_ours(pid: Pid) -> bool {
    number(pid) >= FIRST_PID
}

/// Starts a command. Its duration, its result, its descendants and its response to SIGTERM are random.
pub(crate) fn start(
    command: &CommandSpec,
    lifetime: Option<ChildLifetime>,
) -> Option<(ProcessGroup, ProcessEnd)> {
    let machine = machine()?;
    let job = command.env.iter().find(|(name, _)| name == JOB);
    let job = job.and_then(|(_, value)| value.as_ref()?.to_str())?;
    let (pid, end) = machine.start_command(job, lifetime);
    let group = ProcessGroup::led_by(Pid::from_raw(pid)?)?;
    Some((group, ProcessEnd::Simulated(end)))
}

/// Acts on the simulated processes; `None` without a machine, or for a dead program.
fn on_processes<T>(act: impl FnOnce(&mut ProcessTable) -> T) -> Option<T> {
    machine()?.processes(act)
}

/// Sends a signal to a group; false if it is a real one.
pub(crate) fn signal_group(leader: Pid, signal: Signal) -> bool {
    on_processes(|all| all.signal_group(number(leader), signal));
    is_ours(leader)
}

/// Sends a signal to a process; false if it is a real one.
pub(crate) fn signal(pid: Pid, signal: Signal) -> bool {
    on_processes(|all| all.signal(number(pid), signal));
    is_ours(pid)
}

pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    on_processes(|all| all.stat(number(pid)))?
}

pub(crate) fn label(pid: Pid) -> Option<Label> {
    on_processes(|all| all.label(number(pid)))?
}

pub(crate) fn reap(pid: Pid) {
    on_processes(|all| all.reap(number(pid)));
}

/// Reaps the ended orphans of the current conductor, and returns all that it has.
pub(crate) fn orphans(own: &HashSet<Pid>) -> Option<Vec<Orphan>> {
    let machine = machine()?;
    let conductor = current().unwrap_or_default();
    machine.processes(|all| all.orphans(conductor, own))
}

/// Returns the pid of the current conductor.
pub(crate) fn own_pid() -> Option<Pid> {
    machine()?;
    Pid::from_raw(pid_of(current()?))
}

/// Returns all processes, with the numbers that identify them.
pub(crate) fn pids() -> Option<Vec<(Pid, u64)>> {
    let pids = machine()?.pids().into_iter();
    let numbered = |pid| Some((Pid::from_raw(pid)?, u64::try_from(pid).ok()?));
    Some(pids.filter_map(numbered).collect())
}

/// Returns the conductor of a running guard.
pub(crate) fn watched_by(pid: Pid) -> Option<u32> {
    machine()?.watched_by(number(pid))
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}
