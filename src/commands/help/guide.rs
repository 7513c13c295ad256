//! What the help of a command begins and ends with: examples, and the codes that it can end with.

use std::fmt::Write as _;

use clap::{
    Command, CommandFactory,
    builder::{Resettable, StyledStr, styling::Style},
};
use serde::Serialize;

use super::EXIT_CODES;
use crate::commands::Cli;

/// Of each command its examples (`$`), its exit codes, and what else to read (`@`).
///
/// A line of codes alone takes their meanings from what is told of all codes.
const GUIDES: &str = include_str!("commands.txt");

/// The name of the program, which has a guide as its commands have.
pub(in crate::commands) const PROGRAM: &str = "jobboard";

#[derive(Debug, Serialize)]
pub(in crate::commands) struct Example {
    pub(in crate::commands) line: &'static str,
    /// What it does, if that does not go without saying.
    pub(in crate::commands) about: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(in crate::commands) struct ExitCode {
    /// The code, or `else` for whatever the command ends with that it runs.
    pub(in crate::commands) code: &'static str,
    pub(in crate::commands) meaning: &'static str,
}

#[derive(Debug, Default)]
pub(in crate::commands) struct Guide {
    pub(in crate::commands) examples: Vec<Example>,
    pub(in crate::commands) codes: Vec<ExitCode>,
    pub(in crate::commands) related: Vec<&'static str>,
}

impl Guide {
    pub(in crate::commands) fn of(command: &str) -> Self {
        let mut guide = Self::default();
        let entry = GUIDES.split("\n\n").find_map(|entry| {
            let entry = entry.strip_prefix('[')?.strip_prefix(command)?;
            entry.strip_prefix("]\n")
        });
        for line in entry.unwrap_or_default().lines() {
            match line.split_once(' ') {
                Some(("$", example)) => {
                    let (line, about) = example.split_once("  ").unwrap_or((example, ""));
                    let about = Some(about.trim_start()).filter(|about| !about.is_empty());
                    guide.examples.push(Example { line, about });
                }
                Some(("@", names)) => guide.related.extend(names.split(' ')),
                Some((code, meaning)) if meaning.contains(char::is_alphabetic) => {
                    guide.codes.push(ExitCode { code, meaning });
                }
                _ => guide.codes.extend(line.split(' ').map(usual)),
            }
        }
        guide
            .codes
            .sort_by_key(|it| it.code.parse().unwrap_or(u8::MAX));
        guide
    }

    fn examples(&self, header: Style) -> String {
        let mut shown = format!("{header}Examples:{header:#}");
        let lines = self.examples.iter().filter(|it| it.about.is_some());
        let width = lines.map(|it| it.line.len()).max().unwrap_or_default();
        for Example { line, about } in &self.examples {
            let _ = match about {
                Some(about) => write!(shown, "\n  {line:width$}   {about}"),
                None => write!(shown, "\n  {line}"),
            };
        }
        shown
    }

    fn codes(&self, header: Style) -> String {
        let mut shown = format!("{header}Exit codes:{header:#}");
        for ExitCode { code, meaning } in &self.codes {
            let _ = write!(shown, "\n  {code:4} {meaning}");
        }
        shown
    }
}

fn usual(code: &'static str) -> ExitCode {
    let meaning = EXIT_CODES.lines().find_map(|line| {
        let (codes, meaning) = line.strip_prefix("| ")?.split_once(" | ")?;
        let is_it = codes.split(", ").any(|it| it == code);
        is_it.then(|| meaning.trim_end_matches([' ', '|']))
    });
    let meaning = meaning.unwrap_or_default();
    ExitCode { code, meaning }
}

/// Returns the grammar of the command line, its help included.
pub(crate) fn grammar() -> Command {
    Cli::command()
        .mut_args(|arg| arg.hide_short_help(true).hide_long_help(true))
        .mut_subcommands(|command| command.defer(describe))
        .defer(describe)
}

/// Sets what help is told of a command, once it is known that it is the one.
fn describe(command: Command) -> Command {
    let guide = Guide::of(command.get_name());
    let header = *command.get_styles().get_header();
    let about = command.get_about().cloned().unwrap_or_default();
    let rest = description(&command).map(StyledStr::from);
    let more = match command.get_name() {
        PROGRAM => {
            "`jobboard help COMMAND` tells all about a command, `jobboard help TOPIC` about boards, \
             filters, output, exit-codes, triage or conducting.\n"
        }
        _ => "",
    };
    let codes = guide.codes(header);
    command
        .before_help(guide.examples(header))
        .after_help(format!(
            "{codes}\n\n{more}Global options: --board, --who, --json and others: `jobboard help options`"
        ))
        .about(Resettable::Reset)
        .long_about(Resettable::from(rest))
        .help_template(format!(
            "{about}\n\n{{before-help}}{{usage-heading}} {{usage}}\n{{about-section}}\n\
             {{all-args}}{{after-help}}"
        ))
}

pub(super) fn description(command: &Command) -> Option<String> {
    let long = command.get_long_about()?.to_string();
    let (_, rest) = long.split_once("\n\n")?;
    Some(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{help::TOPICS, tests::grammars_agree};

    /// Calls it with each command, and the program itself.
    fn each(check: impl Fn(&str, &Guide)) {
        let program = Cli::command();
        let commands = program.get_subcommands().map(Command::get_name);
        for name in commands.chain([PROGRAM]) {
            check(name, &Guide::of(name));
        }
    }

    #[test]
    fn each_command_has_examples_and_codes_that_fit_a_terminal() {
        let program = Cli::command();
        each(|name, guide| {
            assert!(matches!(guide.examples.len(), 2..=5), "{name}");
            assert!(guide.codes.iter().any(|it| it.code == "0"), "{name}");
            let about = program.find_subcommand(name).and_then(Command::get_about);
            let about = about.or(program.get_about()).unwrap().to_string();
            assert!(about.len() <= 80, "{about}");
            let plain = Style::new();
            let shown = guide.examples(plain) + "\n" + &guide.codes(plain);
            for line in shown.lines() {
                assert!(line.len() <= 80, "{line}");
            }
        });
        let guides = GUIDES.split("\n\n").count();
        assert_eq!(guides, Cli::command().get_subcommands().count() + 1);
    }

    #[test]
    fn each_code_is_one_of_all() {
        each(|name, guide| {
            for ExitCode { code, meaning } in &guide.codes {
                assert!(!meaning.is_empty(), "{name} {code}");
                let is_known = *code == "else" || !usual(code).meaning.is_empty();
                assert!(is_known, "{name} {code}");
            }
        });
    }

    #[test]
    fn what_is_near_is_a_command_or_a_topic() {
        let program = Cli::command();
        each(|name, guide| {
            for other in &guide.related {
                let is_known = program.find_subcommand(other).is_some()
                    || TOPICS.iter().any(|topic| topic.name == *other);
                assert!(is_known && *other != name, "{name}: {other}");
            }
        });
    }

    /// Takes a line apart as a shell does, at its pipes, too.
    fn words(line: &str) -> Vec<Vec<String>> {
        let mut commands = vec![vec![String::new()]];
        let mut quoted = false;
        for letter in line.chars() {
            let command = commands.last_mut().unwrap();
            match letter {
                '\'' => quoted = !quoted,
                ' ' if !quoted => command.push(String::new()),
                '|' if !quoted => commands.push(vec![String::new()]),
                _ => command.last_mut().unwrap().push(letter),
            }
        }
        for command in &mut commands {
            command.retain(|word| !word.is_empty());
            let redirection = command.iter().position(|word| word == ">");
            command.truncate(redirection.unwrap_or(command.len()));
        }
        commands
    }

    #[test]
    fn each_example_is_understood() {
        let whole = grammar();
        each(|name, guide| {
            for Example { line, .. } in &guide.examples {
                let commands = words(line);
                let ours = commands.iter().filter(|command| command[0] == PROGRAM);
                assert!(ours.clone().next().is_some(), "{name}: {line}");
                for command in ours {
                    let command: Vec<_> = command.iter().map(String::as_str).collect();
                    assert!(grammars_agree(&whole, &command), "{line}");
                }
            }
        });
    }

    #[test]
    fn help_begins_with_examples_and_ends_with_codes() {
        for flag in ["-h", "--help"] {
            each(|name, guide| {
                let asked = [name, flag].into_iter().filter(|it| *it != PROGRAM);
                let asked = [PROGRAM].into_iter().chain(asked);
                let shown = grammar().try_get_matches_from(asked).unwrap_err();
                let shown = shown.render().to_string();
                let mut lines = shown.lines().skip(1);
                assert_eq!(lines.next(), Some(""), "{shown}");
                assert_eq!(lines.next(), Some("Examples:"), "{shown}");
                assert!(lines.any(|line| line == "Exit codes:"), "{shown}");
                let left: Vec<_> = lines.skip(guide.codes.len()).collect();
                assert!(
                    left.last().unwrap().starts_with("Global options: "),
                    "{shown}"
                );
                assert!(!shown.contains("--op-timeout"), "{shown}");
                assert!(!shown.contains("\n\n\n"), "{shown}");
            });
        }
    }
}
