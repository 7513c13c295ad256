//! The simulated machine: its clocks, processes and journal, and the first violation of a promise.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    task::Waker,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{self, Instant},
};

use super::{
    End, FIRST_PID,
    dice::Dice,
    planted::Planted,
    program::{Standing, current},
};
use crate::process::{child::Ended, label::Label, spawn::Bonds};

thread_local! {
    static MACHINE: RefCell<Option<Arc<Machine>>> = const { RefCell::new(None) };
}

pub(crate) fn machine() -> Option<Arc<Machine>> {
    MACHINE.with_borrow(Clone::clone)
}

/// Ends the machine of this thread when it is dropped.
pub(crate) struct MachineScope;

impl Drop for MachineScope {
    fn drop(&mut self) {
        MACHINE.set(None);
    }
}

#[derive(Debug)]
struct SimulatedProcess {
    parent: Option<u32>,
    label: Option<Label>,
    job: String,
    is_leashed: bool,
    is_stubborn: bool,
    end: watch::Sender<Option<Ended>>,
}

impl SimulatedProcess {
    fn is_alive(&self) -> bool {
        self.end.borrow().is_none()
    }

    /// Only the first end counts.
    fn end(&self, how: Ended) {
        self.end.send_if_modified(|end| {
            let is_alive = end.is_none();
            end.get_or_insert(how);
            is_alive
        });
    }
}

#[derive(Debug)]
pub(crate) struct Machine {
    planted: Option<Planted>,
    start: Instant,
    epoch: DateTime<Utc>,
    dice: Mutex<Dice>,
    wall_offset: Mutex<TimeDelta>,
    processes: Mutex<BTreeMap<i32, SimulatedProcess>>,
    programs: Mutex<BTreeMap<u32, (Standing, Vec<Waker>)>>,
    guards: Mutex<BTreeMap<u32, AbortHandle>>,
    unguarded: Mutex<BTreeSet<u32>>,
    started: Mutex<i32>,
    journal: Mutex<Vec<String>>,
    violation: Mutex<Option<String>>,
}

impl Machine {
    /// Starts a machine for this thread; it ends with the returned value.
    pub(crate) fn start(seed: u64, planted: Option<Planted>) -> (Arc<Self>, MachineScope) {
        let machine = Arc::new(Self {
            planted,
            start: Instant::now(),
            epoch: DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default(),
            dice: Mutex::new(Dice::new(seed)),
            wall_offset: Mutex::default(),
            processes: Mutex::default(),
            programs: Mutex::default(),
            guards: Mutex::default(),
            unguarded: Mutex::default(),
            started: Mutex::default(),
            journal: Mutex::default(),
            violation: Mutex::default(),
        });
        MACHINE.set(Some(Arc::clone(&machine)));
        (machine, MachineScope)
    }

    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    pub(super) fn wall(&self) -> DateTime<Utc> {
        self.epoch + self.uptime() + *self.wall_offset.lock()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn epoch(&self) -> DateTime<Utc> {
        self.epoch
    }

    pub(crate) fn with_dice<T>(&self, draw: impl FnOnce(&mut Dice) -> T) -> T {
        draw(&mut self.dice.lock())
    }

    pub(crate) fn set_wall_clock(&self, by: TimeDelta) {
        *self.wall_offset.lock() = by;
    }

    pub(crate) fn note(&self, text: impl AsRef<str>) {
        let line = format!("{:>12.3}  {}", self.uptime().as_secs_f64(), text.as_ref());
        self.journal.lock().push(line);
    }

    pub(crate) fn journal(&self) -> Vec<String> {
        self.journal.lock().clone()
    }

    /// Records the first violation only. Later ones are usually its consequences.
    pub(crate) fn violate(&self, text: String) {
        let mut violation = self.violation.lock();
        if violation.is_none() {
            self.note(format!("VIOLATION {text}"));
            *violation = Some(text);
        }
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    /// Returns the running commands of a job that a conductor or a guard can still end in time.
    pub(crate) fn guarded_of(&self, job: &str) -> Vec<i32> {
        let unguarded = self.unguarded.lock();
        self.running_of(job, |it| {
            it.parent.is_some_and(|parent| !unguarded.contains(&parent))
        })
    }

    fn running_of(&self, job: &str, is_meant: impl Fn(&SimulatedProcess) -> bool) -> Vec<i32> {
        let processes = self.processes.lock();
        let of_job = processes
            .iter()
            .filter(|(_, it)| it.job == job && it.is_alive() && is_meant(it));
        of_job.map(|(&pid, _)| pid).collect()
    }

    pub(crate) fn has_succeeded(&self, job: &str) -> bool {
        let processes = self.processes.lock();
        let mut ends = processes.values().filter(|it| it.job == job);
        ends.any(|it| *it.end.borrow() == Some(Ended::Exit(0)))
    }

    /// Records that the commands of this conductor may outlive their claims: it has no guard.
    pub(crate) fn unguard(&self, program: u32) {
        self.unguarded.lock().insert(program);
    }

    /// Returns the number of commands started so far.
    pub(crate) fn started(&self) -> i32 {
        *self.started.lock()
    }

    /// Starts a command for a job. The current program becomes its parent.
    pub(crate) fn start_command(self: &Arc<Self>, job: &str, bonds: Option<Bonds>) -> (i32, End) {
        let running = match bonds {
            Some(_) => self.running_of(job, |_| true),
            // A Python service does not look for commands of dead conductors.
            None => self.guarded_of(job),
        };
        if !running.is_empty() {
            self.violate(format!("two commands of job {job} run at a time"));
        }
        let (long, how, is_stubborn) = self.with_dice(|dice| {
            let longest = [100, 1_000, 20_000, 90_000][dice.below(4) as usize];
            let how = match dice.below(100) {
                0..82 => Ended::Exit(0),
                82..95 => Ended::Exit(1),
                95..98 => Ended::Exit(75),
                _ => Ended::Signal(9),
            };
            (1 + dice.below(longest), how, dice.below(5) == 0)
        });
        let (sender, end_of_it) = watch::channel(None);
        let pid = {
            let mut started = self.started.lock();
            *started += 1;
            FIRST_PID + *started
        };
        let process = SimulatedProcess {
            parent: current(),
            label: bonds.map(|bonds| bonds.label),
            job: job.to_owned(),
            is_leashed: bonds.is_some_and(|bonds| bonds.at_our_death.is_some()),
            is_stubborn,
            end: sender,
        };
        self.processes.lock().insert(pid, process);
        self.note(format!("start {pid} of {job}: {how} after {long} ms"));
        let machine = Arc::clone(self);
        tokio::spawn(async move {
            time::sleep(Duration::from_millis(long)).await;
            let processes = machine.processes.lock();
            if let Some(process) = processes.get(&pid) {
                process.end(how);
            }
        });
        (pid, end_of_it)
    }

    pub(crate) fn set(&self, program: u32, standing: Standing) {
        let wakers = {
            let mut programs = self.programs.lock();
            let known = programs
                .entry(program)
                .or_insert((Standing::Runs, Vec::new()));
            if known.0 == Standing::Dead {
                return;
            }
            known.0 = standing;
            std::mem::take(&mut known.1)
        };
        wakers.into_iter().for_each(Waker::wake);
        if standing == Standing::Dead {
            self.end_leashed(program);
        }
    }

    /// Whether the program runs; if not, its next change wakes the caller.
    pub(super) fn lets_run(&self, program: u32, waker: &Waker) -> bool {
        match self.programs.lock().get_mut(&program) {
            Some((standing, wakers)) if *standing != Standing::Runs => {
                wakers.push(waker.clone());
                false
            }
            _ => true,
        }
    }

    pub(crate) fn standing(&self, program: u32) -> Standing {
        let programs = self.programs.lock();
        programs
            .get(&program)
            .map_or(Standing::Runs, |known| known.0)
    }

    /// Signals a command, unless the sender is dead.
    pub(super) fn signal(&self, pid: i32, signal: Signal) {
        if current().is_some_and(|program| self.standing(program) == Standing::Dead) {
            return;
        }
        if let Some(process) = self.processes.lock().get(&pid)
            && (signal == Signal::KILL || signal == Signal::TERM && !process.is_stubborn)
        {
            process.end(Ended::Signal(signal.as_raw()));
        }
    }

    /// `None` if no command has this process id.
    pub(super) fn is_alive(&self, pid: i32) -> Option<bool> {
        let processes = self.processes.lock();
        processes.get(&pid).map(SimulatedProcess::is_alive)
    }

    pub(super) async fn end_left_over(&self, job: u32) {
        let is_left = |process: &&SimulatedProcess| {
            process.is_alive() && process.label.is_some_and(|label| label.job() == job)
        };
        if !self.processes.lock().values().any(|it| is_left(&it)) {
            return;
        }
        // The real code first asks each process to end.
        time::sleep(Duration::from_millis(500)).await;
        for process in self.processes.lock().values().filter(is_left) {
            process.end(Ended::Signal(Signal::KILL.as_raw()));
        }
    }

    pub(super) fn add_guard(&self, conductor: u32, guard: AbortHandle) {
        self.guards.lock().insert(conductor, guard);
    }

    /// The kernel asks the leashed commands of a dead conductor to end.
    fn end_leashed(&self, program: u32) {
        let processes = self.processes.lock();
        let leashed = processes
            .values()
            .filter(|it| it.parent == Some(program) && it.is_leashed && !it.is_stubborn);
        for process in leashed {
            process.end(Ended::Signal(Signal::TERM.as_raw()));
        }
    }

    pub(crate) fn kill_guard(&self, of: u32) {
        if let Some(guard) = self.guards.lock().get(&of) {
            guard.abort();
        }
    }
}
