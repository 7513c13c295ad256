//! Where the password comes from; it is fetched when a server asks for it, and never shown.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};

use super::{
    BoardChoice, Flags, Source, Sourced,
    environment::Environment,
    file::{BoardTable, FoundTable, Program},
};
use crate::secret::{SECRET_VARIABLES, Secret};

/// Where the password is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Password {
    None,
    Stdin,
    File(PathBuf),
    /// In what we were given already.
    Given(Secret),
    /// On the standard output of a program.
    Command {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

/// Chooses among those who name a password; nothing is fetched yet.
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
            "{name} is empty: unset it, or name a file"
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

/// A relative path goes from the folder of the configuration file: the current folder may belong
/// to anybody.
fn of_table(found: FoundTable<'_>) -> Option<Sourced<Password>> {
    let folder = found.file.folder();
    let command = |Program { name, arguments }: Program| Password::Command {
        program: if name.contains('/') {
            folder.join(name)
        } else {
            name.into()
        },
        arguments,
    };
    let file = |table: &BoardTable| Some(folder.join(table.password_file.as_ref()?));
    found.value(|table| {
        let file = file(table).map(Password::File);
        file.or_else(|| table.password_command.clone().map(command))
    })
}

impl Password {
    /// Fetches the password, `None` if there is none to fetch; a pipe is waited for so long.
    pub(super) fn fetch(&self, patience: Duration) -> anyhow::Result<Option<Secret>> {
        match self {
            Self::None => Ok(None),
            Self::Given(secret) => Ok(Some(secret.clone())),
            Self::Stdin => Secret::read(io::stdin().lock())
                .map(Some)
                .context("cannot read the password from stdin"),
            Self::File(path) => Secret::from_file(path, patience)
                .map(Some)
                .with_context(|| format!("cannot read the password from {}", path.display())),
            Self::Command { program, arguments } => {
                run(Command::new(program).args(arguments)).map(Some)
            }
        }
    }
}

/// Runs a program for what it prints, which no error repeats: it may be the password.
fn run(command: &mut Command) -> anyhow::Result<Secret> {
    let program = command.get_program().display().to_string();
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{program}`, the password_command"))?;
    ensure!(
        output.status.success(),
        "`{program}`, the password_command, ended with {}",
        output.status
    );
    Secret::read(&output.stdout[..])
        .with_context(|| format!("`{program}`, the password_command, printed no password"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_prints_the_password_inherits_none() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo \"pw$JOBBOARD_URL$JOBBOARD_PASSWORD\""]);
        command.envs(SECRET_VARIABLES.map(|name| (name, "hunter2")));
        assert_eq!(run(&mut command).unwrap().expose(), "pw");
    }
}
