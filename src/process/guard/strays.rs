//! Descendants of a conductor's commands that left their process groups.

use std::{collections::HashSet, convert::Infallible, mem, time::Duration};

use rustix::process::{Pid, Signal, getpgid, getpid};
use tokio::{
    task,
    time::{self, Instant},
};

use super::{Guard, State, course::PERSISTENCE};
use crate::process::{
    clock::Boottime,
    group::{Group, Stat},
    lineage::{Household, Kin, Origin, Processes},
};

/// The interval for reaping ended orphans, which are harmless meanwhile.
const REAPING: Duration = Duration::from_secs(2);

impl Guard {
    /// Reaps ended orphans while commands run.
    pub(super) async fn reap(&self) -> Infallible {
        loop {
            if self.state.lock().watched.is_empty() {
                self.stirred.notified().await;
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

    pub(crate) async fn terminate_strays(&self, group: Group) {
        for kin in self.came_of(group).await {
            if getpgid(Some(kin.pid)) != Ok(group.leader()) {
                kin.terminate();
            }
        }
    }

    /// Kills all visible descendants of a command together.
    pub(crate) async fn kill_strays(&self, group: Group) {
        for kin in self.came_of(group).await {
            kin.signal(Signal::KILL);
        }
    }

    /// Returns once no process of it remains. The leader of its group must not be reaped yet.
    pub(crate) async fn clear_away(&self, group: Group) {
        let (until, mut was_empty) = (Boottime::now() + PERSISTENCE, false);
        while self.has_orphans(group) && !until.is_past() {
            let left = self.came_of(group).await;
            // The rest descends from other commands, unless it kept forking during the scan.
            if left.is_empty() && mem::replace(&mut was_empty, true) {
                return;
            }
            for kin in left {
                kin.signal(Signal::KILL);
            }
            time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether an adopted orphan may descend from this command.
    fn has_orphans(&self, group: Group) -> bool {
        let state = self.state.lock();
        let Some(adopted) = &self.adopted else {
            return false;
        };
        let orphans = adopted.reap(&state.own());
        if orphans.is_empty() || !state.watched.contains_key(&group) {
            return false;
        }
        let since = Stat::of(group.leader()).map_or(0, |stat| stat.started);
        orphans.into_iter().any(|started| started >= since)
    }

    /// Finds all descendants of a command. A scan is slow on a busy machine, and renewals must continue meanwhile.
    async fn came_of(&self, group: Group) -> Vec<Kin> {
        if self.adopted.is_none() {
            return Vec::new();
        }
        let search = task::spawn_blocking(|| Processes::around(getpid()));
        // A retry would fail again.
        let Ok(processes) = search.await else {
            return Vec::new();
        };
        // Commands started meanwhile; a process that was seen and is still unknown has ended.
        let state = self.state.lock();
        let Some(ward) = state.watched.get(&group) else {
            return Vec::new();
        };
        let origin = Origin {
            group: Some(group),
            label: ward.label,
        };
        processes.of_command(origin, &state.household())
    }
}

impl State {
    /// Returns our children that are no orphans.
    fn own(&self) -> HashSet<Pid> {
        let leaders = self.watched.keys().map(|group| group.leader());
        let helper = self.helper.iter().map(|it| Pid::from_child(&it.child));
        leaders.chain(helper).collect()
    }

    fn household(&self) -> Household {
        let wards = self.watched.values().copied().chain(self.starting);
        Household {
            own: self.own(),
            labels: wards.map(|it| it.label).collect(),
        }
    }
}
