//! Descendants of a conductor's commands that left their process groups.
//!
//! The kernel makes an orphan below the conductor its child. So the conductor checks after each command whether a
//! process is left.

use std::{
    collections::HashSet,
    convert::Infallible,
    fs::File,
    io::{self, Read as _, Seek as _},
    time::Duration,
};

use nix::sys::prctl::set_child_subreaper;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, waitid};
use tokio::time::{self, Instant};

use super::{Guard, GuardState, Helper, schedule::KILL_TIMEOUT};
#[cfg(test)]
use crate::process::simulation;
use crate::process::{
    clock::Boottime,
    group::{ProcessGroup, Stat, group_of},
    lineage::{CommandOrigin, ConductorChildren, PinnedProcess, Processes, pids, scan},
    own_pid,
};

/// The interval for reaping ended orphans, which are harmless meanwhile.
const REAPING: Duration = Duration::from_secs(2);

/// So many scans without a result end the search in any case: another command may fork orphans all the time.
const MAX_EMPTY_SCANS: u32 = 10;

/// A descendant of a command that the kernel made a child of the conductor, because its own parent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orphan {
    pub(crate) pid: Pid,
    pub(crate) started: u64,
    pub(crate) is_alive: bool,
}

impl Guard {
    pub(super) async fn reap(&self) -> Infallible {
        loop {
            if self.state.lock().watched.is_empty() {
                self.watch_added.notified().await;
            }
            let due = self.state.lock().reaped + REAPING;
            time::sleep_until(due).await;
            let mut state = self.state.lock();
            state.reaped = Instant::now();
            if let Some(adopted) = &self.adopted {
                adopted.reap(&state.own());
            }
        }
    }

    pub(crate) async fn terminate_strays(&self, group: ProcessGroup) {
        for process in self.came_of(group).await {
            if group_of(process.pid) != Some(group.leader()) {
                process.terminate();
            }
        }
    }

    /// Kills all visible descendants of a command together.
    pub(crate) async fn kill_strays(&self, group: ProcessGroup) {
        for process in self.came_of(group).await {
            process.signal(Signal::KILL);
        }
    }

    /// Returns once no process of it remains. The leader of its group must not be reaped yet.
    pub(crate) async fn clear_away(&self, group: ProcessGroup) {
        let (until, mut before) = (Boottime::now() + KILL_TIMEOUT, None);
        let mut empty_scans = 0;
        loop {
            let orphans = self.orphans(group);
            if orphans.is_empty() || until.is_past() {
                return;
            }
            let left = self.came_of(group).await;
            // The rest descends from other commands, unless it keeps forking: then it escapes the scans, but changes.
            let alive: Vec<_> = orphans.into_iter().filter(|it| it.is_alive).collect();
            let is_steady = before.as_ref() == Some(&alive);
            before = Some(alive);
            empty_scans += u32::from(left.is_empty());
            if left.is_empty() && (is_steady || empty_scans >= MAX_EMPTY_SCANS) {
                return;
            }
            for process in left {
                process.signal(Signal::KILL);
            }
            time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the adopted orphans that may descend from this command.
    fn orphans(&self, group: ProcessGroup) -> Vec<Orphan> {
        let state = self.state.lock();
        let Some(adopted) = &self.adopted else {
            return Vec::new();
        };
        let mut orphans = adopted.reap(&state.own());
        if orphans.is_empty() || !state.watched.contains_key(&group) {
            return Vec::new();
        }
        let since = Stat::of(group.leader()).map_or(0, |stat| stat.started);
        orphans.retain(|it| it.started >= since);
        orphans
    }

    /// Finds all descendants of a command. A scan is slow on a busy machine, and renewals must continue meanwhile.
    async fn came_of(&self, group: ProcessGroup) -> Vec<PinnedProcess> {
        if self.adopted.is_none() {
            return Vec::new();
        }
        let conductor = own_pid();
        // A retry would fail again.
        let Some(processes) = scan(move || Processes::around(conductor)).await else {
            return Vec::new();
        };
        // Commands started meanwhile; a process that was seen and is still unknown has ended.
        let state = self.state.lock();
        let Some(command) = state.watched.get(&group) else {
            return Vec::new();
        };
        let origin = CommandOrigin {
            group: Some(group),
            label: command.label,
        };
        processes.of_command(origin, &state.conductor_children())
    }
}

impl GuardState {
    fn own(&self) -> HashSet<Pid> {
        let leaders = self.watched.keys().map(|group| group.leader());
        let helper = self.helper.iter().filter_map(Helper::pid);
        leaders.chain(helper).collect()
    }

    fn conductor_children(&self) -> ConductorChildren {
        let commands = self.watched.values().copied().chain(self.starting);
        ConductorChildren {
            own: self.own(),
            labels: commands.map(|it| it.label).collect(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Adopted {
    /// The children of our main thread, which adopts all orphans. Some kernels do not list them.
    children: Option<File>,
}

impl Adopted {
    pub(super) fn begin() -> io::Result<Self> {
        #[cfg(test)]
        if simulation::uptime().is_some() {
            return Ok(Self { children: None });
        }
        set_child_subreaper(true)?;
        let pid = getpid().as_raw_nonzero();
        let children = File::open(format!("/proc/self/task/{pid}/children"));
        Ok(Self {
            children: children.ok(),
        })
    }

    /// Reaps ended orphans but not our own children. Returns all orphans, including those that just ended: they may
    /// have left a child.
    pub(super) fn reap(&self, own: &HashSet<Pid>) -> Vec<Orphan> {
        #[cfg(test)]
        if let Some(orphans) = simulation::orphans(own) {
            return orphans;
        }
        let all = self.children().unwrap_or_else(|| pids().collect());
        let others = all.into_iter().filter(|pid| !own.contains(pid));
        others.filter_map(reap).collect()
    }

    fn children(&self) -> Option<Vec<Pid>> {
        let mut text = String::with_capacity(4096);
        let mut file = self.children.as_ref()?;
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let pids = text.split_ascii_whitespace();
        pids.map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }
}

fn reap(pid: Pid) -> Option<Orphan> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let child = WaitId::Pid(pid);
    // Fails unless it is our child.
    waitid(child.clone(), options | WaitIdOptions::NOWAIT).ok()?;
    // The start time is gone after the reaping.
    let started = Stat::of(pid).map_or(u64::MAX, |stat| stat.started);
    let ended = waitid(child, options).ok()?;
    Some(Orphan {
        pid,
        started,
        is_alive: ended.is_none(),
    })
}
