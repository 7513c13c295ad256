//! The workers of a run; each is restarted whenever it ends.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::cell::Part;
use crate::support::{Env, History, Proxy, Running, process};

/// The longest time to end on request.
const ENDING: Duration = Duration::from_secs(60);

/// The exit code of a killed process, perhaps killed just before a request to end.
const KILLED: i32 = 137;

/// How a worker runs jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `conduct`, without end.
    Conduct,
    /// `claim --next -- COMMAND`, repeatedly.
    Claim,
    /// `run`, this many times.
    Run(usize),
}

pub(super) struct Worker {
    way: Way,
    command: Vec<String>,
    /// Its proxy to the server.
    pub(super) proxy: Option<Proxy>,
    process: Mutex<Option<Running>>,
    is_to_end: AtomicBool,
    runs: AtomicUsize,
    lives: Mutex<Vec<Life>>,
}

/// A process of the worker, from its start to its end.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) way: Way,
    pub(super) pid: u32,
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) code: i32,
    pub(super) log: String,
}

impl Worker {
    pub(super) fn new(way: Way, command: Vec<String>, proxy: Option<Proxy>) -> Self {
        Self {
            way,
            command,
            proxy,
            process: Mutex::new(None),
            is_to_end: AtomicBool::new(false),
            runs: AtomicUsize::new(0),
            lives: Mutex::default(),
        }
    }

    /// Works until asked to end, and returns the problems.
    pub(super) fn work(
        &self,
        env: &Env,
        variables: &[(&str, String)],
        history: &History,
    ) -> Vec<String> {
        let mut complaints = Vec::new();
        while !self.is_over() {
            let words: Vec<&str> = self.command.iter().map(String::as_str).collect();
            let mut invocation = env.jobboard(&words);
            for (name, value) in variables {
                invocation = invocation.env(name, value);
            }
            let begun = history.now();
            *self.process() = Some(invocation.spawn());
            self.runs.fetch_add(1, Ordering::SeqCst);
            complaints.extend(self.wait_for_end(begun, history));
            thread::sleep(Duration::from_millis(20));
        }
        complaints
    }

    /// Ends it after its current job.
    pub(super) fn end(&self) {
        self.is_to_end.store(true, Ordering::SeqCst);
    }

    /// Returns the logs of its processes, oldest first.
    pub(super) fn logs(&self) -> String {
        let lives = lock(&self.lives);
        let text = |life: &Life| {
            let Life { pid, log, code, .. } = life;
            format!("== {pid}\n{log}== ended with {code}\n")
        };
        lives.iter().map(text).collect()
    }

    pub(super) fn lives(&self) -> Vec<Life> {
        lock(&self.lives).clone()
    }

    fn is_over(&self) -> bool {
        let has_run = self.runs.load(Ordering::SeqCst);
        self.is_to_end.load(Ordering::SeqCst)
            || matches!(self.way, Way::Run(most) if has_run >= most)
    }

    fn process(&self) -> MutexGuard<'_, Option<Running>> {
        lock(&self.process)
    }

    /// Waits for the end of a process, and returns its problem.
    fn wait_for_end(&self, begun: Duration, history: &History) -> Option<String> {
        let mut asked = None;
        loop {
            let mut process = self.process();
            let running = process.as_mut()?;
            if running.has_ended() {
                break;
            }
            if self.is_to_end.load(Ordering::SeqCst) {
                let asked = asked.get_or_insert_with(|| {
                    if self.way == Way::Conduct {
                        running.signal(Signal::TERM);
                    }
                    Instant::now()
                });
                if asked.elapsed() > ENDING {
                    let pid = running.pid();
                    running.signal(Signal::KILL);
                    return Some(format!("{pid} ({:?}) did not end", self.way));
                }
            }
            drop(process);
            thread::sleep(Duration::from_millis(20));
        }
        let running = self.process().take()?;
        let pid = running.pid();
        let outcome = running.ended();
        lock(&self.lives).push(Life {
            way: self.way,
            pid,
            begun,
            ended: history.now(),
            code: outcome.code,
            log: outcome.stderr.clone(),
        });
        // Only a conductor that has begun to log has a known exit code after a request to end.
        let is_wrong = outcome.code == 101
            || outcome.stderr.contains("panicked")
            || (self.way == Way::Conduct
                && asked.is_some()
                && !outcome.stderr.is_empty()
                && ![0, KILLED].contains(&outcome.code));
        is_wrong.then(|| {
            format!(
                "{pid} ({:?}) ended with {}: {}",
                self.way, outcome.code, outcome.stderr
            )
        })
    }

    /// Returns its current processes.
    pub(super) fn processes(&self, part: Part) -> Vec<Pid> {
        let Some(pid) = self.process().as_ref().map(Running::pid) else {
            return Vec::new();
        };
        let first = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let ours: Vec<_> = process::all()
            .into_iter()
            .filter(|(pid, _)| is_ours(*pid))
            .collect();
        let mut found = vec![first];
        let mut guards = Vec::new();
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            at += 1;
            let parent = parent.as_raw_nonzero().get();
            for (pid, arguments) in &ours {
                if process::stat(*pid).is_some_and(|stat| stat.parent == parent) {
                    found.push(*pid);
                    if arguments.iter().any(|word| word == "__guard") {
                        guards.push(*pid);
                    }
                }
            }
        }
        match part {
            Part::Both => found,
            Part::Guard => guards,
            Part::Conductor => {
                found.retain(|pid| !guards.contains(pid));
                found
            }
        }
    }
}

/// Signals processes that may be gone.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for &pid in processes {
        let _ = kill_process(pid, signal);
    }
}

/// Whether a process runs the tested program.
fn is_ours(pid: Pid) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero()));
    let tested = Path::new(env!("CARGO_BIN_EXE_jobboard"))
        .as_os_str()
        .as_bytes();
    program.is_ok_and(|program| program.as_os_str().as_bytes().starts_with(tested))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
