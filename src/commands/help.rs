//! `jobboard help`: of commands, and of what several of them have in common.

use clap::{CommandFactory, builder::StyledStr};

use super::Cli;
use crate::{exit::CommandError, output::Output};

/// What is told of no single command, by its name.
pub(super) const TOPICS: [(&str, &str); 4] = [
    ("output", include_str!("help/output.txt")),
    ("filters", include_str!("help/filters.txt")),
    ("boards", include_str!("help/boards.txt")),
    ("exit-codes", include_str!("help/exit-codes.txt")),
];

/// Print the help of a command, or of a topic: output, filters, boards or exit-codes
#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// The command, or the topic
    #[arg(value_name = "COMMAND|TOPIC")]
    about: Option<String>,
}

pub(crate) fn run(out: &mut Output, args: &HelpArgs) -> anyhow::Result<()> {
    out.help(&text(args.about.as_deref())?)
}

fn text(about: Option<&str>) -> anyhow::Result<StyledStr> {
    let mut program = Cli::command();
    program.build();
    let Some(name) = about else {
        return Ok(program.render_long_help());
    };
    if let Some((_, text)) = TOPICS.iter().find(|(topic, _)| *topic == name) {
        return Ok(StyledStr::from(*text));
    }
    match program.find_subcommand_mut(name) {
        Some(command) => Ok(command.render_long_help()),
        None => {
            let topics = TOPICS.map(|(topic, _)| topic).join(", ");
            let message = format!("there is no command and no topic `{name}`");
            let hint = format!("`jobboard help` lists the commands; the topics are {topics}");
            Err(CommandError::usage(message).hint(hint).into())
        }
    }
}
