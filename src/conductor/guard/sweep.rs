//! Finds the processes of a conductor by the mark in their environment.

use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::MARK;
use crate::conductor::group::{Stat, own_group};

/// Looks through all processes for those with this mark, except ourselves and our own group.
pub(super) fn marked(mark: &str) -> Vec<Pid> {
    // Not told a mark yet, the guard knows of nobody; an empty one could be anybody's.
    if mark.is_empty() {
        return Vec::new();
    }
    let variable = format!("{MARK}={mark}");
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|&pid| has_variable(pid, variable.as_bytes()) && !is_ours(pid))
        .collect()
}

/// Kills what a command left behind that is not in its group any more, by the mark and its claim.
pub(crate) fn kill_strays(mark: &str, fence: &str) {
    let claim = format!("JOBBOARD_FENCE={fence}");
    for pid in marked(mark) {
        if has_variable(pid, claim.as_bytes()) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn has_variable(pid: Pid, variable: &[u8]) -> bool {
    fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
        .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|one| one == variable))
}

/// Whether we must not touch it: a sweep may end others, never itself.
fn is_ours(pid: Pid) -> bool {
    let is_in_our_group = || Stat::of(pid).is_some_and(|stat| stat.group == own_group());
    pid.is_init() || pid == getpid() || is_in_our_group()
}
