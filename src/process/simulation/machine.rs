//! The simulated machine: its clocks, processes and journal, and the first violation of a promise.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::Arc,
    task::Waker,
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::{
    task::AbortHandle,
    time::{self, Instant},
};

use super::{
    End,
    dice::Dice,
    planted::Planted,
    processes::{Behaviour, ProcessTable, pid_of},
    program::{Standing, current, guard_of},
};
use crate::process::{child::CommandEnd, spawn::ChildLifetime};

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
pub(crate) struct Machine {
    planted: Option<Planted>,
    start: Instant,
    epoch: DateTime<Utc>,
    dice: Mutex<Dice>,
    wall_offset: Mutex<TimeDelta>,
    processes: Mutex<ProcessTable>,
    programs: Mutex<BTreeMap<u32, (Standing, Vec<Waker>)>>,
    /// The guards by their conductors, and the number in their labels.
    guards: Mutex<BTreeMap<u32, (AbortHandle, u32)>>,
    unguarded: Mutex<BTreeSet<u32>>,
    /// Jobs with a lost claim, and the time at which the former owner knows at the latest.
    excused: Mutex<BTreeMap<String, Instant>>,
    /// `None` if the events are not recorded.
    journal: Option<Mutex<Vec<String>>>,
    violation: Mutex<Option<String>>,
}

impl Machine {
    /// Starts a machine for this thread; it ends with the returned value.
    pub(crate) fn start(
        seed: u64,
        planted: Option<Planted>,
        has_journal: bool,
    ) -> (Arc<Self>, MachineScope) {
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
            excused: Mutex::default(),
            journal: has_journal.then(Mutex::default),
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

    pub(crate) fn note(&self, text: impl Display) {
        if let Some(journal) = &self.journal {
            let line = format!("{:>12.3}  {text}", self.uptime().as_secs_f64());
            journal.lock().push(line);
        }
    }

    pub(crate) fn journal(&self) -> Vec<String> {
        let journal = self.journal.as_ref();
        journal.map(|it| it.lock().clone()).unwrap_or_default()
    }

    /// Allows a job two commands for some time: the server has lost a claim on it, or a clock has skipped a wait.
    pub(crate) fn excuse(&self, job: &str, long: Duration) {
        let mut excused = self.excused.lock();
        let until = excused.entry(job.to_owned()).or_insert_with(Instant::now);
        *until = (*until).max(Instant::now() + long);
    }

    pub(crate) fn excuses(&self, job: &str) -> bool {
        let excused = self.excused.lock();
        excused
            .get(job)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Records the first violation only. Later ones are usually its consequences.
    pub(crate) fn violate(&self, text: String) {
        let mut violation = self.violation.lock();
        if violation.is_none() {
            self.note(format_args!("VIOLATION {text}"));
            *violation = Some(text);
        }
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    /// Returns the running processes of a job that a conductor or a guard can still end in time.
    pub(crate) fn guarded_of(&self, job: &str) -> Vec<i32> {
        self.processes.lock().of_job(job, &self.unguarded.lock())
    }

    pub(crate) fn has_succeeded(&self, job: &str) -> bool {
        self.processes.lock().has_succeeded(job)
    }

    /// Forgets ended jobs, and programs that are gone.
    pub(crate) fn forget(&self) {
        self.processes.lock().forget_successes();
        self.guards
            .lock()
            .retain(|_, (task, _)| !task.is_finished());
        self.excused.lock().clear();
    }

    /// Records that the commands of this conductor may outlive their claims: it has no guard.
    pub(crate) fn unguard(&self, program: u32) {
        self.unguarded.lock().insert(program);
    }

    /// Returns the number of commands started so far.
    pub(crate) fn commands(&self) -> u64 {
        self.processes.lock().commands()
    }

    /// Starts a command for a job. The current program becomes its parent.
    pub(crate) fn start_command(
        self: &Arc<Self>,
        job: &str,
        lifetime: Option<ChildLifetime>,
    ) -> (i32, End) {
        let running = match lifetime {
            Some(_) => self.processes.lock().of_job(job, &BTreeSet::new()),
            // A Python service does not look for commands of dead conductors.
            None => self.guarded_of(job),
        };
        if !running.is_empty() && !self.excuses(job) {
            self.violate(format!(
                "two commands of job {job} run at a time: {running:?}"
            ));
        }
        let (how, child) = self.with_dice(|dice| {
            let how = Behaviour::of_command(dice);
            let is_parent = lifetime.is_some() && dice.below(6) == 0;
            let child = (dice.below(2) == 0, Behaviour::of_descendant(dice));
            (how, is_parent.then_some(child))
        });
        let command = (job, current(), lifetime);
        let (pid, end) = self.processes.lock().start(command, how);
        let Behaviour { ends, lasts, .. } = how;
        self.note(format_args!("start {pid} of {job}: {ends} after {lasts:?}"));
        self.end_in_time(pid, how);
        if let Some((leaves_group, how)) = child {
            let child = self.processes.lock().fork(pid, leaves_group, how);
            if let Some(child) = child {
                let place = if leaves_group { "outside" } else { "in" };
                self.note(format_args!("{pid} starts {child} {place} its group"));
                self.end_in_time(child, how);
            }
        }
        (pid, end)
    }

    fn end_in_time(self: &Arc<Self>, pid: i32, how: Behaviour) {
        let machine = Arc::downgrade(self);
        tokio::spawn(async move {
            time::sleep(how.lasts).await;
            if let Some(machine) = machine.upgrade() {
                machine.processes.lock().end(pid, how.ends);
            }
        });
    }

    pub(crate) fn set(&self, program: u32, standing: Standing) {
        let has_guard = self.standing(guard_of(program)) == Standing::Runs;
        if standing != Standing::Runs && !has_guard {
            self.unguard(program);
        }
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
            self.processes.lock().orphan_children_of(program);
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

    /// Runs on the process table, unless the current program is dead.
    pub(super) fn processes<T>(&self, act: impl FnOnce(&mut ProcessTable) -> T) -> Option<T> {
        let is_dead = |program| self.standing(program) == Standing::Dead;
        (!current().is_some_and(is_dead)).then(|| act(&mut self.processes.lock()))
    }

    pub(super) fn pids(&self) -> Vec<i32> {
        let guards = self.guards.lock();
        let guards = guards.iter().filter(|(_, (it, _))| !it.is_finished());
        let guards = guards.map(|(&conductor, _)| pid_of(guard_of(conductor)));
        self.processes.lock().pids().chain(guards).collect()
    }

    /// Returns the number in the labels of a guard's commands, if the guard runs.
    pub(super) fn watched_by(&self, pid: i32) -> Option<u32> {
        let guards = self.guards.lock();
        let mut guards = guards.iter();
        let (&conductor, (task, label)) = guards.find(|(it, _)| pid_of(guard_of(**it)) == pid)?;
        let runs = self.standing(guard_of(conductor)) == Standing::Runs;
        (runs && !task.is_finished()).then_some(*label)
    }

    pub(super) fn add_guard(&self, conductor: u32, guard: (AbortHandle, u32)) {
        self.guards.lock().insert(conductor, guard);
    }

    pub(crate) fn kill_guard(&self, of: u32) {
        if self.standing(of) != Standing::Runs {
            self.unguard(of);
        }
        if let Some((guard, _)) = self.guards.lock().get(&of) {
            guard.abort();
        }
    }
}

impl Behaviour {
    fn of_command(dice: &mut Dice) -> Self {
        let longest = [100, 1_000, 20_000, 90_000][dice.below(4) as usize];
        let ends = match dice.below(100) {
            0..82 => CommandEnd::Exit(0),
            82..95 => CommandEnd::Exit(1),
            95..98 => CommandEnd::Exit(75),
            _ => CommandEnd::Signal(9),
        };
        Self {
            ends,
            lasts: Duration::from_millis(1 + dice.below(longest)),
            is_stubborn: dice.below(5) == 0,
        }
    }

    /// Many descendants outlive their command.
    fn of_descendant(dice: &mut Dice) -> Self {
        Self {
            ends: CommandEnd::Exit(1),
            lasts: Duration::from_millis(1 + dice.below(300_000)),
            is_stubborn: dice.below(3) == 0,
        }
    }
}
