//! The guard process: it reads its standard input and waits.
//!
//! It is synchronous and needs only its input, `/proc` and a clock.

#[cfg(test)]
pub(super) mod simulation;

use std::{
    collections::{BTreeMap, HashSet},
    io, thread,
    time::Duration,
};

use nix::sys::{prctl::set_name, signal::SigSet};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_setfl},
    io::{Errno, read},
    process::{Pid, Signal, getpid},
    stdio::stdin,
};

use super::{
    NAME, ORPHAN_GRACE,
    line::GuardLine,
    schedule::{CHECK_PAUSE, KILL_TIMEOUT, KillSchedule, KillStep},
};
use crate::process::{
    clock::{Boottime, Timer},
    group::{ProcessGroup, Stat, group_of},
    label::Label,
    lineage::{CommandOrigin, ConductorChildren, PinnedProcess, Processes},
};

/// How long a guard searches for commands after its conductor died.
const SWEEP: Duration = Duration::from_secs(2);

/// How long new lines wait after the guard has read.
///
/// A conductor with short jobs writes thousands of lines per second, and waking its guard for each would be
/// expensive. The delay is shorter than the gap between the two limits of the shortest lease: the guard still kills
/// before the deadline.
const READ_DELAY: Duration = Duration::from_millis(20);

/// Call this first, in a separate process.
pub(crate) fn main() -> io::Result<()> {
    // Stopping a whole service signals the guard as well, while its conductor still needs it.
    SigSet::all().thread_block()?;
    // A process started from `/proc/self/exe` would be listed as "exe".
    let _ = set_name(NAME);
    fcntl_setfl(stdin(), OFlags::NONBLOCK)?;
    let timer = Timer::new()?;
    let mut watch = WatchedCommands::default();
    let mut next_read = None;
    loop {
        let due = watch.next_due();
        timer.set(due.into_iter().chain(next_read).min())?;
        wait(&timer, next_read)?;
        // Read first: a command may have ended or got more time.
        let mut input = watch.listen()?;
        if matches!(input, GuardInput::Nothing | GuardInput::Lines) {
            let due = watch.enforce(Boottime::now());
            if !due.is_empty() {
                let processes = watch.list_processes();
                // Commands that started before the scan are announced by now.
                input = watch.listen()?;
                watch.end_strays(&due, &processes);
            }
        }
        match input {
            GuardInput::Nothing => next_read = None,
            GuardInput::Lines => next_read = Some(Boottime::now() + READ_DELAY),
            GuardInput::Bye => return Ok(()),
            GuardInput::End => break,
        }
    }
    let mut sweep = Sweep::begin();
    while !watch.end_all(&mut sweep, Processes::now) {
        thread::sleep(CHECK_PAUSE);
    }
    Ok(())
}

/// The end of all commands after their conductor died.
struct Sweep {
    died: Boottime,
    terminated: HashSet<Pid>,
    killed: Option<Boottime>,
}

impl Sweep {
    fn begin() -> Self {
        Self {
            died: Boottime::now(),
            terminated: HashSet::new(),
            killed: None,
        }
    }
}

/// Waits for the timer, the conductor's end or, after the delay, new lines.
fn wait(timer: &Timer, next_read: Option<Boottime>) -> io::Result<()> {
    let input = stdin();
    // The end of the input is reported in any case.
    let awaited = match next_read {
        None => PollFlags::IN,
        Some(_) => PollFlags::empty(),
    };
    let mut fds = [
        PollFd::new(&input, awaited),
        PollFd::new(&timer.0, PollFlags::IN),
    ];
    match poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

enum GuardInput {
    Nothing,
    Lines,
    Bye,
    End,
}

#[derive(Default)]
struct WatchedCommands {
    mark: String,
    /// The conductor, if it adopts orphans.
    conductor: Option<Pid>,
    groups: BTreeMap<ProcessGroup, WatchedGroup>,
    /// A command in a group that is not announced yet.
    starting: Option<KillSchedule>,
    /// New groups, before the start times of their leaders are known.
    unidentified: Vec<ProcessGroup>,
    partial: Vec<u8>,
}

struct WatchedGroup {
    schedule: KillSchedule,
    /// When the leader started: tells it from a later process with the same pid.
    started: Option<u64>,
}

impl WatchedCommands {
    fn listen(&mut self) -> io::Result<GuardInput> {
        let mut input = GuardInput::Nothing;
        let mut buffer = [0; 1 << 14];
        loop {
            match read(stdin(), &mut buffer) {
                Ok(0) => input = GuardInput::End,
                Ok(count) => {
                    self.partial.extend_from_slice(&buffer[..count]);
                    if self.read_lines() {
                        return Ok(GuardInput::Bye);
                    }
                    input = GuardInput::Lines;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            self.identify();
            return Ok(input);
        }
    }

    /// Handles all complete lines, and returns whether one was the conductor's last.
    fn read_lines(&mut self) -> bool {
        let newline = self.partial.iter().rposition(|&byte| byte == b'\n');
        let rest = self.partial.split_off(newline.map_or(0, |at| at + 1));
        let lines = std::mem::replace(&mut self.partial, rest);
        for line in lines.split(|&byte| byte == b'\n') {
            match GuardLine::parse(line) {
                Some(GuardLine::Bye) => return true,
                Some(line) => self.apply_line(line),
                None => {}
            }
        }
        false
    }

    fn list_processes(&self) -> Processes {
        (self.conductor).map_or_else(Processes::now, Processes::around)
    }

    fn identify(&mut self) {
        for group in self.unidentified.drain(..) {
            if let Some(command) = self.groups.get_mut(&group) {
                command.started = Stat::of(group.leader()).map(|stat| stat.started);
            }
        }
    }

    fn apply_line(&mut self, line: GuardLine) {
        match line {
            GuardLine::Mark { mark, conductor } => {
                (self.mark, self.conductor) = (mark, conductor.and_then(Pid::from_raw));
            }
            GuardLine::Watch(..) if planted!(GuardForgets) => {}
            GuardLine::Watch(group, command) => {
                let schedule = KillSchedule::of(command);
                let watched = self.groups.entry(group).or_insert_with(|| {
                    self.unidentified.push(group);
                    WatchedGroup {
                        schedule,
                        started: None,
                    }
                });
                // A conductor that was stopped and continues may still extend a lease.
                watched.schedule = schedule;
                self.starting = None;
            }
            GuardLine::Start(command) => self.starting = Some(KillSchedule::of(command)),
            GuardLine::NotStarted => self.starting = None,
            GuardLine::Forget(group) => {
                self.groups.remove(&group);
            }
            // Handled where lines are read.
            GuardLine::Bye => {}
        }
    }

    fn schedules(&self) -> impl Iterator<Item = KillSchedule> {
        let groups = self.groups.values().map(|watched| watched.schedule);
        groups.chain(self.starting)
    }

    fn next_due(&self) -> Option<Boottime> {
        self.schedules().filter_map(KillSchedule::due).min()
    }

    /// Ends the groups of the commands that are due, and returns the other steps that are due.
    fn enforce(&mut self, now: Boottime) -> Vec<(CommandOrigin, KillStep)> {
        let mut due = Vec::new();
        for (&group, watched) in &mut self.groups {
            if let Some(step) = watched.schedule.step(now) {
                // A conductor reaps a leader only after it has asked us to forget the group.
                let is_the_same = Stat::of(group.leader()).map(|stat| stat.started);
                if is_the_same.is_some() && is_the_same == watched.started {
                    // First of all who is known: the others have to be looked for.
                    end_group(group, step == KillStep::Terminate);
                    due.push((watched.schedule.origin(Some(group)), step));
                } else {
                    watched.schedule.conclude(false, now);
                }
            }
        }
        if let Some(schedule) = &mut self.starting
            && let Some(step) = schedule.step(now)
        {
            due.push((schedule.origin(None), step));
        }
        due
    }

    fn end_strays(&mut self, due: &[(CommandOrigin, KillStep)], processes: &Processes) {
        let children = self.conductor_children();
        for &(origin @ CommandOrigin { group, label }, step) in due {
            let schedule = match group {
                Some(group) => self
                    .groups
                    .get_mut(&group)
                    .map(|watched| &mut watched.schedule),
                None => self.starting.as_mut(),
            };
            // The command may have ended and another one be starting.
            let Some(schedule) = schedule.filter(|it| it.command.label == label) else {
                continue;
            };
            let found = match self.conductor {
                Some(_) => processes.of_command(origin, &children),
                None => processes.below(pids(processes.bearers(|it| it == label))),
            };
            if step == KillStep::Kill {
                schedule.conclude(!found.is_empty(), Boottime::now());
            }
            let terminated = group
                .map(ProcessGroup::leader)
                .filter(|_| step == KillStep::Terminate);
            end_all_of(found, step == KillStep::Terminate, |it| {
                terminated.is_some() && group_of(it.pid) == terminated
            });
        }
    }

    fn conductor_children(&self) -> ConductorChildren {
        let leaders = self.groups.keys().map(|group| group.leader());
        ConductorChildren {
            own: leaders.chain([getpid()]).collect(),
            labels: self.schedules().map(|it| it.command.label).collect(),
        }
    }

    /// Takes the next step to end all commands. Returns true once none is left, or if they cannot be ended.
    fn end_all(&self, sweep: &mut Sweep, look: impl Fn() -> Processes) -> bool {
        let (died, now) = (sweep.died, Boottime::now());
        for (&group, watched) in &self.groups {
            // The command must end before another client can claim the job, even within its grace period.
            let is_grace = now < (died + ORPHAN_GRACE).min(watched.schedule.command.deadlines.kill);
            if !watched.is_replaced(group) && (!is_grace || sweep.terminated.insert(group.leader()))
            {
                end_group(group, is_grace);
            }
        }
        let conductor = Label::new(&self.mark, "").conductor();
        let processes = look();
        let bearers = processes.bearers(|label| label.conductor() == conductor);
        let is_over = bearers.is_empty() && died + SWEEP <= now;
        // Counted from the first kill: on a busy machine that may come late.
        let is_unkillable = (sweep.killed).is_some_and(|at| at + SWEEP + KILL_TIMEOUT <= now);
        if is_over || is_unkillable {
            return true;
        }
        let is_late = |label| (died + ORPHAN_GRACE).min(self.kill_at(label)) <= now;
        let (late, left): (Vec<_>, Vec<_>) =
            bearers.into_iter().partition(|&(_, label)| is_late(label));
        if !late.is_empty() {
            sweep.killed.get_or_insert(now);
        }
        end_all_of(processes.below(pids(late)), false, |_| false);
        end_all_of(processes.below(pids(left)), true, |process| {
            let is_asked =
                group_of(process.pid).is_some_and(|group| sweep.terminated.contains(&group));
            is_asked || !sweep.terminated.insert(process.pid)
        });
        false
    }

    fn kill_at(&self, label: Label) -> Boottime {
        let mut commands = self.schedules().map(|schedule| schedule.command);
        let command = commands.find(|command| command.label == label);
        command.map_or(Boottime::from_nanos(u64::MAX), |it| it.deadlines.kill)
    }
}

impl WatchedGroup {
    /// The kernel reuses a leader's pid only once its group is empty.
    fn is_replaced(&self, group: ProcessGroup) -> bool {
        Stat::of(group.leader()).is_some_and(|stat| Some(stat.started) != self.started)
    }
}

fn pids(bearers: Vec<(Pid, Label)>) -> impl Iterator<Item = Pid> {
    bearers.into_iter().map(|(pid, _)| pid)
}

fn end_group(group: ProcessGroup, is_grace: bool) {
    if is_grace {
        group.terminate();
    } else {
        group.signal(Signal::KILL);
    }
}

fn end_all_of(
    found: impl IntoIterator<Item = PinnedProcess>,
    is_grace: bool,
    mut is_spared: impl FnMut(&PinnedProcess) -> bool,
) {
    for process in found {
        match is_grace {
            _ if is_spared(&process) => {}
            true => process.terminate(),
            false => process.signal(Signal::KILL),
        }
    }
}
