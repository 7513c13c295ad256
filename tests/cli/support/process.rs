//! Processes of this machine, and how a test finds its own.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::env::{Running, comes_true, wait_until};

#[derive(Debug)]
pub(crate) struct Stat {
    /// `S` for sleeping, `T` for stopped, `Z` for a zombie.
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// The process group that controls the terminal.
    pub(crate) foreground: i32,
}

/// Looks a process up; zombies exist too.
pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let fields: Vec<&str> = text[text.rfind(')')? + 2..].split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: number(1)?,
        group: number(2)?,
        foreground: number(5)?,
    })
}

/// Whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Waits until a second signal cannot be taken for an echo of the first within 200 ms: a shell and the kernel both
/// send one.
pub(crate) fn no_echo() {
    thread::sleep(Duration::from_millis(300));
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).unwrap();
}

pub(crate) fn all() -> Vec<(Pid, Vec<String>)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter_map(|pid| Some((pid, arguments(pid)?)))
        .collect()
}

/// Returns the arguments of a process with the program first; `None` after its end.
fn arguments(pid: Pid) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let arguments = text.strip_suffix('\0')?.split('\0');
    Some(arguments.map(str::to_owned).collect())
}

pub(crate) fn guards(of: Pid) -> Vec<Pid> {
    let is_guard = |&(pid, ref arguments): &(Pid, Vec<String>)| {
        arguments.get(1).is_some_and(|word| word == "__guard")
            && stat(pid).is_some_and(|stat| stat.parent == of.as_raw_nonzero().get())
    };
    let guards = all().into_iter().filter(is_guard);
    guards.map(|(pid, _)| pid).collect()
}

/// Whether a guard knows the deadline of a command: then its timer is set.
pub(crate) fn watches(guard: Pid) -> bool {
    let directory = format!("/proc/{}/fdinfo", guard.as_raw_nonzero());
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut text = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    text.any(|text| text.contains("it_value: (") && !text.contains("it_value: (0, 0)"))
}

/// A text that only one test's processes have in their arguments, and a duration for `sleep`.
///
/// Those processes end with the test.
pub(crate) struct Tag(String);

impl Tag {
    /// Makes a duration longer than any test.
    pub(crate) fn new() -> Self {
        Self::of_seconds(600)
    }

    /// Makes a duration of this many seconds plus a tiny unique fraction.
    pub(crate) fn of_seconds(seconds: u32) -> Self {
        let unlike_any = uuid::Uuid::new_v4().as_u128();
        Self(format!("{seconds}.000{unlike_any}"))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    fn processes(&self) -> Vec<(Pid, Vec<String>)> {
        let has_it = |(_, arguments): &(Pid, Vec<String>)| {
            arguments.iter().any(|argument| argument.contains(&self.0))
        };
        all().into_iter().filter(has_it).collect()
    }

    /// Returns the commands of jobs.
    pub(crate) fn commands(&self) -> Vec<Pid> {
        let processes = self.processes().into_iter();
        let commands = processes.filter(|(_, arguments)| !is_ours(arguments));
        commands.map(|(pid, _)| pid).collect()
    }

    /// Returns the commands that sleep.
    pub(crate) fn sleepers(&self) -> Vec<Pid> {
        let sleep = ["sleep", &self.0];
        let processes = self.processes().into_iter();
        let sleepers = processes.filter(|(_, arguments)| *arguments == sleep);
        sleepers.map(|(pid, _)| pid).collect()
    }

    /// Returns the process that runs the job, the parent of its command.
    pub(crate) fn performer(&self) -> Pid {
        let processes = self.processes().into_iter();
        let ours = processes.filter(|(_, arguments)| is_ours(arguments));
        let performer = ours
            .map(|(pid, _)| pid)
            .find(|&pid| !guards(pid).is_empty());
        performer.expect("a process runs the job")
    }

    /// Waits until this many commands of a run sleep under a guard.
    pub(crate) fn sleeps(&self, run: &mut Running, times: usize) {
        wait_until("the command runs", || {
            assert!(!run.has_ended(), "it ended instead: {}", run.stdout());
            self.sleepers().len() == times
        });
        let performer = self.performer();
        wait_until("the guard watches", || {
            guards(performer).into_iter().all(watches)
        });
    }

    /// Requires that every command has ended by this moment, and returns as soon as they have.
    pub(crate) fn is_gone_by(&self, moment: Instant) {
        let most = moment.saturating_duration_since(Instant::now());
        let is_gone = comes_true(most, || self.commands().is_empty());
        assert!(is_gone, "still there: {:?}", self.processes());
    }

    pub(crate) fn is_reaped(&self, pid: Pid) {
        wait_until("it is reaped", || stat(pid).is_none());
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            // It may have ended already.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn is_ours(arguments: &[String]) -> bool {
    let program = arguments.first().map_or("", |program| program.as_str());
    program == env!("CARGO_BIN_EXE_jobboard") || program == "jobboard"
}
