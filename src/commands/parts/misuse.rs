//! Rewords command-line errors: the problem in one line, the help in another.

use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use strsim::levenshtein;

use super::{early_format::EarlyFormat, synonyms::answer};
use crate::{exit::CommandError, suggest::Hint};

/// Commands that end claims or jobs, or run commands: a typing error never suggests one.
const DANGEROUS: [&str; 6] = ["abandon", "apply", "conduct", "consume", "purge", "trash"];

/// Rewords a parser error; `None` if the program's help answers it.
pub(crate) fn misuse(error: &clap::Error, early: &EarlyFormat) -> Option<CommandError> {
    let command = early.command.as_deref();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let message = match (error.kind(), source(error)) {
        (ErrorKind::InvalidSubcommand, _) => match text(error, ContextKind::InvalidSubcommand) {
            Some(word) => format!("no command `{word}`"),
            None => folded(error),
        },
        (ErrorKind::MissingSubcommand, _) => "no command given".to_owned(),
        (ErrorKind::ValueValidation, Some(reason)) => of_value(error, &reason),
        _ => folded(error),
    };
    let next = early.unknown.as_ref().and_then(|(_, next)| next.as_deref());
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(word) = text(error, ContextKind::InvalidSubcommand)
        && let Some(hint) = answer(&word, next)
    {
        return Some(CommandError::usage(message).hint(hint));
    }
    let word = suggestion(error);
    let hint = match (word.as_deref(), command) {
        (None, None) => "`jobboard help` lists the commands".into(),
        (None, Some(command)) => Hint::new("`jobboard help {}` lists the options", [&[command]]),
        (Some(word), None) => Hint::new(
            "did you mean {}? `jobboard help` lists the commands",
            [&[word]],
        ),
        (Some(word), Some(command)) => Hint::new(
            "did you mean {}? `jobboard help {}` lists the options",
            [&[word], &[command]],
        ),
    };
    Some(CommandError::usage(message).hint(hint))
}

fn of_value(error: &clap::Error, reason: &str) -> String {
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let argument = argument.split(' ').next().unwrap_or_default();
    match reason.contains(&format!("`{value}`")) {
        true => format!("{argument}: {reason}"),
        false => format!("{argument}: invalid value `{value}`: {reason}"),
    }
}

/// Returns the likely intended word, unless it is dangerous or too different.
fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let words = kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(vec![word.clone()]),
        ContextValue::Strings(words) => Some(words.clone()),
        _ => None,
    })?;
    // The likeliest comes last.
    let mut words = words.into_iter().rev();
    let typed = text(error, ContextKind::InvalidSubcommand)
        .or_else(|| text(error, ContextKind::InvalidArg));
    let is_near = |word: &String| {
        typed
            .as_ref()
            .is_none_or(|typed| levenshtein(typed, word) <= 2)
    };
    words.find(|word| !DANGEROUS.contains(&word.as_str()) && is_near(word))
}

fn source(error: &clap::Error) -> Option<String> {
    let source = std::error::Error::source(error)?;
    Some(match source.is::<ParseIntError>() {
        true => "use a whole number".to_owned(),
        false => {
            let text = source.to_string();
            // The largest number of its type is of no use to people.
            let from = text.split_once(" is not in ").and_then(|(_, range)| {
                let (from, to) = range.split_once("..")?;
                let to = to.trim_start_matches('=').parse().unwrap_or(u64::MAX);
                (to >= u64::from(u32::MAX)).then_some(from)
            });
            from.map(|from| format!("use {from} or more"))
                .unwrap_or(text)
        }
    })
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Returns the parser's words as one line, without its usage and its tips.
fn folded(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    lines.join(" ")
}
