//! The orphans of a conductor's commands, which the kernel gives to the conductor.
//!
//! An orphan below the conductor becomes its child. So the conductor checks after each command whether a process is
//! left.

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
    /// The children of our main thread, which adopts all orphans. Some kernels do not list them.
    children: Option<File>,
}

impl Adopted {
    /// Makes this process adopt all orphans below it.
    pub(super) fn from_now_on() -> io::Result<Self> {
        set_child_subreaper(true)?;
        let pid = getpid().as_raw_nonzero();
        let children = File::open(format!("/proc/self/task/{pid}/children"));
        Ok(Self {
            children: children.ok(),
        })
    }

    /// Reaps ended orphans but not our own children. Returns the start times of the others, including those that just
    /// ended: they may have left a child.
    pub(super) fn reap(&self, own: &HashSet<Pid>) -> Vec<u64> {
        let all = self.children().unwrap_or_else(|| pids().collect());
        let others = all.into_iter().filter(|pid| !own.contains(pid));
        others.filter_map(reap).collect()
    }

    /// Returns our children, including unreaped ones.
    fn children(&self) -> Option<Vec<Pid>> {
        let mut text = String::with_capacity(4096);
        let mut file = self.children.as_ref()?;
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        let pids = text.split_ascii_whitespace();
        pids.map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }
}

/// Reaps a child if it has ended, and returns its start time; `None` if it is no child.
fn reap(pid: Pid) -> Option<u64> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let child = WaitId::Pid(pid);
    // Fails unless it is our child.
    waitid(child.clone(), options | WaitIdOptions::NOWAIT).ok()?;
    // The start time is gone after the reaping.
    let started = Stat::of(pid).map_or(u64::MAX, |stat| stat.started);
    waitid(child, options).ok()?;
    Some(started)
}
