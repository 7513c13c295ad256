//! The conductors of a drill: processes of this program that the drill may kill and stop.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{self, Instant};

use crate::{backoff::Backoff, duration, secret::Secret, suggest::Suggestion};

/// Where `sleep` may be.
const PROGRAMS: [&str; 2] = ["/bin/sleep", "/usr/bin/sleep"];

/// How long a conductor without a job stays, if the drill was killed.
const IDLE: &str = "2m";

/// How long conductors may take to release their jobs at the end.
const GRACE: Duration = Duration::from_secs(5);
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

pub(super) struct Conductors {
    /// The words that open the board.
    opening: Vec<String>,
    /// The name of the jobs, and the beginning of the conductors' names.
    name: String,
    lease: Duration,
    password: Option<Secret>,
    is_at_copy: bool,
    children: Vec<Child>,
    started: usize,
}

/// A conductor of the drill.
pub(super) struct DrillConductor {
    name: String,
    at: usize,
}

impl DrillConductor {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Conductors {
    pub(super) fn of(program: Suggestion, name: String, lease: Duration) -> Self {
        Self {
            opening: program.words().iter().skip(1).cloned().collect(),
            name,
            lease,
            password: None,
            is_at_copy: false,
            children: Vec::new(),
            started: 0,
        }
    }

    /// Works at another board.
    pub(super) fn work_at(&mut self, url: &str, password: Option<Secret>) {
        let opening = ["--config", "/dev/null", "--board", url];
        self.opening = opening.map(str::to_owned).to_vec();
        self.password = password;
        self.is_at_copy = true;
    }

    pub(super) fn start(&mut self, slots: usize) -> anyhow::Result<DrillConductor> {
        self.started += 1;
        let name = format!("{}-{}", self.name, self.started);
        let mut command = Command::new("/proc/self/exe");
        command
            .args(&self.opening)
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
        if self.is_at_copy {
            for (variable, _) in std::env::vars_os() {
                if variable.to_string_lossy().starts_with("JOBBOARD_") {
                    command.env_remove(variable);
                }
            }
        }
        if let Some(password) = &self.password {
            command.env("JOBBOARD_PASSWORD", password.expose());
        }
        let child = command.spawn().context("cannot start a conductor")?;
        self.children.push(child);
        let at = self.children.len() - 1;
        Ok(DrillConductor { name, at })
    }

    pub(super) fn signal(&self, worker: &DrillConductor, signal: Signal) -> anyhow::Result<()> {
        let child = &self.children[worker.at];
        kill_process(Pid::from_child(child), signal)
            .with_context(|| format!("cannot signal the conductor {}", worker.name))
    }

    /// Stops all conductors. They release their jobs, and their guards end the commands.
    pub(super) async fn end(&mut self) {
        for child in &self.children {
            // It may have exited, or be stopped.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = kill_process(Pid::from_child(child), Signal::CONT);
        }
        let (deadline, mut pauses) = (Instant::now() + GRACE, Backoff::after_one(PAUSES));
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

impl Drop for Conductors {
    fn drop(&mut self) {
        self.kill();
    }
}
