//! The orphans of a conductor's commands, which the kernel gives to the conductor.
//!
//! So whoever has lost all parents below it is its own child, and it sees after each command
//! whether anything is left of that.

use std::{collections::HashSet, fs::File, io, os::unix::fs::FileExt, time::Duration};

use nix::sys::prctl::set_child_subreaper;
use rustix::{
    fs::{PROC_SUPER_MAGIC, fstatfs},
    process::{Pid, WaitId, WaitIdOptions, waitid},
};

use crate::process::{clock::Boottime, lineage::pids};

/// For so long after a process came to be, pids go on from its own.
pub(super) const RECENT: Duration = Duration::from_secs(1);

/// More pids than that are not tried one by one.
const FEW: i32 = 1000;

#[derive(Debug)]
pub(super) struct Adopted {
    /// Says which pid was given out last.
    loads: Option<File>,
}

impl Adopted {
    /// Has all orphans below this process come to it.
    pub(super) fn from_now_on() -> io::Result<Self> {
        set_child_subreaper(true)?;
        let loads = File::open("/proc/loadavg").ok();
        // In some containers it is made up by somebody else, who knows nothing of pids.
        let is_real = |it: &File| fstatfs(it).is_ok_and(|fs| fs.f_type == PROC_SUPER_MAGIC);
        Ok(Self {
            loads: loads.filter(is_real),
        })
    }

    /// Reaps those that have ended, except for our own children; whether any other is there, or was
    /// until now and may have left one, that may be younger than this process.
    pub(super) fn is_any_since(&self, elder: Pid, born: Boottime, own: &HashSet<Pid>) -> bool {
        match self.younger(elder, born) {
            Some(pids) => is_any(pids, own),
            None => self.reap(own),
        }
    }

    /// Reaps those that have ended, except for our own children; whether there was any other.
    pub(super) fn reap(&self, own: &HashSet<Pid>) -> bool {
        is_any(pids(), own)
    }

    /// Returns the pids that were given out since that of this process, if they are few.
    fn younger(&self, elder: Pid, born: Boottime) -> Option<impl Iterator<Item = Pid> + use<>> {
        let mut text = [0; 64];
        let length = self.loads.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = str::from_utf8(&text[..length]).ok()?;
        let last: i32 = text.split_ascii_whitespace().last()?.parse().ok()?;
        let elder = elder.as_raw_nonzero().get();
        let is_few = (0..FEW).contains(&(last - elder)) && !(born + RECENT).is_past();
        is_few.then(|| (elder + 1..=last).filter_map(Pid::from_raw))
    }
}

/// Reaps the ended ones among these that are our children; whether there is, or was, any.
fn is_any(pids: impl Iterator<Item = Pid>, own: &HashSet<Pid>) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    // It is refused for who is no child.
    let is_child = |pid: Pid| waitid(WaitId::Pid(pid), options).is_ok();
    let others = pids.filter(|pid| !own.contains(pid));
    others.fold(false, |any, pid| is_child(pid) | any)
}
