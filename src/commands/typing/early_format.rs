//! Finds the output format of a command line that does not parse.

use clap::{ColorChoice, ValueEnum};

use crate::{commands::Command, output::Format};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct EarlyFormat {
    pub(crate) format: Option<Format>,
    pub(crate) color: ColorChoice,
    pub(crate) command: Option<String>,
    /// The position of the command among all words; the first is the name of the program.
    pub(crate) at: usize,
    /// The position of an unknown word in place of the command, and the word after it.
    pub(crate) unknown: Option<(usize, Option<String>)>,
}

impl EarlyFormat {
    /// Scans arguments; `program` has at least the options of all commands.
    pub(crate) fn of(arguments: impl Iterator<Item = String>, program: &clap::Command) -> Self {
        let mut early = Self::default();
        let arguments = arguments.take_while(|argument| argument != "--");
        let mut arguments = arguments.enumerate().peekable();
        while let Some((at, argument)) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => match argument.strip_prefix("-o") {
                    Some(value) if !value.is_empty() => ("-o".to_owned(), Some(value.to_owned())),
                    _ => (argument, None),
                },
            };
            match name.as_str() {
                "--json" => early.format = Some(Format::Json),
                "-o" | "--format" => {
                    let asked = choice(value.or_else(|| Some(arguments.next()?.1)));
                    early.format = asked.or(early.format);
                }
                "--color" => {
                    let asked = choice(value.or_else(|| Some(arguments.next()?.1)));
                    early.color = asked.unwrap_or_default();
                }
                word if value.is_none() && takes_next(program, word) == Some(true) => {
                    drop(arguments.next())
                }
                word if early.command.is_none() && Command::named(word).is_some() => {
                    (early.command, early.at) = (Some(name), at + 1);
                }
                word if early.command.is_none() && !word.starts_with('-') => {
                    let mut next = || arguments.peek().map(|(_, word)| word.clone());
                    early.unknown.get_or_insert_with(|| (at, next()));
                }
                _ => {}
            }
        }
        early
    }
}

/// Whether the next word is the value of this option; `None` unless the grammar has the option.
pub(super) fn takes_next(grammar: &clap::Command, word: &str) -> Option<bool> {
    let name = word.split('=').next().filter(|it| it.starts_with('-'))?;
    let (long, short) = (name.strip_prefix("--"), name.chars().nth(1)?);
    let mut options = grammar.get_arguments();
    let option = options.find(|it| match long {
        Some(long) => it.get_long() == Some(long),
        None => it.get_short() == Some(short),
    })?;
    let has_value = word.contains('=') || long.is_none() && name.len() > 2;
    Some(option.get_action().takes_values() && !has_value)
}

fn choice<T: ValueEnum>(value: Option<String>) -> Option<T> {
    T::from_str(value?.trim_start_matches('='), false).ok()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Cli;

    fn early(line: &str) -> EarlyFormat {
        EarlyFormat::of(line.split(' ').map(str::to_owned), &Cli::command())
    }

    #[test]
    fn every_format_option_is_recognised_early() {
        for line in [
            "--json lst",
            "lst -o json",
            "-ojson lst",
            "lst --format=json x",
            "-o=json",
        ] {
            assert_eq!(early(line).format, Some(Format::Json), "{line}");
        }
        assert_eq!(early("lst --format jsonl").format, Some(Format::Jsonl));
        assert_eq!(early("run x -- curl --json").format, None);
        assert_eq!(early("lst --color never").color, ColorChoice::Never);
        let command = early("--board check --who=ping --read-only list show").command;
        assert_eq!(command.as_deref(), Some("list"));
    }
}
