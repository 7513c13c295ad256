//! The conductors of a drill: processes of this program that the drill may kill and stop.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{self, Instant};

use crate::{backoff::Backoff, commands::selftest::Scratch, duration, suggest::Suggestion};

/// Where `sleep` may be.
const PROGRAMS: [&str; 2] = ["/bin/sleep", "/usr/bin/sleep"];

/// How long a conductor without a job stays, if the drill was killed.
const IDLE: &str = "2m";

/// How long conductors may take to release their jobs at the end.
const RELEASE: Duration = Duration::from_secs(5);
const END_PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

pub(super) struct Conductors<'a> {
    /// The words that open the board.
    pub(super) program: Suggestion,
    /// The copy of the board to use instead.
    pub(super) copy: Option<&'a Scratch>,
    /// The name of the jobs, and the prefix of the conductors' names.
    pub(super) name: String,
    pub(super) lease: Duration,
    pub(super) children: Vec<Child>,
}

pub(super) struct DrillConductor {
    pub(super) name: String,
    at: usize,
}

impl Conductors<'_> {
    pub(super) fn start(&mut self, slots: usize) -> anyhow::Result<DrillConductor> {
        let at = self.children.len();
        let name = format!("{}-{}", self.name, at + 1);
        let mut command = match self.copy {
            Some(copy) => copy.command(),
            None => {
                let mut command = Command::new("/proc/self/exe");
                command.args(self.program.words().iter().skip(1));
                command
            }
        };
        command
            .args(["--quiet", "conduct", "--output", "discard", "--name", &name])
            .args(["--filter", &format!("name={}", self.name)])
            .args(["--lease", &duration::exact(self.lease)])
            .args([
                "--jobs",
                &slots.to_string(),
                "--idle-exit",
                IDLE,
                "--grace",
                "0s",
            ])
            .args(PROGRAMS.iter().flat_map(|program| ["--allow", program]))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().context("cannot start a conductor")?;
        self.children.push(child);
        Ok(DrillConductor { name, at })
    }

    pub(super) fn signal(&self, conductor: &DrillConductor, signal: Signal) -> anyhow::Result<()> {
        let child = &self.children[conductor.at];
        kill_process(Pid::from_child(child), signal)
            .with_context(|| format!("cannot signal the conductor {}", conductor.name))
    }

    /// Stops all conductors. They release their jobs, and their guards end the commands.
    pub(super) async fn end(&mut self) {
        for child in &self.children {
            // It may have exited, or be stopped.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = kill_process(Pid::from_child(child), Signal::CONT);
        }
        let (deadline, mut pauses) = (Instant::now() + RELEASE, Backoff::after_one(END_PAUSES));
        let is_there = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        while self.children.iter_mut().any(is_there) && Instant::now() < deadline {
            time::sleep(pauses.exact_pause()).await;
        }
        self.kill();
    }

    fn kill(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Conductors<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}
