//! A command in its own process group: it is awaited, and ended as a whole.

use std::{fmt, future, io, time::Duration};

#[cfg(test)]
use super::simulation;
use super::{
    clock::{self, Boottime},
    command::{CommandSpec, NotRun},
    group::{ProcessEnd, ProcessGroup},
    guard::Guard,
    spawn::{ChildLifetime, Pipes, Spawner},
};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, waitid};
use tokio::time;

/// How long a command may take to exit after a request, while the process that started it is alive.
pub(crate) const EXIT_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Exit(i32),
    Signal(i32),
}

impl CommandEnd {
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    fn from_status(status: &WaitIdStatus) -> Option<Self> {
        let exit = status.exit_status().map(Self::Exit);
        exit.or_else(|| status.terminating_signal().map(Self::Signal))
    }
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Until the command is reaped its pid cannot be reused, so signals reach only its group. Dropping it kills the
/// group.
#[derive(Debug)]
pub(crate) struct Process {
    group: ProcessGroup,
    /// Our ends of the pipes for its output and errors, until taken.
    pipes: Pipes,
    end: ProcessEnd,
    is_reaped: bool,
}

impl Process {
    pub(crate) fn start(command: &CommandSpec) -> Result<Self, NotRun> {
        let spawner = Spawner::ours().map_err(|source| NotRun::Failed {
            program: command.program.clone(),
            source,
        })?;
        Self::start_with(&spawner, command, None)
    }

    pub(crate) fn start_with(
        spawner: &Spawner,
        command: &CommandSpec,
        lifetime: Option<ChildLifetime>,
    ) -> Result<Self, NotRun> {
        #[cfg(test)]
        if let Some((group, end)) = simulation::start(command, lifetime) {
            return Ok(Self::of(group, end, Pipes::default()));
        }
        let (leader, pipes) = spawner.start(command, lifetime)?;
        match Self::watched(leader) {
            Ok((group, end)) => Ok(Self::of(group, end, pipes)),
            Err(source) => {
                // A new process leads its group alone, or takes its own children down with it.
                let ended = kill_process(leader, Signal::KILL);
                let _ = ended.and_then(|()| waitid(WaitId::Pid(leader), WaitIdOptions::EXITED));
                let program = command.program.clone();
                Err(NotRun::Failed { program, source })
            }
        }
    }

    fn of(group: ProcessGroup, end: ProcessEnd, pipes: Pipes) -> Self {
        Self {
            group,
            pipes,
            end,
            is_reaped: false,
        }
    }

    fn watched(leader: Pid) -> io::Result<(ProcessGroup, ProcessEnd)> {
        let group = ProcessGroup::led_by(leader).ok_or(io::ErrorKind::InvalidInput)?;
        Ok((group, ProcessEnd::of(leader)?))
    }

    /// The group id stays reserved until `clear_away`.
    pub(crate) fn group(&self) -> ProcessGroup {
        self.group
    }

    pub(crate) fn take_pipes(&mut self) -> Pipes {
        std::mem::take(&mut self.pipes)
    }

    pub(crate) async fn ended(&self) -> io::Result<CommandEnd> {
        self.end.wait().await;
        #[cfg(test)]
        if let ProcessEnd::Simulated(end) = &self.end {
            return end.borrow().ok_or(io::ErrorKind::NotFound.into());
        }
        loop {
            let status = self.look(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
            if let Some(ended) = status.as_ref().and_then(CommandEnd::from_status) {
                return Ok(ended);
            }
            // A tracer holds the command: its parent is notified after the tracer.
            time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the signal that has stopped the leader since the last call.
    pub(crate) fn stopped(&self) -> Option<Signal> {
        let status = self.look(WaitIdOptions::STOPPED).ok().flatten()?;
        Signal::from_named_raw(status.stopping_signal()?)
    }

    fn look(&self, what: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
        let leader = WaitId::Pid(self.group.leader());
        Ok(waitid(leader, what | WaitIdOptions::NOHANG)?)
    }

    /// Asks the whole group and its known descendants to exit, and kills them at the given time.
    ///
    /// Returns how the leader ended. Its descendants may survive until `clear_away`.
    pub(crate) async fn stop(
        &self,
        kill_at: Boottime,
        guard: Option<&Guard>,
    ) -> io::Result<CommandEnd> {
        self.group.terminate();
        let others = async {
            if let Some(guard) = guard {
                guard.terminate_strays(self.group).await;
            }
            future::pending().await
        };
        tokio::select! {
            biased;
            ended = self.ended() => return ended,
            () = clock::sleep_until(kill_at) => self.group.signal(Signal::KILL),
            () = others => {}
        }
        if let Some(guard) = guard {
            guard.kill_strays(self.group).await;
        }
        self.ended().await
    }

    /// Kills the descendants of an ended command, and only then releases its pid.
    pub(crate) async fn clear_away(mut self, guard: &Guard) {
        self.group.signal(Signal::KILL);
        // Its leader has ended, except after an earlier error.
        let _ = self.ended().await;
        guard.clear_away(self.group).await;
        guard.forget(self.group);
        self.reap();
    }

    fn reap(&mut self) {
        #[cfg(test)]
        if let ProcessEnd::Simulated(end) = &self.end {
            self.is_reaped = end.borrow().is_some();
            return simulation::reap(self.group.leader());
        }
        // An ended or killed process can be reaped now, unless the kernel holds it; then we do not wait for it.
        self.is_reaped = matches!(self.look(WaitIdOptions::EXITED), Ok(Some(_)));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.group.signal(Signal::KILL);
            self.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs};

    use super::*;
    use crate::process::command::{Input, OutputTarget};

    fn shell(script: &str) -> CommandSpec {
        let argv = ["sh", "-c", script].map(OsString::from);
        CommandSpec::here(&argv, Some("/usr/bin:/bin".as_ref())).unwrap()
    }

    fn start(script: &str) -> Process {
        Process::start(&shell(script)).unwrap()
    }

    #[tokio::test]
    async fn exit_of_a_command_is_reported() {
        let process = start("exit 3");
        assert_eq!(process.ended().await.unwrap(), CommandEnd::Exit(3));
        assert_eq!(process.ended().await.unwrap(), CommandEnd::Exit(3));
        let process = start("kill -9 $$");
        assert_eq!(process.ended().await.unwrap().code(), 137);
    }

    #[tokio::test]
    async fn command_gets_its_input_variables_and_directory() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = shell("cat > seen; echo \"$GIVEN:${HOME-none}\" >> seen");
        command.cwd = Some(directory.path().to_owned());
        command.input = Input::Text(b"line\n".to_vec());
        command.set("GIVEN", "here");
        command.unset("HOME");
        let process = Process::start(&command).unwrap();
        assert_eq!(process.ended().await.unwrap(), CommandEnd::Exit(0));
        let seen = fs::read_to_string(directory.path().join("seen")).unwrap();
        assert_eq!(seen, "line\nhere:none\n");
    }

    #[tokio::test]
    async fn command_has_default_signal_handling() {
        // This process ignores SIGPIPE.
        let mut command = shell("kill -PIPE $$; exit 3");
        for directory in [None, Some("/".into())] {
            command.cwd = directory;
            let process = Process::start(&command).unwrap();
            let broken_pipe = CommandEnd::Signal(Signal::PIPE.as_raw());
            assert_eq!(process.ended().await.unwrap(), broken_pipe);
        }
    }

    #[tokio::test]
    async fn command_may_have_no_input_and_no_output() {
        let mut command = shell("read line || echo $? && exit 6");
        command.input = Input::Nothing;
        command.output = OutputTarget::Discard;
        let process = Process::start(&command).unwrap();
        assert_eq!(process.ended().await.unwrap(), CommandEnd::Exit(6));
    }

    #[tokio::test]
    async fn start_failures_are_classified() {
        let run = |name: &str| {
            let argv = [OsString::from(name)];
            CommandSpec::here(&argv, None).and_then(|it| Process::start(&it))
        };
        assert!(matches!(run("/no/such"), Err(NotRun::NotFound { .. })));
        assert!(matches!(run("/etc"), Err(NotRun::NotExecutable { .. })));
        assert!(matches!(
            run("/etc/passwd"),
            Err(NotRun::NotExecutable { .. })
        ));
    }

    #[tokio::test]
    async fn stop_terminates_then_kills() {
        let directory = tempfile::tempdir().unwrap();
        let ready = directory.path().join("ready");
        let polite = start("exec sleep 60");
        let until = Boottime::now() + Duration::from_secs(60);
        assert_eq!(
            polite.stop(until, None).await.unwrap(),
            CommandEnd::Signal(15)
        );

        let script = format!(
            "trap '' TERM; touch {}; sleep 60; sleep 60",
            ready.display()
        );
        let stubborn = start(&script);
        while !ready.exists() {
            time::sleep(Duration::from_millis(5)).await;
        }
        let until = Boottime::now() + Duration::from_millis(50);
        assert_eq!(
            stubborn.stop(until, None).await.unwrap(),
            CommandEnd::Signal(9)
        );
    }

    #[tokio::test]
    async fn end_of_a_command_does_not_wait_for_its_pipes() {
        let process = start("sleep 60 & exit 4");
        let ended = time::timeout(Duration::from_secs(10), process.ended());
        assert_eq!(ended.await.unwrap().unwrap(), CommandEnd::Exit(4));
    }

    #[tokio::test]
    async fn stop_signal_is_reported_once() {
        let process = start("kill -STOP $$; exit 5");
        let stopped = async {
            loop {
                match process.stopped() {
                    Some(signal) => return signal,
                    None => time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let signal = time::timeout(Duration::from_secs(10), stopped)
            .await
            .unwrap();
        assert_eq!(signal, Signal::STOP);
        assert_eq!(process.stopped(), None);
        process.group().signal(Signal::CONT);
        assert_eq!(process.ended().await.unwrap(), CommandEnd::Exit(5));
    }

    #[tokio::test]
    async fn drop_kills_the_group() {
        let process = start("exec sleep 60");
        let leader = process.group().leader();
        let end = ProcessEnd::of(leader).unwrap();
        drop(process);
        end.wait().await;
    }
}
