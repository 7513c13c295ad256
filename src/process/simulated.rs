//! A machine in memory: its clocks, its chance, its processes, and the conductors that run on it.
//!
//! All of it hangs on one thread and follows tokio's paused clock. Where no machine is started, nothing changes.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    task::AbortHandle,
    time::{self, Instant},
};

use super::{
    child::{Ended, ProcessEnd},
    command::CommandSpec,
    group::{ProcessGroup, Stat},
    label::{JOB, Label},
    spawn::Bonds,
};

/// Beyond all process ids of Linux, so that a stray signal reaches nobody.
const FIRST_PID: i32 = 1 << 23;

pub(crate) type End = watch::Receiver<Option<Ended>>;

thread_local! {
    static MACHINE: RefCell<Option<Arc<Machine>>> = const { RefCell::new(None) };
    /// The program whose code runs at this moment.
    static RUNNING: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Faults in the real code, planted to see that the simulation finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    SettlesWithoutFence,
    ReleasesWithoutFence,
    AnyOwnerMayAct,
    GuardForgets,
    TellsTheGuardTooLate,
    StartsBesideLeftovers,
    CountsFromTheLastConfirmation,
    CountsFromTheAnswer,
    NoticesNoLateClaim,
}

impl Planted {
    pub(crate) const ALL: [Self; 9] = [
        Self::SettlesWithoutFence,
        Self::ReleasesWithoutFence,
        Self::AnyOwnerMayAct,
        Self::GuardForgets,
        Self::TellsTheGuardTooLate,
        Self::StartsBesideLeftovers,
        Self::CountsFromTheLastConfirmation,
        Self::CountsFromTheAnswer,
        Self::NoticesNoLateClaim,
    ];
}

/// Random numbers from a seed (splitmix64).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn chance(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.next() % count.max(1)
    }

    pub(crate) fn between(&mut self, (least, most): (Duration, Duration)) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.chance())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Runs,
    /// By SIGSTOP: time passes, and none of its code runs.
    Stopped,
    /// By SIGKILL.
    Dead,
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
    pub(crate) fn start(seed: u64, planted: Option<Planted>) -> (Arc<Self>, Running) {
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
        (machine, Running)
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

    /// Records the first violation only: the later ones follow from it.
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

    pub(crate) fn running_of(&self, job: &str) -> Vec<i32> {
        let processes = self.processes.lock();
        let of_job = processes
            .iter()
            .filter(|(_, it)| it.job == job && it.is_alive());
        of_job.map(|(&pid, _)| pid).collect()
    }

    /// Returns the running commands of a job whose conductor or guard can still end them in time.
    pub(crate) fn guarded_of(&self, job: &str) -> Vec<i32> {
        let unguarded = self.unguarded.lock();
        let processes = self.processes.lock();
        let of_job = processes.iter().filter(|(_, it)| {
            it.job == job && it.is_alive() && it.parent.is_some_and(|it| !unguarded.contains(&it))
        });
        of_job.map(|(&pid, _)| pid).collect()
    }

    pub(crate) fn has_succeeded(&self, job: &str) -> bool {
        let processes = self.processes.lock();
        let mut ends = processes.values().filter(|it| it.job == job);
        ends.any(|it| *it.end.borrow() == Some(Ended::Exit(0)))
    }

    /// From now on nobody promises that the commands of this conductor end with their claims.
    pub(crate) fn unguard(&self, program: u32) {
        self.unguarded.lock().insert(program);
    }

    /// Counts the commands started so far.
    pub(crate) fn started(&self) -> i32 {
        *self.started.lock()
    }

    /// Performs a job by a command of the running program, or of somebody without a conductor.
    pub(crate) fn start_command(self: &Arc<Self>, job: &str, bonds: Option<Bonds>) -> (i32, End) {
        if !self.running_of(job).is_empty() {
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
            parent: RUNNING.get(),
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
                end(process, how);
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

    pub(crate) fn standing(&self, program: u32) -> Standing {
        let programs = self.programs.lock();
        programs
            .get(&program)
            .map_or(Standing::Runs, |known| known.0)
    }

    /// The kernel asks the leashed commands of a dead conductor to end.
    fn end_leashed(&self, program: u32) {
        let processes = self.processes.lock();
        let leashed = processes
            .values()
            .filter(|it| it.parent == Some(program) && it.is_leashed && !it.is_stubborn);
        for process in leashed {
            end(process, Ended::Signal(Signal::TERM.as_raw()));
        }
    }

    pub(crate) fn kill_guard(&self, of: u32) {
        if let Some(guard) = self.guards.lock().get(&of) {
            guard.abort();
        }
    }
}

/// Ends the machine of this thread when it is dropped.
pub(crate) struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        MACHINE.set(None);
    }
}

pub(crate) fn has(planted: Planted) -> bool {
    machine().is_some_and(|machine| machine.planted == Some(planted))
}

pub(crate) fn machine() -> Option<Arc<Machine>> {
    MACHINE.with_borrow(Clone::clone)
}

pub(crate) fn uptime() -> Option<Duration> {
    Some(machine()?.uptime())
}

pub(crate) fn wall() -> Option<DateTime<Utc>> {
    let machine = machine()?;
    let since = TimeDelta::from_std(machine.uptime()).ok()?;
    Some(machine.epoch + since + *machine.wall_offset.lock())
}

pub(crate) fn chance() -> Option<f64> {
    Some(machine()?.with_dice(Dice::chance))
}

/// Makes a future a part of the running program, which can be stopped and killed.
pub(crate) fn part<F: Future>(future: F) -> Part<F> {
    part_of(RUNNING.get(), future)
}

pub(crate) fn part_of<F: Future>(program: Option<u32>, future: F) -> Part<F> {
    Part {
        program,
        future: Some(Box::pin(future)),
    }
}

pub(crate) struct Part<F> {
    program: Option<u32>,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Part<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let program = self.program;
        if let (Some(program), Some(machine)) = (program, machine()) {
            let mut programs = machine.programs.lock();
            if let Some((standing, wakers)) = programs.get_mut(&program)
                && *standing != Standing::Runs
            {
                wakers.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        let _inside = Inside::of(program);
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Part<F> {
    fn drop(&mut self) {
        let _inside = Inside::of(self.program);
        self.future = None;
    }
}

struct Inside(Option<u32>);

impl Inside {
    fn of(program: Option<u32>) -> Self {
        Self(RUNNING.replace(program))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

pub(crate) fn is_ours(pid: Pid) -> bool {
    pid.as_raw_nonzero().get() >= FIRST_PID
}

/// Starts a command: how long it runs, how it ends and whether it heeds SIGTERM is left to chance.
pub(crate) fn start(
    command: &CommandSpec,
    bonds: Option<Bonds>,
) -> Option<(ProcessGroup, ProcessEnd)> {
    let machine = machine()?;
    let job = command.env.iter().find(|(name, _)| name == JOB);
    let job = job.and_then(|(_, value)| value.as_ref()?.to_str())?;
    let (pid, end_of_it) = machine.start_command(job, bonds);
    let group = ProcessGroup::led_by(Pid::from_raw(pid)?)?;
    Some((group, ProcessEnd::Simulated(end_of_it)))
}

fn end(process: &SimulatedProcess, how: Ended) {
    process.end.send_if_modified(|end| {
        let is_alive = end.is_none();
        end.get_or_insert(how);
        is_alive
    });
}

/// Whether the machine has this process; it then gets the signal, unless its sender is dead.
pub(crate) fn signal(leader: Pid, signal: Signal) -> bool {
    if !is_ours(leader) {
        return false;
    }
    let Some(machine) = machine() else {
        return true;
    };
    let is_sent = RUNNING
        .get()
        .is_none_or(|program| machine.standing(program) != Standing::Dead);
    let processes = machine.processes.lock();
    if let Some(process) = processes.get(&leader.as_raw_nonzero().get())
        && is_sent
        && (signal == Signal::KILL || signal == Signal::TERM && !process.is_stubborn)
    {
        end(process, Ended::Signal(signal.as_raw()));
    }
    true
}

pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    let machine = machine()?;
    let processes = machine.processes.lock();
    let number = pid.as_raw_nonzero().get();
    let process = processes.get(&number)?;
    Some(Stat {
        state: if process.is_alive() { 'S' } else { 'Z' },
        parent: None,
        group: Some(pid),
        threads: 1,
        started: u64::try_from(number).unwrap_or_default(),
    })
}

/// Ends what an earlier conductor of this machine left of a job.
pub(crate) async fn end_left_over(job: u32) {
    let Some(machine) = machine() else { return };
    let is_left = |process: &SimulatedProcess| {
        process.is_alive() && process.label.is_some_and(|label| label.job() == job)
    };
    let is_any = machine.processes.lock().values().any(is_left);
    if is_any {
        // It is asked first, and given time.
        time::sleep(Duration::from_millis(500)).await;
        let processes = machine.processes.lock();
        for process in processes.values().filter(|it| is_left(it)) {
            end(process, Ended::Signal(Signal::KILL.as_raw()));
        }
    }
}

/// The conductor's end of the pipe to its guard.
#[derive(Debug)]
pub(crate) struct Mailbox {
    lines: UnboundedSender<String>,
    guard: AbortHandle,
}

impl Mailbox {
    pub(crate) fn write(&self, lines: &str) -> io::Result<()> {
        let sent = self.lines.send(lines.to_owned());
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    pub(crate) fn is_read(&self) -> bool {
        !self.lines.is_closed()
    }

    pub(crate) fn kill(&self) {
        self.guard.abort();
    }
}

/// A guard is a program of its own: it survives its conductor.
pub(crate) fn start_guard<F>(
    guard: impl FnOnce(UnboundedReceiver<String>) -> F,
) -> Option<(End, Mailbox)>
where
    F: Future<Output = ()> + Send + 'static,
{
    let machine = machine()?;
    let (lines, received) = unbounded_channel();
    let (sender, end) = watch::channel(None);
    let conductor = RUNNING.get();
    let guarding = part_of(conductor.map(guard_of), guard(received));
    let guard = tokio::spawn(async move {
        // However it ends, the conductor learns of it.
        let _end = EndOnDrop(sender);
        guarding.await;
    });
    let guard = guard.abort_handle();
    if let Some(conductor) = conductor {
        machine.guards.lock().insert(conductor, guard.clone());
    }
    Some((end, Mailbox { lines, guard }))
}

pub(crate) fn guard_of(conductor: u32) -> u32 {
    conductor | 1 << 31
}

struct EndOnDrop(watch::Sender<Option<Ended>>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0
            .send_replace(Some(Ended::Signal(Signal::KILL.as_raw())));
    }
}
