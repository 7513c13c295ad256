//! Checks whether a process is alive, if that is visible from here.

use std::fs;

use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

use super::group::Stat;

/// Returns an identifier of this process that is unique over time.
pub(crate) fn this_process() -> Option<String> {
    Some(format!("{} {}", space()?, Stat::of(getpid())?.started))
}

/// `None` if the process is not visible from here. `process` is its own result of [`this_process`].
pub(crate) fn has_ended(host: &str, pid: u32, process: Option<&str>) -> Option<bool> {
    let started = match process {
        Some(process) => {
            let (space, started) = process.rsplit_once(' ')?;
            (Some(space) == self::space().as_deref()).then_some(())?;
            Some(started)
        }
        None => {
            let here = rustix::system::uname().nodename().to_string_lossy() == host;
            here.then_some(None)?
        }
    };
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let found = Stat::of(pid);
    // Other users' processes may be hidden from us.
    if found.is_none() && test_kill_process(pid) != Err(Errno::SRCH) {
        return None;
    }
    let found = found.filter(|found| !found.has_ended());
    // Another process may use its pid by now.
    let is_it = found
        .is_some_and(|found| started.is_none_or(|started| started.parse() == Ok(found.started)));
    Some(!is_it)
}

/// Returns the boot and the pid namespace, within which pids are unique.
fn space() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_state_is_detected_without_guessing() {
        let (us, pid) = (this_process().unwrap(), std::process::id());
        let gone = std::process::Command::new("true").spawn().unwrap();
        let gone_pid = gone.id();
        gone.wait_with_output().unwrap();
        assert_eq!(has_ended("elsewhere", pid, Some(&us)), Some(false));
        assert_eq!(has_ended("elsewhere", gone_pid, Some(&us)), Some(true));
        // Our pid with another start time means another process.
        let (space, _) = us.rsplit_once(' ').unwrap();
        assert_eq!(has_ended("h", pid, Some(&format!("{space} 1"))), Some(true));
        assert_eq!(has_ended("h", gone_pid, Some("another boot 1")), None);
        assert_eq!(has_ended("elsewhere", gone_pid, None), None);
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        assert_eq!(has_ended(&host, gone_pid, None), Some(true));
    }
}
