//! What came of a conductor's commands and is not in their groups any more.

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

/// How often the remains of orphans are taken away, which bother nobody meanwhile.
const REAPING: Duration = Duration::from_secs(2);

impl Guard {
    /// Takes away what orphans leave when they end, while there are commands.
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

    /// Kills all that came of a command, at once as far as it can be seen.
    pub(crate) async fn kill_strays(&self, group: Group) {
        for kin in self.came_of(group).await {
            kin.signal(Signal::KILL);
        }
    }

    /// Returns once nothing of it is left. The leader of its group must not have been reaped yet.
    pub(crate) async fn clear_away(&self, group: Group) {
        let (until, mut was_empty) = (Boottime::now() + PERSISTENCE, false);
        while self.has_orphans(group) && !until.is_past() {
            let left = self.came_of(group).await;
            // Those that there are came of others, unless they went on forking while they were looked for.
            if left.is_empty() && mem::replace(&mut was_empty, true) {
                return;
            }
            for kin in left {
                kin.signal(Signal::KILL);
            }
            time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether anybody is there who may have come of a command, and is not in its care.
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

    /// Looks for all that came of a command; on a busy machine that takes its time, in which claims
    /// have to be renewed.
    async fn came_of(&self, group: Group) -> Vec<Kin> {
        if self.adopted.is_none() {
            return Vec::new();
        }
        let search = task::spawn_blocking(|| Processes::around(getpid()));
        // One that failed would fail again.
        let Ok(processes) = search.await else {
            return Vec::new();
        };
        // Others have started meanwhile; who is seen and not known by now has ended.
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
