//! Finds the processes of a conductor by the mark in their environment.

use std::fs;

use rustix::process::{Pid, getpgid, getpgrp, getpid};

use super::MARK;

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

fn has_variable(pid: Pid, variable: &[u8]) -> bool {
    fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
        .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|one| one == variable))
}

/// Whether we must not touch it: a sweep may end others, never itself.
fn is_ours(pid: Pid) -> bool {
    pid.is_init() || pid == getpid() || getpgid(Some(pid)) == Ok(getpgrp())
}
