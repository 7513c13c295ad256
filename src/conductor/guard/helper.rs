//! The guard process itself: it listens on its standard input, and waits.
//!
//! It is synchronous and needs nothing but its input, `/proc` and a clock.

use std::{
    collections::{HashMap, HashSet},
    fs, io, thread,
    time::Duration,
};

use nix::sys::signal::SigSet;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_setfl},
    io::{Errno, read},
    process::{Pid, Signal, getpgid, kill_process},
    stdio::stdin,
};

use super::{
    super::{
        clock::{Boottime, Timer},
        group::{Group, Stat},
    },
    line::{Limits, Line},
    sweep,
};

/// How long a guard goes on looking for commands after its conductor has died.
const SWEEP: Duration = Duration::from_secs(2);
/// How long a command then has to end by itself.
const GRACE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(25);

/// How long what is said to a guard that has just listened waits to be heard.
///
/// A conductor with short jobs speaks thousands of times a second, and each time that it woke its
/// guard would cost as much as a part of a job. It is shorter than what lies between the two moments
/// of the shortest lease, so that what is heard that late is still killed before its deadline.
const DEAF: Duration = Duration::from_millis(20);

/// Runs the guard, from the first line on its standard input until it has nothing left to do.
///
/// To be called before anything else, in a process of its own.
pub(crate) fn main() -> io::Result<()> {
    // Who stops a whole service signals us as well, while the conductor still needs us.
    SigSet::all().thread_block()?;
    // Started from `/proc/self/exe`, it would be listed as "exe".
    let _ = fs::write("/proc/self/comm", "jobboard");
    fcntl_setfl(stdin(), OFlags::NONBLOCK)?;
    let timer = Timer::new()?;
    let mut watch = Watch::default();
    let mut deaf_until = None;
    loop {
        let due = watch.next_due();
        timer.set(due.into_iter().chain(deaf_until).min())?;
        wait(&timer, deaf_until)?;
        // What was said comes first: it may be that a command has ended or may stay.
        match watch.listen()? {
            Heard::Nothing => deaf_until = None,
            Heard::Lines => deaf_until = Some(Boottime::now() + DEAF),
            Heard::Bye => return Ok(()),
            Heard::End => break,
        }
        watch.enforce(Boottime::now());
    }
    watch.end_all();
    Ok(())
}

/// Waits until it is time, or the conductor is gone, or, unless we are deaf, something is said.
fn wait(timer: &Timer, deaf_until: Option<Boottime>) -> io::Result<()> {
    let input = stdin();
    // Its end is told in any case.
    let said = match deaf_until {
        None => PollFlags::IN,
        Some(_) => PollFlags::empty(),
    };
    let mut fds = [
        PollFd::new(&input, said),
        PollFd::new(timer.fd(), PollFlags::IN),
    ];
    match poll(&mut fds, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How far the conductor has come.
enum Heard {
    Nothing,
    Lines,
    Bye,
    End,
}

/// What the guard knows.
#[derive(Default)]
struct Watch {
    mark: String,
    groups: HashMap<Group, Ward>,
    /// A command whose group is not told yet.
    starting: Option<Course>,
    /// Groups of whose leaders it is not known yet when they started.
    strangers: Vec<Group>,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

/// A command in the guard's care.
struct Ward {
    course: Course,
    /// When its leader started, to know it from a later process with the same pid.
    started: Option<u64>,
}

/// What will be done to a command, and when.
#[derive(Clone, Copy)]
struct Course {
    limits: Limits,
    next: Next,
}

/// What will be done next to a command whose lease is not prolonged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Terminate,
    Kill,
    Nothing,
}

impl Watch {
    /// Reads all that is there to read, and does what the whole lines of it say.
    fn listen(&mut self) -> io::Result<Heard> {
        let mut heard = Heard::Nothing;
        let mut buffer = [0; 1 << 14];
        loop {
            match read(stdin(), &mut buffer) {
                Ok(0) => heard = Heard::End,
                Ok(count) => {
                    self.partial.extend_from_slice(&buffer[..count]);
                    if self.heed_lines() {
                        return Ok(Heard::Bye);
                    }
                    heard = Heard::Lines;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            self.identify();
            return Ok(heard);
        }
    }

    /// Does what the lines say whose end has come; whether one of them was the last one ever.
    fn heed_lines(&mut self) -> bool {
        let newline = self.partial.iter().rposition(|&byte| byte == b'\n');
        let rest = self.partial.split_off(newline.map_or(0, |at| at + 1));
        let lines = std::mem::replace(&mut self.partial, rest);
        for line in lines.split(|&byte| byte == b'\n') {
            match str::from_utf8(line).ok().and_then(Line::parse) {
                Some(Line::Bye) => return true,
                Some(line) => self.heed(line),
                None => {}
            }
        }
        false
    }

    /// Looks up the leaders of the groups that are new, and that have not been forgotten since.
    fn identify(&mut self) {
        for group in self.strangers.drain(..) {
            if let Some(ward) = self.groups.get_mut(&group) {
                ward.started = Stat::of(group.leader()).map(|stat| stat.started);
            }
        }
    }

    fn heed(&mut self, line: Line) {
        match line {
            Line::Mark(mark) => self.mark = mark,
            Line::Watch { group, limits } => {
                let course = Course::within(limits);
                let ward = self.groups.entry(group).or_insert_with(|| {
                    self.strangers.push(group);
                    Ward {
                        course,
                        started: None,
                    }
                });
                // A conductor that was stopped and goes on may still prolong a lease.
                ward.course = course;
                self.starting = None;
            }
            Line::Start(limits) => self.starting = Some(Course::within(limits)),
            Line::NotStarted => self.starting = None,
            Line::Forget(group) => {
                self.groups.remove(&group);
            }
            Line::Bye => {}
        }
    }

    /// Returns when something is to be done unless more is said.
    fn next_due(&self) -> Option<Boottime> {
        let courses = self.groups.values().map(|ward| ward.course);
        courses.chain(self.starting).filter_map(Course::due).min()
    }

    /// Ends the commands whose time has come.
    fn enforce(&mut self, now: Boottime) {
        for (&group, ward) in &mut self.groups {
            while let Some(step) = ward.course.step(now) {
                // A conductor reaps a leader only after it has told us to forget the group.
                let is_the_same = Stat::of(group.leader()).map(|stat| stat.started);
                if is_the_same.is_some() && is_the_same == ward.started {
                    end_group(group, step == Next::Terminate);
                }
            }
        }
        while let Some(step) = self.starting.as_mut().and_then(|course| course.step(now)) {
            // Whoever has the mark and is of no group that was told is of the one that was not.
            for pid in sweep::marked(&self.mark) {
                let group = getpgid(Some(pid)).ok().and_then(Group::led_by);
                if !group.is_some_and(|group| self.groups.contains_key(&group)) {
                    end_process(pid, step == Next::Terminate);
                }
            }
        }
    }

    /// Ends all commands of a conductor that has died, also those that it could not announce.
    fn end_all(&self) {
        let died = Boottime::now();
        let mut asked = HashSet::new();
        while Boottime::now() < died + SWEEP {
            let now = Boottime::now();
            for (&group, ward) in &self.groups {
                // Whatever its grace, it must be gone before somebody else may have the job.
                let is_grace = now < (died + GRACE).min(ward.course.limits.kill);
                if !ward.is_replaced(group) && (!is_grace || asked.insert(group.leader())) {
                    end_group(group, is_grace);
                }
            }
            let kill = self.starting.map(|course| course.limits.kill);
            let is_grace = now < kill.map_or(died + GRACE, |kill| kill.min(died + GRACE));
            for pid in sweep::marked(&self.mark) {
                let is_asked = getpgid(Some(pid)).is_ok_and(|group| asked.contains(&group));
                if !is_grace || (!is_asked && asked.insert(pid)) {
                    end_process(pid, is_grace);
                }
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Course {
    fn within(limits: Limits) -> Self {
        Self {
            limits,
            next: Next::Terminate,
        }
    }

    fn due(self) -> Option<Boottime> {
        match self.next {
            Next::Terminate => Some(self.limits.terminate),
            Next::Kill => Some(self.limits.kill),
            Next::Nothing => None,
        }
    }

    /// Returns what is to be done by now, once.
    fn step(&mut self, now: Boottime) -> Option<Next> {
        let step = self.next;
        self.due().filter(|due| *due <= now)?;
        self.next = step.after();
        Some(step)
    }
}

impl Ward {
    /// Whether the pid of the leader belongs to somebody else by now.
    ///
    /// A leader that is gone leaves its pid to nobody while anyone of its group is left.
    fn is_replaced(&self, group: Group) -> bool {
        Stat::of(group.leader()).is_some_and(|stat| Some(stat.started) != self.started)
    }
}

impl Next {
    fn after(self) -> Self {
        match self {
            Self::Terminate => Self::Kill,
            Self::Kill | Self::Nothing => Self::Nothing,
        }
    }
}

fn end_group(group: Group, is_grace: bool) {
    if is_grace {
        group.terminate();
    } else {
        group.signal(Signal::KILL);
    }
}

fn end_process(pid: Pid, is_grace: bool) {
    // Of a group that somebody else leads, only this one is known to belong to the conductor.
    if getpgid(Some(pid)) == Ok(pid)
        && let Some(group) = Group::led_by(pid)
    {
        end_group(group, is_grace);
    } else if is_grace {
        let _ = kill_process(pid, Signal::TERM).and_then(|()| kill_process(pid, Signal::CONT));
    } else {
        let _ = kill_process(pid, Signal::KILL);
    }
}
