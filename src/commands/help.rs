//! `jobboard help`: the help of commands and of topics.

pub(super) mod guide;
pub(super) mod prose;
mod tree;

use std::io;

use clap::{Command, CommandFactory, builder::StyledStr};

use self::guide::{PROGRAM, grammar};
use super::Cli;
use crate::{
    exit::CommandError,
    output::{Output, size_of},
    suggest::Hint,
};

const WIDEST: usize = 100;

/// The topic that is made from the grammar.
pub(super) const OPTIONS: &str = "options";

const EXIT_CODES: &str = include_str!("../../docs/exit-codes.md");

pub(super) struct Topic {
    pub(super) name: &'static str,
    /// The name of its manual page, without the `jobboard-` prefix.
    pub(super) page: &'static str,
    pub(super) text: &'static str,
}

pub(super) const TOPICS: [Topic; 7] = [
    topic("boards", include_str!("../../docs/boards.md")),
    topic("filters", include_str!("../../docs/filters.md")),
    topic("output", include_str!("../../docs/output.md")),
    topic("exit-codes", EXIT_CODES),
    Topic {
        name: "troubleshooting",
        page: "explain",
        text: include_str!("../../docs/troubleshooting.md"),
    },
    topic("conducting", include_str!("../../docs/conducting.md")),
    topic("octavia", include_str!("../../docs/octavia.md")),
];

const fn topic(name: &'static str, text: &'static str) -> Topic {
    let page = name;
    Topic { name, page, text }
}

/// Print help for a command or a topic
///
/// Topics: boards, filters, output, exit-codes, troubleshooting (the codes of `explain` and `doctor`),
/// conducting, octavia, and options (those of every command). With --json, prints all of it as one object:
/// commands, arguments, options, values, examples and exit codes.
#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// Command or topic
    #[arg(value_name = "COMMAND|TOPIC")]
    about: Option<String>,
}

enum Subject<'a> {
    Program,
    Command(&'a str),
    Options,
    Topic(&'a Topic),
}

pub(crate) fn run(out: &mut Output, args: &HelpArgs) -> anyhow::Result<()> {
    let subject = subject(args.about.as_deref())?;
    match out.is_json() {
        true => tree::tell(out, &subject),
        false => out.help(&text(&subject)),
    }
}

fn subject(name: Option<&str>) -> anyhow::Result<Subject<'_>> {
    let Some(name) = name else {
        return Ok(Subject::Program);
    };
    if name == OPTIONS {
        return Ok(Subject::Options);
    }
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == name) {
        return Ok(Subject::Topic(topic));
    }
    match Cli::command().find_subcommand(name) {
        Some(_) => Ok(Subject::Command(name)),
        None => {
            let topics = TOPICS.map(|topic| topic.name);
            let message = format!("no command or topic `{name}`");
            let text = "`jobboard help` lists the commands; the topics are {}";
            let hint = Hint::new(text, [&[&topics[..], &[OPTIONS]].concat()]);
            Err(CommandError::usage(message).hint(hint).into())
        }
    }
}

fn text(subject: &Subject) -> StyledStr {
    match subject {
        Subject::Program => asked(&[PROGRAM, "--help"]),
        Subject::Command(name) => asked(&[PROGRAM, name, "--help"]),
        Subject::Options => options(),
        Subject::Topic(topic) => {
            let width = size_of(io::stdout()).map_or(WIDEST, |(columns, _)| columns);
            prose::on_terminal(topic.text, width.min(WIDEST))
        }
    }
}

fn asked(words: &[&str]) -> StyledStr {
    let asked = grammar().try_get_matches_from(words);
    asked.map_or_else(|help| help.render(), |_| StyledStr::new())
}

fn options() -> StyledStr {
    let program = Cli::command();
    let mut options = Command::new(PROGRAM)
        .args(program.get_arguments())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .max_term_width(WIDEST)
        .before_help(
            "Every command accepts these options, before or after its name. Scripts can set them in the \
             environment, too: `jobboard help boards`.",
        )
        .help_template("{before-help}{all-args}");
    options.render_long_help()
}
