//! The guard: a helper process that ends commands whose lease ran out or whose conductor died.
//!
//! Here is the conductor's side of it; what leaves the group of its command is in [`strays`] and
//! [`adopted`]. The helper itself is in [`helper`], what it does to a command and when in [`course`],
//! and how they speak in [`mod@line`]. What both have left when they died is for [`leftover`].

mod adopted;
mod course;
mod helper;
mod leftover;
mod line;
mod strays;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    convert::Infallible,
    ffi::{CStr, OsStr, OsString},
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    fs::{OFlags, fcntl_setfl},
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
    process::{Pid, PidfdFlags, getpid, pidfd_open},
};
use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use self::{adopted::Adopted, line::Line};
pub(crate) use self::{
    helper::main,
    leftover::{BEFORE_FIRST, LeftOver},
    line::{Limits, Ward},
};
use super::{group::Group, label::Label};
use crate::ready::Ready;

pub(crate) const WORD: &str = "__guard";

/// The name by which a guard is listed: whoever ends all of a name does not end it as well.
pub(crate) const NAME: &CStr = c"claim-guard";

/// The variable that tells a command who performs it.
pub(crate) const CONDUCTOR: &str = "JOBBOARD_CONDUCTOR";

/// Room for what a guard has yet to read: some thousand commands.
const PIPE_SIZE: usize = 1 << 18;

#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Whether its conductor is to have all orphans of its commands, and has no other children.
    pub(crate) adopts: bool,
}

impl Launch {
    /// This very program, even if its file was replaced meanwhile.
    pub(crate) fn this_program() -> Self {
        Self {
            program: "/proc/self/exe".into(),
            args: vec![WORD.into()],
            adopts: true,
        }
    }
}

/// Dropped while commands are watched it leaves them to the guard, which kills them.
#[derive(Debug)]
pub(crate) struct Guard {
    launch: Launch,
    mark: String,
    adopted: Option<Adopted>,
    state: Mutex<State>,
    /// Told when there is a command after there was none.
    stirred: Notify,
}

#[derive(Debug)]
struct State {
    watched: HashMap<Group, Ward>,
    starting: Option<Ward>,
    /// `None` while one cannot be started.
    helper: Option<Helper>,
    /// Whether it was told that one cannot be started.
    is_missing: bool,
    /// What the guard is still to be told, and need not hear at once.
    held: String,
    /// When the remains of orphans were taken away last.
    reaped: Instant,
}

#[derive(Debug)]
struct Helper {
    child: Child,
    line: File,
    end: Arc<Ready>,
}

impl State {
    fn hold(&mut self, line: &Line) {
        // Writing to memory does not fail.
        let _ = write!(self.held, "{line}");
    }
}

impl Guard {
    /// `mark` must be a single line that no other conductor uses; commands have it as
    /// [`MARK`](super::label::MARK).
    pub(crate) fn start(launch: Launch, mark: &str) -> io::Result<Self> {
        let adopted = launch.adopts.then(Adopted::from_now_on).transpose()?;
        let guard = Self {
            launch,
            mark: mark.to_owned(),
            adopted,
            state: Mutex::new(State {
                watched: HashMap::new(),
                starting: None,
                helper: None,
                is_missing: false,
                held: String::new(),
                reaped: Instant::now(),
            }),
            stirred: Notify::new(),
        };
        guard.replace(&mut guard.state.lock())?;
        Ok(guard)
    }

    pub(crate) fn label(&self, uuid: &str) -> Label {
        Label::new(&self.mark, uuid)
    }

    /// Should we be stopped before we can announce its group, the guard knows the command by its label.
    pub(crate) fn expect(&self, ward: Ward) -> io::Result<()> {
        let mut state = self.state.lock();
        state.starting = Some(ward);
        self.send(&mut state, &Line::Start(ward))
    }

    pub(crate) fn not_started(&self) {
        let mut state = self.state.lock();
        if state.starting.take().is_some() {
            // As for a group that is forgotten.
            let _ = self.send(&mut state, &Line::NotStarted);
        }
    }

    /// Has a group ended at these moments, or when we die, with all that came of it.
    ///
    /// Fails if the guard is dead and another one cannot be started; a later [`Guard::check`]
    /// makes good for it.
    pub(crate) fn watch(&self, group: Group, ward: Ward) -> io::Result<()> {
        let mut state = self.state.lock();
        state.watched.insert(group, ward);
        state.starting = None;
        self.stirred.notify_one();
        self.send(&mut state, &Line::Watch { group, ward })
    }

    /// Changes the moments at which a group is ended; does nothing for one that is not watched.
    pub(crate) fn extend(&self, group: Group, limits: Limits) -> io::Result<()> {
        let mut state = self.state.lock();
        let ward = match state.watched.get_mut(&group) {
            Some(known) => {
                known.limits = limits;
                *known
            }
            None => return Ok(()),
        };
        self.send(&mut state, &Line::Watch { group, ward })
    }

    /// The guard learns it with the next line. Until then it may signal the group, but nobody else that has
    /// its number by then.
    pub(crate) fn forget(&self, group: Group) {
        let mut state = self.state.lock();
        if state.watched.remove(&group).is_some() {
            state.hold(&Line::Forget(group));
        }
    }

    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        if !state.held.is_empty() {
            // One that cannot be told and not be replaced either is dead: it does no harm.
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

    /// Replaces the guard whenever it dies, as long as this is polled; tells once why it cannot.
    pub(crate) async fn tend(&self, tell: impl Fn(io::Error)) -> Infallible {
        loop {
            let end = self
                .state
                .lock()
                .helper
                .as_ref()
                .map(|helper| helper.end.clone());
            if let Some(end) = end {
                tokio::select! {
                    () = end.wait() => {}
                    never = self.reap() => match never {},
                }
            }
            let checked = self.check();
            let was_missing =
                std::mem::replace(&mut self.state.lock().is_missing, checked.is_err());
            if let Err(error) = checked {
                if !was_missing {
                    tell(error);
                }
                time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    fn send(&self, state: &mut State, line: &Line) -> io::Result<()> {
        state.hold(line);
        self.pass_on(state)
    }

    fn pass_on(&self, state: &mut State) -> io::Result<()> {
        let State { helper, held, .. } = state;
        match helper.as_mut().map(|helper| helper.write(held)) {
            Some(Ok(())) => {
                held.clear();
                Ok(())
            }
            _ => self.replace(state),
        }
    }

    /// Starts another guard and tells it all that the one before it knew.
    fn replace(&self, state: &mut State) -> io::Result<()> {
        if let Some(dead) = state.helper.take() {
            dead.kill();
        }
        // The next one never knew of them.
        state.held.clear();
        let mark = [Line::Mark {
            mark: self.mark.clone(),
            conductor: self.adopted.as_ref().map(|_| getpid()),
        }];
        let watched = state.watched.iter();
        let watched = watched.map(|(&group, &ward)| Line::Watch { group, ward });
        let starting = state.starting.map(Line::Start);
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
            // Should it not hear this, it looks for commands for two seconds and finds none.
            let _ = helper.write(&Line::Bye.to_string());
        }
    }
}

impl Helper {
    /// The first lines are written before the guard starts, so that it knows its commands whenever we die.
    fn start(launch: &Launch, conductor: u32, lines: &[Line]) -> io::Result<Self> {
        let (input, line) = pipe_with(PipeFlags::CLOEXEC)?;
        // A guard that was stopped must not stop us; one that does not listen counts as dead.
        fcntl_setfl(&line, OFlags::NONBLOCK)?;
        // What cannot have more room makes do with what it has.
        let _ = fcntl_setpipe_size(&line, PIPE_SIZE);
        let mut line = File::from(line);
        for known in lines {
            line.write_all(known.to_string().as_bytes())?;
        }
        let child = Command::new(&launch.program)
            .arg0(OsStr::from_bytes(NAME.to_bytes()))
            .args(&launch.args)
            // By which others can see that somebody watches over its commands.
            .arg(format!("{conductor:x}"))
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let end = Ready::new(pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?)?;
        Ok(Self {
            end: Arc::new(end),
            child,
            line,
        })
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        self.line.write_all(lines.as_bytes())
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn kill(mut self) {
        // Before the pipe is closed, at whose end one that still lives would kill all it knows.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
