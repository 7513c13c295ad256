//! Who came of which command: by groups and parents as `/proc` shows them, and by labels.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal},
};

use super::{
    group::{Group, Stat},
    label::Label,
};

/// A command of which all descendants are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The group that it was started with; `None` if it is not known yet.
    pub(crate) group: Option<Group>,
    pub(crate) label: Label,
}

/// A living conductor, to which the kernel gives whoever loses its parents below it.
#[derive(Debug)]
pub(crate) struct Household {
    pub(crate) conductor: Pid,
    /// Its children that are no orphans: the leaders of its commands, and its guards.
    pub(crate) own: HashSet<Pid>,
    /// The labels of its commands.
    pub(crate) labels: HashSet<Label>,
}

/// A process, whatever its pid may mean by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kin {
    pub(crate) pid: Pid,
    started: u64,
}

impl Kin {
    /// Sends it a signal, and nobody who has its pid by now; one that has ended needs none.
    pub(crate) fn signal(self, signal: Signal) {
        // From here on the pid may be reused, but what is held is still the same process.
        let held = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) => Some(held),
            Err(Errno::MFILE | Errno::NFILE) => None,
            Err(_) => return,
        };
        if Stat::of(self.pid).map(|stat| stat.started) != Some(self.started) {
            return;
        }
        // It may belong to somebody else; that cannot be mended.
        let _ = match held {
            Some(held) => pidfd_send_signal(held, signal),
            None => kill_process(self.pid, signal),
        };
    }

    /// Asks it to end, also if it is stopped.
    pub(crate) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }
}

/// All processes that run, as they were at about one moment.
#[derive(Debug)]
pub(crate) struct Processes {
    all: HashMap<Pid, Stat>,
    children: HashMap<Pid, Vec<Pid>>,
}

impl Processes {
    /// Looks at all of them.
    pub(crate) fn now() -> Self {
        let all = pids().filter_map(|pid| Some((pid, Stat::of(pid).filter(|it| !it.has_ended())?)));
        Self::of(all.collect())
    }

    fn of(all: HashMap<Pid, Stat>) -> Self {
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        for (&pid, stat) in &all {
            if let Some(parent) = stat.parent {
                children.entry(parent).or_default().push(pid);
            }
        }
        Self { all, children }
    }

    /// Returns whoever came of a command of a household, and the rest of its group.
    ///
    /// An orphan that bears nobody's label came of whichever command is looked at first, unless it
    /// is older than that.
    pub(crate) fn of_command(&self, origin: Origin, house: &Household) -> Vec<Kin> {
        let leader = origin.group.map(Group::leader);
        // A leader that has ended is not among those who run.
        let since = leader.and_then(Stat::of).map_or(0, |stat| stat.started);
        let orphans = self.children.get(&house.conductor).into_iter().flatten();
        let orphans = orphans.filter(|orphan| {
            let is_younger = || self.all[*orphan].started >= since;
            !house.own.contains(orphan)
                && match Label::of(**orphan) {
                    Some(label) if label == origin.label => true,
                    Some(label) if house.labels.contains(&label) => false,
                    _ => is_younger(),
                }
        });
        let of_group = |stat: &Stat| leader.is_some() && stat.group == leader;
        let in_group = self.all.iter().filter(|(_, stat)| of_group(stat));
        self.below(orphans.chain(in_group.map(|(pid, _)| pid)).copied())
    }

    /// Returns whoever bears a label of which this holds.
    pub(crate) fn bearers(&self, holds: impl Fn(Label) -> bool) -> Vec<(Pid, Label)> {
        let label = |pid: Pid| Some((pid, Label::of(pid).filter(|it| holds(*it))?));
        self.pids().filter_map(label).collect()
    }

    /// Returns these and all that came of them, but neither ourselves nor the first process.
    pub(crate) fn below(&self, roots: impl Iterator<Item = Pid>) -> Vec<Kin> {
        let mut found = HashSet::new();
        let mut open: Vec<Pid> = roots.collect();
        while let Some(pid) = open.pop() {
            if pid != getpid() && !pid.is_init() && found.insert(pid) {
                open.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        let kin = |pid: &Pid| {
            let started = self.all.get(pid)?.started;
            Some(Kin { pid: *pid, started })
        };
        found.iter().filter_map(kin).collect()
    }

    /// Returns a process and all from whom it came, as far as they live.
    pub(crate) fn ancestry(&self, pid: Pid) -> HashSet<Pid> {
        let mut found = HashSet::new();
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = self.all.get(&pid).and_then(|stat| stat.parent);
        }
        found
    }

    /// Returns all pids.
    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.all.keys().copied()
    }
}

/// Returns the pids of all processes, also of those that nobody has reaped.
pub(crate) fn pids() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}
