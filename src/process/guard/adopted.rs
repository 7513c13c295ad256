//! The orphans of a conductor's commands, which the kernel gives to the conductor.
//!
//! So whoever has lost all parents below it is its own child, and it sees after each command
//! whether anything is left of that.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read as _, Seek as _},
};

use nix::sys::prctl::set_child_subreaper;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, waitid};

use crate::process::{group::Stat, lineage::pids};

#[derive(Debug)]
pub(super) struct Adopted {
    /// The children of our first thread, to which all orphans go; some kernels do not list them.
    children: Option<File>,
}

impl Adopted {
    /// Has all orphans below this process come to it.
    pub(super) fn from_now_on() -> io::Result<Self> {
        set_child_subreaper(true)?;
        let pid = getpid().as_raw_nonzero();
        let children = File::open(format!("/proc/self/task/{pid}/children"));
        Ok(Self {
            children: children.ok(),
        })
    }

    /// Reaps those that have ended, except for our own children, and returns when each of the others started that is
    /// there, or was until now and may have left one.
    pub(super) fn reap(&self, own: &HashSet<Pid>) -> Vec<u64> {
        let all = self.children().unwrap_or_else(|| pids().collect());
        let others = all.into_iter().filter(|pid| !own.contains(pid));
        others.filter_map(reap).collect()
    }

    /// Returns our children, among which those stay that nobody reaps.
    fn children(&self) -> Option<Vec<Pid>> {
        let mut text = String::with_capacity(4096);
        let mut file = self.children.as_ref()?;
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let pids = text.split_ascii_whitespace();
        pids.map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }
}

/// Reaps a child if it has ended, and returns when it started; `None` if it is no child.
fn reap(pid: Pid) -> Option<u64> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let child = WaitId::Pid(pid);
    // It is refused for who is no child.
    waitid(child.clone(), options | WaitIdOptions::NOWAIT).ok()?;
    // Afterwards that cannot be seen.
    let started = Stat::of(pid).map_or(u64::MAX, |stat| stat.started);
    waitid(child, options).ok()?;
    Some(started)
}
