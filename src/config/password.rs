//! The source of the password. It is fetched when a server asks for it, and never shown.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::{BoardChoice, Flags, Source, Sourced, environment::Environment, file::FoundTable};
use crate::{
    bounded_read::{wait_for, within},
    process::{group::ProcessGroup, service_manager},
    secret::{SECRET_VARIABLES, Secret},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Password {
    None,
    Stdin,
    File(PathBuf),
    /// The password itself, from a setting.
    Given(Secret),
    Command {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

pub(super) fn choose(
    flags: &Flags,
    env: &Environment,
    table: Option<FoundTable<'_>>,
    board: &BoardChoice,
) -> anyhow::Result<Sourced<Password>> {
    if let Some(path) = &flags.password_file {
        let source = Source::Flag("--password-file");
        return Ok(Sourced::new(file(path.clone().into()), source));
    }
    let name = "JOBBOARD_PASSWORD_FILE";
    if let Some(path) = env.variable(name).filter(|_| !flags.is_second) {
        ensure!(
            !path.is_empty(),
            "{name} is empty; unset {name} or name a file"
        );
        return Ok(Sourced::new(file(path), Source::Variable(name)));
    }
    if let Some(text) = env.text("JOBBOARD_PASSWORD")?.filter(|_| !flags.is_second) {
        let secret = Secret::new(text.value);
        return Ok(Sourced::new(Password::Given(secret), text.source));
    }
    if let Some(password) = table.and_then(of_table) {
        return Ok(password);
    }
    let of_octavia = board.octavia.as_ref();
    if let Some(secret) = of_octavia.and_then(|octavia| octavia.password.clone()) {
        return Ok(Sourced::new(Password::Given(secret.value), secret.source));
    }
    Ok(match board.url.password() {
        Some(secret) => Sourced::new(Password::Given(secret.clone()), board.url_source.clone()),
        None => Sourced::default(Password::None),
    })
}

fn file(path: OsString) -> Password {
    if path == "-" {
        Password::Stdin
    } else {
        Password::File(path.into())
    }
}

/// A relative path starts at the directory of the configuration file: any user may own the current directory.
fn of_table(found: FoundTable<'_>) -> Option<Sourced<Password>> {
    let directory = found.file.directory();
    found.value(
        |table| match (&table.password_file, table.password_command.as_deref()) {
            (Some(file), _) => Some(Password::File(directory.join(file))),
            (None, Some([name, arguments @ ..])) => Some(Password::Command {
                program: match name.contains('/') {
                    true => directory.join(name),
                    false => name.into(),
                },
                arguments: arguments.to_vec(),
            }),
            _ => None,
        },
    )
}

impl Password {
    pub(super) fn fetch(&self, patience: Duration) -> anyhow::Result<Option<Secret>> {
        match self {
            Self::None => Ok(None),
            Self::Given(secret) => Ok(Some(secret.clone())),
            Self::Stdin => Secret::read(io::stdin().lock())
                .map(Some)
                .context("cannot read the password from standard input"),
            Self::File(path) => Secret::from_file(path, patience)
                .map(Some)
                .with_context(|| format!("cannot read the password from {}", path.display())),
            Self::Command { program, arguments } => {
                run(Command::new(program).args(arguments), PROGRAM_TIMEOUT).map(Some)
            }
        }
    }
}

/// The time limit and the output limit of a program that prints the password.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_PRINTED_BYTES: u64 = 64 * 1024;

/// Runs a program for its output. No error repeats that: it may be the password.
fn run(command: &mut Command, patience: Duration) -> anyhow::Result<Secret> {
    let program = command.get_program().display().to_string();
    for name in SECRET_VARIABLES.iter().chain(&service_manager::VARIABLES) {
        command.env_remove(name);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run the password_command `{program}`"))?;
    let printed = printed(&mut child, (Instant::now(), patience));
    if printed.is_err()
        && let Some(group) = ProcessGroup::led_by(Pid::from_child(&child))
    {
        group.signal(Signal::KILL);
    }
    let status = child.wait()?;
    let printed =
        printed.with_context(|| format!("the password_command `{program}` was killed"))?;
    ensure!(
        status.success(),
        "the password_command `{program}` exited with {status}"
    );
    Secret::read(&printed[..])
        .with_context(|| format!("the password_command `{program}` printed no password"))
}

/// Returns the output of a program once it has ended, and leaves it unreaped.
fn printed(child: &mut Child, time: (Instant, Duration)) -> io::Result<Vec<u8>> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let output = child.stdout.take().map(OwnedFd::from);
    let printed = output.map(|output| within(output.into(), MAX_PRINTED_BYTES, time));
    let printed = printed.transpose()?;
    wait_for(end, time).map(|()| printed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn password_command_inherits_no_secret_and_no_service_socket() {
        let names = SECRET_VARIABLES.iter().chain(&service_manager::VARIABLES);
        let script: String = names.clone().map(|name| format!("${name}")).collect();
        let mut command = shell(&format!("echo \"pw{script}\""));
        command.envs(names.map(|name| (name, "hunter2")));
        assert_eq!(run(&mut command, PROGRAM_TIMEOUT).unwrap().expose(), "pw");
    }

    #[test]
    fn hanging_password_command_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let pids = directory.path().join("pids");
        for script in [
            "sleep 600 & echo $! $$ > PIDS; wait",
            "sleep 600 & echo $! $$ > PIDS; echo pw; exec > /dev/null; wait",
            "sleep 600 & echo $! $$ > PIDS; yes",
        ] {
            let mut command = shell(&script.replace("PIDS", &pids.display().to_string()));
            let error = run(&mut command, Duration::from_millis(500)).unwrap_err();
            let message = format!("{error:#}");
            let why = match script.ends_with("yes") {
                true => "was killed: the input has more than 65536 bytes",
                false => "was killed: the input did not end within 500ms",
            };
            assert!(message.contains(why), "{message}");
            let pids = std::fs::read_to_string(&pids).unwrap();
            for pid in pids.split_whitespace() {
                let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
                let end = pidfd_open(pid, PidfdFlags::empty());
                // The init process reaps the killed child later.
                let ended = end.map(|end| wait_for(end, (Instant::now(), PROGRAM_TIMEOUT)));
                assert!(
                    ended.is_err() || ended.is_ok_and(|ended| ended.is_ok()),
                    "{script}"
                );
            }
        }
    }
}
