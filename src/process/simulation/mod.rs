//! Replaces the kernel in simulations: clocks, processes, signals and random numbers.
//!
//! The machine belongs to one thread and follows tokio's paused clock. Without a machine, nothing changes.

mod dice;
mod guard;
mod machine;
mod planted;
mod program;

use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use self::machine::machine;
pub(crate) use self::{
    dice::Dice,
    guard::{Mailbox, start_guard},
    machine::Machine,
    planted::Planted,
    program::{Standing, guard_of, part, part_of},
};
use super::{
    child::{Ended, ProcessEnd},
    command::CommandSpec,
    group::{ProcessGroup, Stat},
    label::JOB,
    spawn::Bonds,
};

/// Greater than every process id of Linux, so that a stray signal hits no real process.
const FIRST_PID: i32 = 1 << 23;

pub(crate) type End = watch::Receiver<Option<Ended>>;

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
    pid.as_raw_nonzero().get() >= FIRST_PID
}

/// Starts a command. Its duration, its result and its response to SIGTERM are random.
pub(crate) fn start(
    command: &CommandSpec,
    bonds: Option<Bonds>,
) -> Option<(ProcessGroup, ProcessEnd)> {
    let machine = machine()?;
    let job = command.env.iter().find(|(name, _)| name == JOB);
    let job = job.and_then(|(_, value)| value.as_ref()?.to_str())?;
    let (pid, end) = machine.start_command(job, bonds);
    let group = ProcessGroup::led_by(Pid::from_raw(pid)?)?;
    Some((group, ProcessEnd::Simulated(end)))
}

/// Sends a signal; false if the process is a real one.
pub(crate) fn signal(leader: Pid, signal: Signal) -> bool {
    if let Some(machine) = machine()
        && is_ours(leader)
    {
        machine.signal(leader.as_raw_nonzero().get(), signal);
    }
    is_ours(leader)
}

pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    let number = pid.as_raw_nonzero().get();
    let is_alive = machine()?.is_alive(number)?;
    Some(Stat {
        state: if is_alive { 'S' } else { 'Z' },
        parent: None,
        group: Some(pid),
        threads: 1,
        started: u64::try_from(number).unwrap_or_default(),
    })
}

/// Ends the commands of a job that an earlier conductor left running.
pub(crate) async fn end_left_over(job: u32) {
    if let Some(machine) = machine() {
        machine.end_left_over(job).await;
    }
}
