//! Process groups, and the kernel's data about processes.

use std::{cmp::Ordering, fs, io, sync::Arc, time::Duration};

use rustix::{
    buffer::spare_capacity,
    fs::{Mode, OFlags, open},
    io::{Errno, read},
    param::page_size,
    process::{
        Pid, PidfdFlags, Signal, getpgid, getpid, kill_process_group, pidfd_open, test_kill_process,
    },
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};

use super::host_name;
#[cfg(test)]
use super::simulation;
use crate::watched_fd::WatchedFd;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "i32", try_from = "i32")]
pub(crate) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// `None` for the pid 1: a signal to "its group" would go to every process on the machine.
    pub(crate) fn led_by(leader: Pid) -> Option<Self> {
        (!leader.is_init()).then_some(Self(leader))
    }

    /// The leader may be dead.
    pub(crate) fn leader(self) -> Pid {
        self.0
    }

    pub(crate) fn signal(self, signal: Signal) {
        #[cfg(test)]
        if simulation::signal_group(self.0, signal) {
            return;
        }
        // Only a signal shows whether it still exists, and other refusals cannot be fixed.
        let _ = kill_process_group(self.0, signal);
    }

    pub(crate) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }
}

impl Ord for ProcessGroup {
    fn cmp(&self, other: &Self) -> Ordering {
        i32::from(*self).cmp(&i32::from(*other))
    }
}

impl PartialOrd for ProcessGroup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<ProcessGroup> for i32 {
    fn from(group: ProcessGroup) -> Self {
        group.0.as_raw_nonzero().get()
    }
}

impl TryFrom<i32> for ProcessGroup {
    type Error = &'static str;

    fn try_from(number: i32) -> Result<Self, Self::Error> {
        // A negative number would address a group of another process, or all processes.
        let leader = Some(number).filter(|it| *it > 0).and_then(Pid::from_raw);
        leader.and_then(Self::led_by).ok_or("not a process group")
    }
}

#[derive(Debug, Clone)]
pub(crate) enum ProcessEnd {
    Kernel(Arc<WatchedFd>),
    #[cfg(test)]
    Simulated(simulation::End),
}

impl ProcessEnd {
    /// Opens a process that cannot be reaped meanwhile, so its pid is safe to use.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        let end = WatchedFd::new(pidfd_open(pid, PidfdFlags::empty())?)?;
        Ok(Self::Kernel(Arc::new(end)))
    }

    pub(super) async fn wait(&self) {
        match self {
            Self::Kernel(end) => end.wait().await,
            #[cfg(test)]
            Self::Simulated(end) => _ = end.clone().wait_for(Option::is_some).await,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `T` (stopped), `Z` (ended, not reaped) and so on.
    pub(crate) state: char,
    /// Its parent or adopter; `None` for one outside of our namespace.
    pub(crate) parent: Option<Pid>,
    /// The leader of its group; `None` for one outside of our namespace.
    pub(crate) group: Option<Pid>,
    /// The number of threads, even if only the main thread has ended.
    pub(crate) threads: u32,
    /// When it started, in ticks: together with the pid it identifies a process.
    pub(crate) started: u64,
}

impl Stat {
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        #[cfg(test)]
        if simulation::is_ours(pid) {
            return simulation::stat(pid);
        }
        Self::parse(&facts(pid, "stat")?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        // The second field is the name in parentheses, which may contain parentheses.
        let name_end = bytes.iter().rposition(|&byte| byte == b')')?;
        let rest = str::from_utf8(bytes.get(name_end + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let (parent, group) = (fields.next()?, fields.next()?);
        let threads = fields.nth(14)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        Some(Self {
            state,
            parent: number(parent)?,
            group: number(group)?,
            threads,
            started,
        })
    }

    pub(crate) fn has_ended(self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// Reads a short `/proc` file in one call, unlike the standard library.
pub(super) fn facts(pid: Pid, file: &str) -> Option<Vec<u8>> {
    let path = format!("/proc/{}/{file}", pid.as_raw_nonzero());
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = Vec::with_capacity(4096);
    read(&file, spare_capacity(&mut text)).ok()?;
    Some(text)
}

/// Reads a pid; the inner one is `None` for a process outside of our namespace.
fn number(text: &str) -> Option<Option<Pid>> {
    let pid = text.parse().ok()?;
    Some(Some(pid).filter(|&pid| pid > 0).and_then(Pid::from_raw))
}

pub(crate) fn group_of(pid: Pid) -> Option<Pid> {
    #[cfg(test)]
    if simulation::is_ours(pid) {
        return simulation::stat(pid)?.group;
    }
    getpgid(Some(pid)).ok()
}

/// The library's own call fails in a container: it does not expect a group without a leader.
pub(crate) fn own_group() -> Option<Pid> {
    Stat::of(getpid())?.group
}

/// Identifies this process by its pid namespace and its start time.
pub(crate) fn process_start() -> Option<String> {
    start_of(getpid())
}

pub(crate) fn start_of(pid: Pid) -> Option<String> {
    Some(format!("{} {}", space()?, Stat::of(pid)?.started))
}

/// `None` if the process is not visible from here. `process` is its own result of [`process_start`].
pub(crate) fn has_ended(host: &str, pid: u32, process: Option<&str>) -> Option<bool> {
    found(host, pid, process).map(|found| found.is_none())
}

/// Whether the process is visible from here and stopped, for example by SIGSTOP.
pub(crate) fn is_stopped(host: &str, pid: u32, process: Option<&str>) -> bool {
    let found = found(host, pid, process).flatten();
    found.is_some_and(|it| matches!(it.state, 'T' | 't'))
}

/// Returns the process if it has not ended; `None` if it is not visible from here.
fn found(host: &str, pid: u32, process: Option<&str>) -> Option<Option<Stat>> {
    let (is_visible, started) = match process {
        Some(process) => {
            let (space, started) = process.rsplit_once(' ')?;
            (self::space().as_deref() == Some(space), Some(started))
        }
        None => (host_name() == host, None),
    };
    let pid = Pid::from_raw(i32::try_from(pid).ok()?).filter(|_| is_visible)?;
    let found = Stat::of(pid);
    // Other users' processes may be hidden from us.
    if found.is_none() && test_kill_process(pid) != Err(Errno::SRCH) {
        return None;
    }
    let found = found.filter(|found| !found.has_ended());
    // Another process may use its pid by now.
    let is_it = |found: &Stat| started.is_none_or(|started| started.parse() == Ok(found.started));
    Some(found.filter(is_it))
}

/// Returns the boot and the pid namespace, within which pids are unique.
fn space() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) processor: Duration,
    pub(crate) memory: Option<u64>,
    pub(crate) files: Option<usize>,
}

impl Usage {
    pub(crate) fn now() -> Self {
        let processor = clock_gettime(ClockId::ProcessCPUTime).try_into();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse::<u64>().ok());
        Self {
            processor: processor.unwrap_or_default(),
            memory: pages.map(|pages| pages * page_size() as u64),
            // One of them is the descriptor of this listing.
            files: fs::read_dir("/proc/self/fd").ok().map(|it| it.count() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_in_a_process_name_are_parsed() {
        let line = b"7 (a) T (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 5 6\n";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.state, stat.started), ('S', 4711));
        let (parent, group) = (Pid::from_raw(1), Pid::from_raw(7));
        assert_eq!((stat.parent, stat.group), (parent, group));
    }

    #[test]
    fn process_lives_while_one_of_its_threads_does() {
        let has_ended = |state: char, threads: u32| {
            let line =
                format!("7 (a) {state} 1 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 {threads} 0 4711 5\n");
            Stat::parse(line.as_bytes()).unwrap().has_ended()
        };
        assert!(has_ended('Z', 1) && !has_ended('Z', 2) && !has_ended('S', 1));
    }

    #[test]
    fn leader_outside_the_namespace_is_none() {
        let line = b"2 (jobboard) S 1 0 0 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 5 6\n";
        assert_eq!(Stat::parse(line).unwrap().group, None);
    }

    #[test]
    fn own_process_has_a_stat_and_a_missing_one_does_not() {
        assert_eq!(Stat::of(getpid()).map(|stat| stat.started > 0), Some(true));
        assert_eq!(Stat::of(Pid::from_raw(i32::MAX).unwrap()), None);
    }

    #[test]
    fn first_process_leads_no_group() {
        assert_eq!(ProcessGroup::led_by(Pid::INIT), None);
    }

    #[test]
    fn process_state_is_detected_without_guessing() {
        let (us, pid) = (process_start().unwrap(), std::process::id());
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
        assert_eq!(has_ended(&host_name(), gone_pid, None), Some(true));
    }

    #[test]
    fn usage_of_a_process_is_positive() {
        let usage = Usage::now();
        assert!(usage.processor > Duration::ZERO);
        assert!(usage.memory.unwrap() > 100_000 && usage.files.unwrap() >= 3);
    }
}
