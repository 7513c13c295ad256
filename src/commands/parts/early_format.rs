//! What can be told of a command line that is not understood: how its writer wants to be answered.

use clap::{CommandFactory, ValueEnum};

use crate::{
    commands::Cli,
    output::{ColorChoice, Format},
};

/// The form and colour that a command line asks for, and its command, whatever else is wrong.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Glimpse {
    pub(crate) format: Option<Format>,
    pub(crate) color: ColorChoice,
    pub(crate) command: Option<String>,
}

impl Glimpse {
    /// Looks through the arguments of the program, as far as they are options of ours.
    pub(crate) fn of(arguments: impl Iterator<Item = String>) -> Self {
        let mut glimpse = Self::default();
        let mut arguments = arguments.take_while(|argument| argument != "--");
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => match argument.strip_prefix("-o") {
                    Some(value) if !value.is_empty() => ("-o".to_owned(), Some(value.to_owned())),
                    _ => (argument, None),
                },
            };
            match name.as_str() {
                "--json" => glimpse.format = Some(Format::Json),
                "-o" | "--format" => {
                    let asked = choice(value.or_else(|| arguments.next()));
                    glimpse.format = asked.or(glimpse.format);
                }
                "--color" => {
                    glimpse.color = choice(value.or_else(|| arguments.next())).unwrap_or_default();
                }
                word if glimpse.command.is_none() && is_command(word) => {
                    glimpse.command = Some(name);
                }
                _ => {}
            }
        }
        glimpse
    }
}

fn is_command(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

fn choice<T: ValueEnum>(value: Option<String>) -> Option<T> {
    T::from_str(value?.trim_start_matches('='), false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glimpse(line: &str) -> Glimpse {
        Glimpse::of(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn each_way_of_asking_for_a_form_is_seen() {
        for line in [
            "--json lst",
            "lst -o json",
            "-ojson lst",
            "lst --format=json x",
            "-o=json",
        ] {
            assert_eq!(glimpse(line).format, Some(Format::Json), "{line}");
        }
        assert_eq!(glimpse("lst --format jsonl").format, Some(Format::Jsonl));
        assert_eq!(glimpse("run x -- curl --json").format, None);
        assert_eq!(glimpse("lst --color never").color, ColorChoice::Never);
    }
}
