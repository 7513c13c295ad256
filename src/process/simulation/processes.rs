//! The processes of a simulated machine: commands, and descendants that some of them leave.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use tokio::sync::watch;

use super::{End, FIRST_PID};
use crate::process::{
    child::CommandEnd, group::Stat, guard::Orphan, label::Label, spawn::ChildLifetime,
};

#[derive(Debug)]
struct SimulatedProcess {
    /// A command or a conductor; `None` for init.
    parent: Option<i32>,
    group: i32,
    /// The conductor that started its command, and adopts orphans below it.
    conductor: Option<u32>,
    label: Option<Label>,
    job: String,
    is_bound: bool,
    is_stubborn: bool,
    end: watch::Sender<Option<CommandEnd>>,
}

impl SimulatedProcess {
    fn is_alive(&self) -> bool {
        self.end.borrow().is_none()
    }
}

/// How a new process behaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behaviour {
    pub(super) lasts: Duration,
    pub(super) ends: CommandEnd,
    pub(super) is_stubborn: bool,
}

/// An ended command of a conductor stays in the table until the conductor reaps it, as in the kernel.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    all: BTreeMap<i32, SimulatedProcess>,
    last: i32,
    commands: u64,
    succeeded: HashSet<String>,
}

impl ProcessTable {
    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    pub(super) fn has_succeeded(&self, job: &str) -> bool {
        self.succeeded.contains(job)
    }

    pub(super) fn forget_successes(&mut self) {
        self.succeeded.clear();
    }

    /// Adds a command. A conductor ties it to its own lifetime, a Python service does not.
    pub(super) fn start(
        &mut self,
        (job, conductor, lifetime): (&str, Option<u32>, Option<ChildLifetime>),
        how: Behaviour,
    ) -> (i32, End) {
        self.commands += 1;
        let (end, end_of_it) = watch::channel(None);
        let pid = self.number();
        let process = SimulatedProcess {
            parent: conductor.filter(|_| lifetime.is_some()).map(pid_of),
            group: pid,
            conductor,
            label: lifetime.map(|lifetime| lifetime.label),
            job: job.to_owned(),
            is_bound: lifetime.is_some(),
            is_stubborn: how.is_stubborn,
            end,
        };
        self.all.insert(pid, process);
        (pid, end_of_it)
    }

    /// Adds a child of a command, in the same group or in a new one.
    pub(super) fn fork(&mut self, parent: i32, leaves_group: bool, how: Behaviour) -> Option<i32> {
        let pid = self.number();
        let of = self.all.get(&parent)?;
        let child = SimulatedProcess {
            parent: Some(parent),
            group: if leaves_group { pid } else { of.group },
            conductor: of.conductor,
            label: of.label,
            job: of.job.clone(),
            is_bound: false,
            is_stubborn: how.is_stubborn,
            end: watch::channel(None).0,
        };
        self.all.insert(pid, child);
        Some(pid)
    }

    fn number(&mut self) -> i32 {
        self.last += 1;
        FIRST_PID + self.last
    }

    /// Ends a process if it is alive. Only the first end counts.
    pub(super) fn end(&mut self, pid: i32, how: CommandEnd) {
        let Some(process) = self.all.get(&pid).filter(|it| it.is_alive()) else {
            return;
        };
        process.end.send_replace(Some(how));
        let (is_command, adopter) = (process.group == pid, process.conductor.map(pid_of));
        if how == CommandEnd::Exit(0) && is_command {
            self.succeeded.insert(process.job.clone());
        }
        if process.parent.is_none() || process.parent != adopter {
            self.all.remove(&pid);
        }
        for child in self.all.values_mut() {
            if child.parent == Some(pid) {
                child.parent = adopter;
            }
        }
    }

    pub(super) fn reap(&mut self, pid: i32) {
        if self.all.get(&pid).is_some_and(|it| !it.is_alive()) {
            self.all.remove(&pid);
        }
    }

    /// Reaps the ended orphans that a conductor has adopted, and returns all that it has.
    pub(super) fn orphans(&mut self, conductor: u32, own: &HashSet<Pid>) -> Vec<Orphan> {
        let parent = Some(pid_of(conductor));
        let is_own = |pid: i32| Pid::from_raw(pid).is_some_and(|pid| own.contains(&pid));
        let orphans = self.all.iter();
        let orphans = orphans.filter(|(pid, it)| it.parent == parent && !is_own(**pid));
        let orphans: Vec<_> = orphans.map(|(&pid, it)| (pid, it.is_alive())).collect();
        for (pid, _) in orphans.iter().filter(|(_, is_alive)| !is_alive) {
            self.all.remove(pid);
        }
        let orphan = |(pid, is_alive)| {
            Some(Orphan {
                pid: Pid::from_raw(pid)?,
                started: started(pid),
                is_alive,
            })
        };
        orphans.into_iter().filter_map(orphan).collect()
    }

    /// Gives the children of a dead conductor to init, and ends those that die with it.
    pub(super) fn orphan_children_of(&mut self, conductor: u32) {
        let of_it = Some(pid_of(conductor));
        let mut bound = Vec::new();
        self.all.retain(|&pid, process| {
            if process.conductor == Some(conductor) && process.is_bound && !process.is_stubborn {
                bound.push(pid);
            }
            process.is_alive() || process.parent != of_it
        });
        for process in self.all.values_mut() {
            if process.parent == of_it {
                process.parent = None;
            }
            if process.conductor == Some(conductor) {
                process.is_bound = false;
            }
        }
        for pid in bound {
            self.end(pid, CommandEnd::Signal(Signal::TERM.as_raw()));
        }
    }

    pub(super) fn signal_group(&mut self, leader: i32, signal: Signal) {
        let group = self.all.iter().filter(|(_, it)| it.group == leader);
        let group: Vec<_> = group.map(|(&pid, _)| pid).collect();
        group.into_iter().for_each(|pid| self.signal(pid, signal));
    }

    pub(super) fn signal(&mut self, pid: i32, signal: Signal) {
        let ends = |it: &SimulatedProcess| {
            signal == Signal::KILL || signal == Signal::TERM && !it.is_stubborn
        };
        if self.all.get(&pid).is_some_and(ends) {
            self.end(pid, CommandEnd::Signal(signal.as_raw()));
        }
    }

    pub(super) fn stat(&self, pid: i32) -> Option<Stat> {
        let process = self.all.get(&pid)?;
        Some(Stat {
            state: if process.is_alive() { 'S' } else { 'Z' },
            parent: process.parent.and_then(Pid::from_raw),
            group: Pid::from_raw(process.group),
            threads: 1,
            started: started(pid),
        })
    }

    pub(super) fn label(&self, pid: i32) -> Option<Label> {
        let process = self.all.get(&pid).filter(|it| it.is_alive())?;
        process.label
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        self.all.keys().copied()
    }

    /// Returns the running processes of a job, unless only these conductors could have ended them.
    pub(super) fn of_job(&self, job: &str, without: &BTreeSet<u32>) -> Vec<i32> {
        let is_meant = |it: &SimulatedProcess| {
            it.job == job && it.is_alive() && !it.conductor.is_some_and(|of| without.contains(&of))
        };
        let running = self.all.iter().filter(|(_, it)| is_meant(it));
        running.map(|(&pid, _)| pid).collect()
    }
}

/// Pids are never reused, so they order the starts as well.
fn started(pid: i32) -> u64 {
    u64::try_from(pid).unwrap_or_default()
}

/// Returns the pid of a conductor or of a guard.
pub(super) fn pid_of(program: u32) -> i32 {
    const PROGRAMS: i32 = 1 << 24;
    const GUARDS: i32 = 1 << 25;
    let number = i32::try_from(program & !(1 << 31)).unwrap_or_default();
    if program >> 31 == 1 {
        GUARDS + number
    } else {
        PROGRAMS + number
    }
}
