//! Corrects command lines with a missing `--`, a missing NAME or an option before the command.

use std::path::Path;

use clap::{Args as _, error::ErrorKind};

use super::early_format::{EarlyFormat, takes_next};
use crate::{
    board::JobRef,
    commands::{Command, GlobalArgs},
    output::is_program,
    secret::have_secret,
    suggest::Hint,
};

pub(in crate::commands) const DASHES: &str = "put the command after `--`: `jobboard {} -- {}`";

/// The commands that take a COMMAND, and their participles.
const WITH_COMMAND: [(&str, &str); 4] = [
    ("post", "posted"),
    ("run", "run"),
    ("change", "changed"),
    ("claim", "claimed"),
];

/// A command line without secrets, so that hints may repeat it.
pub(super) struct TypedLine<'a> {
    /// The grammar of the command, with the global options.
    grammar: clap::Command,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
}

impl<'a> TypedLine<'a> {
    pub(super) fn of(early: &EarlyFormat, words: &'a [String]) -> Option<Self> {
        let grammar = Command::named(early.command.as_deref()?)?();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        (!have_secret(&words)).then_some(Self {
            grammar: GlobalArgs::augment_args(grammar),
            before: words.get(1..early.at)?.to_vec(),
            after: words.get(early.at + 1..)?.to_vec(),
        })
    }

    /// Puts `--` before the first word that belongs to a COMMAND.
    pub(super) fn with_dashes(&self) -> Option<Hint> {
        let (command, after) = (self.grammar.get_name(), &self.after);
        let has_command = WITH_COMMAND.iter().any(|(it, _)| *it == command);
        if !has_command || after.contains(&"--") {
            return None;
        }
        let has_name = ["post", "run"].contains(&command);
        let is_next = |it: &&&str| command == "claim" && **it == "--next";
        let mut first = after.iter().find(is_next);
        let mut words = after.iter().enumerate();
        let at = loop {
            let (at, word) = words.next()?;
            let is_option = word.starts_with('-');
            match (takes_next(&self.grammar, word), is_option, first) {
                (Some(true), ..) => drop(words.next()),
                (Some(false), ..) => {}
                (None, false, None) => first = Some(word),
                (None, false, _) if has_name && word.contains('=') => {}
                (None, false, _) if command == "change" && word.parse::<JobRef>().is_ok() => {}
                _ => break at,
            }
        };
        let (first, (words, rest)) = (first?, after.split_at(at));
        let line = [&self.before, &[command][..], words].concat();
        let command = match rest {
            ["--command" | "--cmd", value, more @ ..] => [&as_command(value), more].concat(),
            ["---", more @ ..] => more.to_vec(),
            [word, ..] if word.starts_with('-') && has_name => [&[*first], rest].concat(),
            [word, ..] if word.starts_with('-') => return None,
            _ if has_name && is_program(first) => [&[*first], rest].concat(),
            _ if has_name => {
                return Some(Hint::new(DASHES, [&line, rest]));
            }
            _ => rest.to_vec(),
        };
        (!command.is_empty()).then(|| Hint::new(DASHES, [&line, &command]))
    }

    /// Names the job after the program of its command.
    pub(super) fn with_name(&self) -> Option<Hint> {
        let (command, after) = ([self.grammar.get_name()], &self.after);
        let line = [&self.before[..], &command].concat();
        let dashes = after.iter().position(|it| *it == "--")?;
        let command = match &after[dashes + 1..] {
            [line] => as_command(line),
            words => words.to_vec(),
        };
        let name = Path::new(command.first()?).file_name()?.to_str()?;
        let text = "give the job a name: `jobboard {} {} {} -- {}`";
        let options = &after[..dashes];
        Some(Hint::new(text, [&line, &[name], options, &command]))
    }

    /// Moves options of the command that were typed before it to the place after it.
    pub(super) fn with_options_behind(&self) -> Option<Hint> {
        let global = GlobalArgs::augment_args(clap::Command::default());
        self.before.iter().find(|it| {
            takes_next(&global, it).is_none() && takes_next(&self.grammar, it).is_some()
        })?;
        let text = "put the options of a command after it: `jobboard {} {} {}`";
        Some(Hint::new(
            text,
            [&[self.grammar.get_name()], &self.before, &self.after],
        ))
    }
}

/// Splits a command line into words, or wraps it in `sh -c` if it contains shell syntax.
pub(in crate::commands) fn as_command(line: &str) -> Vec<&str> {
    match line.contains(|it| "|&;<>()$`\\\"'*?[~".contains(it)) {
        true => vec!["sh", "-c", line],
        false => line.split_whitespace().collect(),
    }
}

/// Returns a note if `-h` was probably meant for another program, as in `post df -h`.
pub(crate) fn note_on_help(
    error: &clap::Error,
    early: &EarlyFormat,
    words: &[String],
) -> Option<String> {
    let typed = TypedLine::of(early, words).filter(|_| error.kind() == ErrorKind::DisplayHelp)?;
    let mut commands = WITH_COMMAND.iter();
    let (_, done) = commands.find(|(it, _)| *it == typed.grammar.get_name())?;
    Some(format!("nothing was {done}; {}", typed.with_dashes()?))
}
