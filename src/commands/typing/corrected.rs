//! Corrects command lines with a missing `--`.

use clap::Args as _;

use super::early_format::{EarlyFormat, takes_next};
use crate::{
    board::JobRef,
    commands::{Command, GlobalArgs},
    output::is_program,
    secret::have_secret,
    suggest::Hint,
};

pub(in crate::commands) const DASHES: &str = "put the command after `--`: `jobboard {} -- {}`";

const WITH_COMMAND: [&str; 4] = ["post", "run", "change", "claim"];

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

    /// Joins an option and its value, which looks like an option but not like a number.
    pub(super) fn with_joined_value(&self, unknown: &str) -> Option<Hint> {
        let is_text = !unknown[1..].starts_with(|it: char| it.is_ascii_digit());
        let is_it = |it: &&str| is_text && it.starts_with(unknown);
        let at = self.after.iter().position(is_it)?;
        let option = self.after.get(at.checked_sub(1)?)?;
        let joined = format!("{option}={}", self.after[at]);
        let takes_value = takes_next(&self.grammar, option) == Some(true);
        takes_value.then(|| Hint::new("write `{}`", [&[&joined]]))
    }

    /// Answers `post -- -NAME`, which has only a command.
    pub(super) fn with_dashed_name(&self) -> Option<Hint> {
        let mut behind = self.after.iter().skip_while(|it| **it != "--").skip(1);
        let is_dashed = behind.next().is_some_and(|it| it.starts_with('-'));
        let hint = "`jobboard post --from -` also posts a job whose name begins with `-`";
        (is_dashed && self.grammar.get_name() == "post").then(|| hint.into())
    }

    /// Puts `--` before the first word that belongs to a COMMAND.
    pub(super) fn with_dashes(&self) -> Option<Hint> {
        let (command, after) = (self.grammar.get_name(), &self.after);
        let has_command = WITH_COMMAND.contains(&command);
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
}

/// Splits a command line into words, or wraps it in `sh -c` if it contains shell syntax.
pub(in crate::commands) fn as_command(line: &str) -> Vec<&str> {
    match line.contains(|it| "|&;<>()$`\\\"'*?[~".contains(it)) {
        true => vec!["sh", "-c", line],
        false => line.split_whitespace().collect(),
    }
}
