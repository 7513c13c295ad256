//! Finds the descendants of each command by group, parent and label.

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::fs::DirEntryExt,
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal},
};

use tokio::task;

#[cfg(test)]
use super::simulation;
use super::{
    group::{ProcessGroup, Stat},
    label::Label,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandOrigin {
    /// The group that it started with; `None` if unknown yet.
    pub(crate) group: Option<ProcessGroup>,
    pub(crate) label: Label,
}

/// A living conductor that adopts the orphans below it.
///
/// Build this after the scan of the processes, never before. A listed command may be newer than the scan, and an
/// unlisted one has ended.
#[derive(Debug)]
pub(crate) struct ConductorChildren {
    /// Its children that are no orphans: the leaders of its commands, and its guards.
    pub(crate) own: HashSet<Pid>,
    pub(crate) labels: HashSet<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PinnedProcess {
    pub(crate) pid: Pid,
    started: u64,
}

impl PinnedProcess {
    /// Signals this process and no later one with its pid. Ignores a process that has ended.
    pub(crate) fn signal(self, signal: Signal) {
        #[cfg(test)]
        if simulation::signal(self.pid, signal) {
            return;
        }
        // From here on the pid may be reused, but the handle still means the same process.
        let held = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) => Some(held),
            Err(Errno::MFILE | Errno::NFILE) => None,
            Err(_) => return,
        };
        if Stat::of(self.pid).map(|stat| stat.started) != Some(self.started) {
            return;
        }
        // The pid may belong to another process; that cannot be prevented.
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

/// How often the scan repeats to find new processes: one that ends meanwhile may leave an unseen child.
const LOOKS: usize = 4;

#[derive(Debug)]
pub(crate) struct Processes {
    all: HashMap<Pid, Stat>,
    children: HashMap<Pid, Vec<Pid>>,
    /// The conductor's children in the scan, and their labels.
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

    pub(crate) fn around(conductor: Pid) -> Self {
        let mut processes = Self::now();
        let mut open = vec![conductor];
        while let Some(parent) = open.pop() {
            for &pid in processes.children.get(&parent).into_iter().flatten() {
                let label = Label::of(pid);
                if label.is_none() && !processes.has(pid) {
                    // Its label is unknown. The conductor has adopted its children.
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
        let known = self.all.get(&pid).zip(now);
        known.is_some_and(|(known, now)| known.started == now.started)
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

    /// Returns the descendants of a command of the conductor that was scanned [`around`](Self::around), and the rest
    /// of its group.
    ///
    /// An orphan without a label counts for the first command checked, unless the orphan is older.
    pub(crate) fn of_command(
        &self,
        origin: CommandOrigin,
        children: &ConductorChildren,
    ) -> Vec<PinnedProcess> {
        let leader = origin.group.map(ProcessGroup::leader);
        // A leader that has ended is not in the scan.
        let since = leader.and_then(Stat::of).map_or(0, |stat| stat.started);
        let orphans = self.adopted.iter().filter(|(orphan, label)| {
            !children.own.contains(orphan)
                && match label {
                    Some(label) if *label == origin.label => true,
                    Some(label) if children.labels.contains(label) => false,
                    _ => self.all[orphan].started >= since,
                }
        });
        let of_group = |stat: &Stat| leader.is_some() && stat.group == leader;
        let in_group = self.all.iter().filter(|(_, stat)| of_group(stat));
        let orphans = orphans.map(|(pid, _)| pid);
        self.below(orphans.chain(in_group.map(|(pid, _)| pid)).copied())
    }

    pub(crate) fn bearers(&self, holds: impl Fn(Label) -> bool) -> Vec<(Pid, Label)> {
        let label = |pid: Pid| Some((pid, Label::of(pid).filter(|it| holds(*it))?));
        self.pids().filter_map(label).collect()
    }

    /// Returns these processes and their descendants, without this process and pid 1.
    pub(crate) fn below(&self, roots: impl Iterator<Item = Pid>) -> Vec<PinnedProcess> {
        let mut found = HashSet::new();
        let mut open: Vec<Pid> = roots.collect();
        while let Some(pid) = open.pop() {
            if pid != getpid() && !pid.is_init() && found.insert(pid) {
                open.extend(self.children.get(&pid).into_iter().flatten());
            }
        }
        let process = |pid: &Pid| {
            let started = self.all.get(pid)?.started;
            Some(PinnedProcess { pid: *pid, started })
        };
        let mut found: Vec<_> = found.iter().filter_map(process).collect();
        // A fixed order makes simulated scenarios repeat exactly.
        found.sort_unstable_by_key(|process| process.pid.as_raw_nonzero());
        found
    }

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

/// Includes processes that are not reaped yet.
pub(crate) fn pids() -> impl Iterator<Item = Pid> {
    numbered().into_iter().map(|(pid, _)| pid)
}

/// Returns each process with the inode of its `/proc` directory, which a later process with that pid does not get.
pub(crate) fn numbered() -> Vec<(Pid, u64)> {
    #[cfg(test)]
    if let Some(pids) = simulation::pids() {
        return pids;
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        Some((pid, entry.ino()))
    });
    numbered.collect()
}

/// Searches the processes on another thread; `None` if that fails.
pub(crate) async fn scan<T: Send + 'static>(
    search: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // Simulated processes belong to this thread.
    #[cfg(test)]
    if simulation::uptime().is_some() {
        return Some(search());
    }
    task::spawn_blocking(search).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphan_belongs_to_its_label_or_the_older_job() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let [job, neighbour, over] = ["1", "2", "3"].map(|uuid| Label::new("a", uuid));
        // Per orphan: pid, start time and label.
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
        let children = ConductorChildren {
            own: [pid(17)].into(),
            labels: [job, neighbour].into(),
        };
        let origin = CommandOrigin {
            group: ProcessGroup::led_by(getpid()),
            label: job,
        };
        let found = processes.of_command(origin, &children).into_iter();
        let found: HashSet<_> = found.map(|process| process.pid).collect();
        assert_eq!(found, [11, 13, 14, 15].map(pid).into());
    }
}
