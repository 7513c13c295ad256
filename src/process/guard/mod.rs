//! The guard: a helper process that ends commands when their lease expires or their conductor dies.
//!
//! This is the conductor's side. [`helper`] is the guard process, [`schedule`] its schedule and [`mod@line`] the protocol.
//! [`strays`] finds processes outside their command's group. [`leftover`] cleans up after both died.

mod helper;
mod leftover;
mod line;
mod schedule;
mod strays;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    ffi::{CStr, OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    io::Errno,
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
    process::Pid,
};
use tokio::{
    sync::Notify,
    time::{self, Instant},
};

#[cfg(test)]
pub(crate) use self::strays::Orphan;
pub(crate) use self::{
    helper::main,
    leftover::{BEFORE_FIRST, LeftOver},
    line::GuardedCommand,
};
use self::{line::GuardLine, strays::Adopted};
#[cfg(test)]
use super::simulation;
use super::{
    group::{ProcessEnd, ProcessGroup},
    label::Label,
    lease_times::Deadlines,
    own_pid,
};

pub(crate) const WORD: &str = "__guard";

/// The guard's process name differs from the conductor's, so that `killall jobboard` spares it.
pub(crate) const NAME: &CStr = c"claim-guard";

/// The variable that names the conductor to its commands.
pub(crate) const CONDUCTOR: &str = "JOBBOARD_CONDUCTOR";

/// Room for some thousand unread commands.
const PIPE_SIZE: usize = 1 << 18;

/// How long a guard may take to make room in its pipe. A stopped guard never does, and must not block this process.
const ROOM_TIMEOUT: Duration = Duration::from_millis(200);

/// How long a command without a conductor may take to exit after a request.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Whether the conductor adopts the orphans of its commands and has no other children.
    pub(crate) adopts: bool,
}

impl Launch {
    /// Uses this very program, even if its file was replaced since.
    pub(crate) fn this_program() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            args: vec![WORD.into()],
            adopts: true,
        }
    }
}

/// If it is dropped while it watches commands, the guard kills them.
#[derive(Debug)]
pub(crate) struct Guard {
    launch: Launch,
    mark: String,
    adopted: Option<Adopted>,
    state: Mutex<GuardState>,
    /// Notified when the first command starts.
    watch_added: Notify,
}

#[derive(Debug)]
struct GuardState {
    watched: BTreeMap<ProcessGroup, GuardedCommand>,
    starting: Option<GuardedCommand>,
    /// `None` while no guard can be started.
    helper: Option<Helper>,
    is_missing: bool,
    held: String,
    reaped: Instant,
}

#[derive(Debug)]
struct Helper {
    end: ProcessEnd,
    body: HelperBody,
}

#[derive(Debug)]
enum HelperBody {
    Process {
        child: Child,
        line: File,
    },
    #[cfg(test)]
    Simulated(simulation::Mailbox),
}

impl GuardState {
    fn hold(&mut self, line: &GuardLine) {
        self.held += &line.text();
    }
}

impl Guard {
    /// `mark` must be a single line that no other conductor uses; commands inherit it as
    /// [`MARK`](super::label::MARK).
    pub(crate) fn start(launch: Launch, mark: &str) -> io::Result<Self> {
        let adopted = launch.adopts.then(Adopted::begin).transpose()?;
        let guard = Self {
            launch,
            mark: mark.to_owned(),
            adopted,
            state: Mutex::new(GuardState {
                watched: BTreeMap::new(),
                starting: None,
                helper: None,
                is_missing: false,
                held: String::new(),
                reaped: Instant::now(),
            }),
            watch_added: Notify::new(),
        };
        guard.replace(&mut guard.state.lock())?;
        Ok(guard)
    }

    pub(crate) fn label(&self, uuid: &str) -> Label {
        Label::new(&self.mark, uuid)
    }

    /// If this process stops before it announces the group, the guard finds the command by its label.
    pub(crate) fn expect(&self, command: GuardedCommand) -> io::Result<()> {
        let mut state = self.state.lock();
        state.starting = Some(command);
        self.send(&mut state, &GuardLine::Start(command))
    }

    pub(crate) fn not_started(&self) {
        let mut state = self.state.lock();
        if state.starting.take().is_some() {
            // As in `forget`.
            let _ = self.send(&mut state, &GuardLine::NotStarted);
        }
    }

    /// Registers a group: the guard ends it and its descendants at these limits, or when this process dies.
    ///
    /// Fails if the guard is dead and cannot be replaced. A later [`Guard::check`] repairs that.
    pub(crate) fn watch(&self, group: ProcessGroup, command: GuardedCommand) -> io::Result<()> {
        let mut state = self.state.lock();
        state.watched.insert(group, command);
        state.starting = None;
        self.watch_added.notify_one();
        self.send(&mut state, &GuardLine::Watch(group, command))
    }

    pub(crate) fn extend(&self, group: ProcessGroup, deadlines: Deadlines) -> io::Result<()> {
        let mut state = self.state.lock();
        let command = match state.watched.get_mut(&group) {
            Some(known) => {
                known.deadlines = deadlines;
                *known
            }
            None => return Ok(()),
        };
        self.send(&mut state, &GuardLine::Watch(group, command))
    }

    /// The guard reads this with the next line. Until then it may signal the group, but no later group of that
    /// number.
    pub(crate) fn forget(&self, group: ProcessGroup) {
        let mut state = self.state.lock();
        if state.watched.remove(&group).is_some() {
            state.hold(&GuardLine::Forget(group));
        }
    }

    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        if !state.held.is_empty() {
            // A guard that neither answers nor can be replaced is dead and harmless.
            let _ = self.pass_on(&mut state);
        }
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.helper.as_mut().is_some_and(Helper::is_alive) {
            return Ok(());
        }
        self.replace(&mut state)
    }

    /// Replaces the guard whenever it dies, while this is polled. Reports a failed start once.
    pub(crate) async fn keep_alive(&self, report: impl Fn(io::Error)) -> Infallible {
        loop {
            let end = self
                .state
                .lock()
                .helper
                .as_ref()
                .map(|helper| helper.end.clone());
            if let Some(end) = end {
                tokio::select! {
                    biased;
                    () = end.wait() => {}
                    never = self.reap() => match never {},
                }
            }
            let checked = self.check();
            let was_missing =
                std::mem::replace(&mut self.state.lock().is_missing, checked.is_err());
            if let Err(error) = checked {
                if !was_missing {
                    report(error);
                }
                time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    fn send(&self, state: &mut GuardState, line: &GuardLine) -> io::Result<()> {
        state.hold(line);
        self.pass_on(state)
    }

    fn pass_on(&self, state: &mut GuardState) -> io::Result<()> {
        let GuardState { helper, held, .. } = state;
        match helper.as_mut().map(|helper| helper.write(held)) {
            Some(Ok(())) => {
                held.clear();
                Ok(())
            }
            _ => self.replace(state),
        }
    }

    fn replace(&self, state: &mut GuardState) -> io::Result<()> {
        if let Some(dead) = state.helper.take() {
            dead.kill();
        }
        // The new guard never knew them.
        state.held.clear();
        let mark = [GuardLine::Mark {
            mark: self.mark.clone(),
            conductor: (self.adopted.as_ref()).map(|_| own_pid().as_raw_nonzero().get()),
        }];
        let watched = state.watched.iter();
        let watched = watched.map(|(&group, &command)| GuardLine::Watch(group, command));
        let starting = state.starting.map(GuardLine::Start);
        let lines: Vec<_> = mark.into_iter().chain(watched).chain(starting).collect();
        let conductor = Label::new(&self.mark, "").conductor();
        state.helper = Some(Helper::start(&self.launch, conductor, &lines)?);
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.watched.is_empty()
            && let Some(helper) = &mut state.helper
        {
            // If the guard misses this line, it searches for commands for two seconds and finds none.
            let _ = helper.write(&GuardLine::Bye.text());
        }
    }
}

/// Writes to a pipe for at most this long while it is full, and returns how many bytes it took.
fn write_some(mut pipe: &File, bytes: &[u8], patience: Duration) -> io::Result<usize> {
    let end = std::time::Instant::now() + patience;
    let mut written = 0;
    while written < bytes.len() {
        match pipe.write(&bytes[written..]) {
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = end.saturating_duration_since(std::time::Instant::now());
                let left = Timespec::try_from(left).map_err(io::Error::other)?;
                match poll(&mut [PollFd::new(&pipe, PollFlags::OUT)], Some(&left)) {
                    Ok(0) => break,
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

impl Helper {
    /// Writes the first lines before the guard starts, so that it knows its commands even if this process dies.
    fn start(launch: &Launch, conductor: u32, lines: &[GuardLine]) -> io::Result<Self> {
        #[cfg(test)]
        if let Some((end, mailbox)) =
            simulation::start_guard(conductor, helper::simulation::simulate)
        {
            let text: String = lines.iter().map(GuardLine::text).collect();
            mailbox.write(&text)?;
            return Ok(Self {
                end: ProcessEnd::Simulated(end),
                body: HelperBody::Simulated(mailbox),
            });
        }
        let (input, line) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&line, OFlags::NONBLOCK)?;
        // Without more room, use the default size.
        let _ = fcntl_setpipe_size(&line, PIPE_SIZE);
        let line = File::from(line);
        let text: String = lines.iter().map(GuardLine::text).collect();
        let written = write_some(&line, text.as_bytes(), Duration::ZERO)?;
        let child = Command::new(&launch.program)
            .arg0(OsStr::from_bytes(NAME.to_bytes()))
            .args(&launch.args)
            // Lets other processes see which conductor's commands are guarded.
            .arg(format!("{conductor:x}"))
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let rest = &text.as_bytes()[written..];
        let has_all = write_some(&line, rest, ROOM_TIMEOUT).is_ok_and(|it| it == rest.len());
        let helper = Self {
            end: ProcessEnd::of(Pid::from_child(&child))?,
            body: HelperBody::Process { child, line },
        };
        match has_all {
            true => Ok(helper),
            false => {
                helper.kill();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    fn pid(&self) -> Option<Pid> {
        match &self.body {
            HelperBody::Process { child, .. } => Some(Pid::from_child(child)),
            #[cfg(test)]
            HelperBody::Simulated(_) => None,
        }
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.body {
            HelperBody::Process { line, .. } => {
                match write_some(line, lines.as_bytes(), ROOM_TIMEOUT)? {
                    written if written == lines.len() => Ok(()),
                    _ => Err(io::ErrorKind::TimedOut.into()),
                }
            }
            #[cfg(test)]
            HelperBody::Simulated(mailbox) => mailbox.write(lines),
        }
    }

    fn is_alive(&mut self) -> bool {
        match &mut self.body {
            HelperBody::Process { child, .. } => matches!(child.try_wait(), Ok(None)),
            #[cfg(test)]
            HelperBody::Simulated(mailbox) => mailbox.is_read(),
        }
    }

    fn kill(mut self) {
        // Before the pipe closes: its end makes a living guard kill all commands that it knows.
        match &mut self.body {
            HelperBody::Process { child, .. } => _ = child.kill().and_then(|()| child.wait()),
            #[cfg(test)]
            HelperBody::Simulated(mailbox) => mailbox.kill(),
        }
    }
}
