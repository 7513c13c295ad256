//! `jobboard completions`, and the answers to its scripts.

mod ask;
pub(super) mod complete;

use crate::output::Output;

/// Print a completion script for a shell
///
/// The script calls jobboard on each completion, so it offers the jobs, owners and conductors on the board. The
/// packages install these scripts.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

pub(crate) fn run(out: &mut Output, args: &CompletionsArgs) -> anyhow::Result<()> {
    let script = match args.shell {
        Shell::Bash => include_str!("../../completions/jobboard.bash"),
        Shell::Fish => include_str!("../../completions/jobboard.fish"),
        Shell::Zsh => include_str!("../../completions/_jobboard"),
    };
    out.document(script.as_bytes())
}
