//! `jobboard completions`, and the answers to its scripts.

mod ask;
pub(super) mod complete;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
};

use clap::Command;
use clap_complete::{
    Shell,
    engine::{CompletionCandidate, complete},
    env::{Elvish, EnvCompleter, Powershell, Shells},
};

use crate::output::Output;

/// Print a completion script for a shell
///
/// The script calls jobboard on each completion, so it offers the jobs, owners and conductors on the board. The
/// packages install the scripts for bash, zsh and fish.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(out: &mut Output, args: &CompletionsArgs) -> anyhow::Result<()> {
    let (name, mut script) = ("jobboard", Vec::new());
    if let Some(shell) = SHELLS.completer(&args.shell.to_string()) {
        shell.write_registration("COMPLETE", name, name, name, &mut script)?;
    }
    out.document(&script)
}

const SHELLS: Shells<'static> = Shells(&[
    &ScriptedShell("bash", include_str!("../../completions/jobboard.bash")),
    &ScriptedShell("zsh", include_str!("../../completions/_jobboard")),
    &ScriptedShell("fish", include_str!("../../completions/jobboard.fish")),
    &Elvish,
    &Powershell,
]);

/// The name of a shell, and its script, which passes the words before the cursor.
struct ScriptedShell(&'static str, &'static str);

impl EnvCompleter for ScriptedShell {
    fn name(&self) -> &'static str {
        self.0
    }

    fn is(&self, name: &str) -> bool {
        name == self.0
    }

    fn write_registration(
        &self,
        _variable: &str,
        _name: &str,
        _bin: &str,
        _completer: &str,
        buffer: &mut dyn Write,
    ) -> io::Result<()> {
        buffer.write_all(self.1.as_bytes())
    }

    /// Prints one value per line, followed by a tab and its description.
    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        directory: Option<&Path>,
        buffer: &mut dyn Write,
    ) -> io::Result<()> {
        let Some((last, before)) = words.split_last() else {
            return Ok(());
        };
        // Another program's command line follows `--`.
        if before.iter().any(|word| word == "--") {
            return Ok(());
        }
        let (at, is_begun) = (before.len(), !last.is_empty());
        let mut found = complete(command, words, at, directory).unwrap_or_default();
        let is_option = |it: &CompletionCandidate| {
            let value = it.get_value().as_encoded_bytes();
            value.starts_with(b"-")
        };
        // Offers options after a `-`, or without other candidates.
        if !is_begun && !found.iter().all(is_option) {
            found.retain(|it| !is_option(it));
        }
        for candidate in found {
            let help = candidate
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let help = help.lines().next().unwrap_or_default();
            writeln!(
                buffer,
                "{}\t{help}",
                candidate.get_value().to_string_lossy()
            )?;
        }
        Ok(())
    }
}
