//! Who came of which command: by groups and parents as `/proc` shows them, and by labels.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::DirEntryExt,
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
///
/// To be put together after the processes have been looked at, never before: a command that is
/// known by then may have started meanwhile, and one that is not has ended.
#[derive(Debug)]
pub(crate) struct Household {
    /// Its children that are no orphans: the leaders of its commands, and its guards.
    pub(crate) own: HashSet<Pid>,
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

    pub(crate) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }
}

/// How often it is looked who has come while all others were looked at: who ends meanwhile may leave
/// a child that was not there before.
const LOOKS: usize = 4;

/// All processes that run, as they were at about one moment.
#[derive(Debug)]
pub(crate) struct Processes {
    all: HashMap<Pid, Stat>,
    children: HashMap<Pid, Vec<Pid>>,
    /// The children of the conductor that was looked around, and what they bear.
    adopted: Vec<(Pid, Option<Label>)>,
}

impl Processes {
    pub(crate) fn now() -> Self {
        let mut all: HashMap<Pid, Option<Stat>> = HashMap::new();
        for _ in 0..LOOKS {
            let before = all.len();
            for pid in pids() {
                all.entry(pid)
                    .or_insert_with(|| Stat::of(pid).filter(|it| !it.has_ended()));
            }
            if all.len() == before {
                break;
            }
        }
        let living = all.into_iter().filter_map(|(pid, stat)| Some((pid, stat?)));
        Self::of(living.collect())
    }

    /// Looks at all of them, and at what the children of a conductor bear.
    pub(crate) fn around(conductor: Pid) -> Self {
        let mut processes = Self::now();
        let mut open = vec![conductor];
        while let Some(parent) = open.pop() {
            for &pid in processes.children.get(&parent).into_iter().flatten() {
                let label = Label::of(pid);
                if label.is_none() && !processes.has(pid) {
                    // What it bore is unknown; its own children have come to the conductor.
                    open.push(pid);
                } else {
                    processes.adopted.push((pid, label));
                }
            }
        }
        processes
    }

    fn has(&self, pid: Pid) -> bool {
        let now = Stat::of(pid).filter(|it| !it.has_ended());
        now.is_some_and(|now| {
            self.all
                .get(&pid)
                .is_some_and(|it| it.started == now.started)
        })
    }

    fn of(all: HashMap<Pid, Stat>) -> Self {
        let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
        for (&pid, stat) in &all {
            if let Some(parent) = stat.parent {
                children.entry(parent).or_default().push(pid);
            }
        }
        Self {
            all,
            children,
            adopted: Vec::new(),
        }
    }

    /// Returns whoever came of a command of the conductor that was looked [`around`](Self::around),
    /// and the rest of its group.
    ///
    /// An orphan that bears nobody's label came of whichever command is looked at first, unless it
    /// is older than that.
    pub(crate) fn of_command(&self, origin: Origin, house: &Household) -> Vec<Kin> {
        let leader = origin.group.map(Group::leader);
        // A leader that has ended is not among those who run.
        let since = leader.and_then(Stat::of).map_or(0, |stat| stat.started);
        let orphans = self.adopted.iter().filter(|(orphan, label)| {
            !house.own.contains(orphan)
                && match label {
                    Some(label) if *label == origin.label => true,
                    Some(label) if house.labels.contains(label) => false,
                    _ => self.all[orphan].started >= since,
                }
        });
        let of_group = |stat: &Stat| leader.is_some() && stat.group == leader;
        let in_group = self.all.iter().filter(|(_, stat)| of_group(stat));
        let orphans = orphans.map(|(pid, _)| pid);
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

    pub(crate) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.all.keys().copied()
    }
}

/// Returns the pids of all processes, also of those that nobody has reaped.
pub(crate) fn pids() -> impl Iterator<Item = Pid> {
    numbered().map(|(pid, _)| pid)
}

/// Returns all processes, each with the number of its folder, which the next one with its pid does not get.
pub(crate) fn numbered() -> impl Iterator<Item = (Pid, u64)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        Some((pid, entry.ino()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orphan_came_of_whose_label_it_bears_or_else_of_whoever_is_older() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let [job, neighbour, over] = ["1", "2", "3"].map(|uuid| Label::new("a", uuid));
        // The number of each, when it started, and what it bears.
        let orphans = [
            (11, u64::MAX, Some(job)),
            (12, u64::MAX, Some(neighbour)),
            (13, u64::MAX, Some(over)),
            (14, u64::MAX, None),
            (15, 0, Some(job)),
            (16, 0, None),
            (17, u64::MAX, None),
        ];
        let stat = |started| Stat {
            state: 'S',
            parent: Some(pid(10)),
            group: None,
            threads: 1,
            started,
        };
        let all = orphans.map(|(number, started, _)| (pid(number), stat(started)));
        let processes = Processes {
            adopted: orphans
                .map(|(number, _, label)| (pid(number), label))
                .into(),
            ..Processes::of(all.into())
        };
        let house = Household {
            own: [pid(17)].into(),
            labels: [job, neighbour].into(),
        };
        let origin = Origin {
            group: Group::led_by(getpid()),
            label: job,
        };
        let found = processes.of_command(origin, &house).into_iter();
        let found: HashSet<_> = found.map(|kin| kin.pid).collect();
        assert_eq!(found, [11, 13, 14, 15].map(pid).into());
    }
}
