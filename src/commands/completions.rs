//! `jobboard completions`.

pub(super) mod complete;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::output::Output;

/// Print a completion script for a shell
///
/// For bash: jobboard completions bash > ~/.local/share/bash-completion/completions/jobboard
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(out: &mut Output, args: &CompletionsArgs) -> anyhow::Result<()> {
    out.document(&script(args.shell))
}

/// Returns the script that completes our command line in a shell.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "jobboard", &mut script);
    script
}
