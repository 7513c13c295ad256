//! Rewords command-line errors: the problem in one line, the help in another.

use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use strsim::levenshtein;

use super::{
    corrected::{TypedLine, as_command},
    early_format::EarlyFormat,
    synonyms::{answer, answer_option},
};
use crate::{
    commands::{Command, guide::Guide},
    exit::CommandError,
    suggest::Hint,
};

/// Commands that end claims or jobs, or run commands: a typing error never suggests one.
const DANGEROUS: [&str; 6] = ["abandon", "apply", "conduct", "consume", "purge", "trash"];

pub(crate) fn misuse(
    error: &clap::Error,
    early: &EarlyFormat,
    words: &[String],
) -> Option<CommandError> {
    let typed = TypedLine::of(early, words);
    let words = words.split(|word| word == "--").next().unwrap_or_default();
    let grammar = early.command.as_deref().and_then(Command::named);
    // An alias has the answers of its command.
    let command = grammar.map(|grammar| grammar().get_name().to_owned());
    let command = command.as_deref();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let message = match (error.kind(), source(error)) {
        (ErrorKind::InvalidSubcommand, _) => match text(error, ContextKind::InvalidSubcommand) {
            Some(word) => format!("unknown command `{word}`"),
            None => folded(error),
        },
        (ErrorKind::MissingSubcommand, _) => "no command given".to_owned(),
        (ErrorKind::ValueValidation, Some(reason)) => of_value(error, &reason),
        (ErrorKind::MissingRequiredArgument, _) => missing(error, command, words),
        (ErrorKind::UnknownArgument, _) => negative(error, words).unwrap_or_else(|| folded(error)),
        (ErrorKind::InvalidValue, _) if is_short_format(&argument, words) => {
            folded(error).replacen("--format", "-o", 1)
        }
        _ => folded(error),
    };
    let hint = typed.as_ref().and_then(|it| corrected(error, it));
    if let Some(hint) = hint.or_else(|| guessed(error, command?, words)) {
        return Some(CommandError::usage(message).hint(hint));
    }
    // The message says which value or option fits.
    if matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::ArgumentConflict
    ) || negative(error, words).is_some()
        || message.contains(" needs --")
    {
        return Some(CommandError::usage(message));
    }
    let next = early.unknown.as_ref().and_then(|(_, next)| next.as_deref());
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(word) = text(error, ContextKind::InvalidSubcommand)
        && let Some(hint) = answer(&word, next)
    {
        return Some(CommandError::usage(message).hint(hint));
    }
    let hint = general(error, command, typed.as_ref());
    Some(CommandError::usage(message).hint(hint))
}

fn general(error: &clap::Error, command: Option<&str>, typed: Option<&TypedLine>) -> Hint {
    let word = suggestion(error);
    if let (None, Some(hint)) = (&word, typed.and_then(TypedLine::with_dashes)) {
        return hint;
    }
    match (word.as_deref(), command) {
        (None, None) => "`jobboard help` lists the commands".into(),
        (None, Some(command)) => match example(error, command) {
            Some(words) => Hint::new(
                "for example `jobboard {}`; `jobboard help {}` lists the options",
                [&words, &[command]],
            ),
            None => Hint::new("`jobboard help {}` lists the options", [&[command]]),
        },
        (Some(word), None) => Hint::new(
            "did you mean `{}`? `jobboard help` lists the commands",
            [&[word]],
        ),
        (Some(word), Some(command)) => Hint::new(
            "did you mean `{}`? `jobboard help {}` lists the options",
            [&[word], &[command]],
        ),
    }
}

fn corrected(error: &clap::Error, typed: &TypedLine) -> Option<Hint> {
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            typed.with_dashes().or_else(|| typed.with_dashed_name())
        }
        // `tail -f` and others: the general answers to these options are unlikely to fit.
        ErrorKind::UnknownArgument => {
            let option = text(error, ContextKind::InvalidArg)?;
            let dashes = typed.with_dashes();
            let dashes = dashes.filter(|_| ["-b", "-f", "-w"].contains(&&*option));
            dashes.or_else(|| typed.with_joined_value(&option))
        }
        _ => None,
    }
}

fn example(error: &clap::Error, command: &str) -> Option<Vec<&'static str>> {
    let is_plain = |it: char| it.is_alphanumeric() || " -_./:=@".contains(it);
    let lines = Guide::of(command).examples.into_iter().map(|it| it.line);
    let mut lines = lines.filter_map(|line| line.strip_prefix("jobboard "));
    // The file of an example does not exist.
    let is_missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.iter().all(|it| !it.contains("FILE")),
        _ => false,
    };
    let line = lines.find(|line| line.chars().all(is_plain) && line.starts_with(command));
    let is_needed = error.kind() == ErrorKind::MissingRequiredArgument;
    line.filter(|_| is_needed && is_missing)
        .map(|line| line.split(' ').collect())
}

/// Answers a value or an option that people guess, or a command line without its `--`.
fn guessed(error: &clap::Error, command: &str, words: &[String]) -> Option<Hint> {
    let word = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let argument = word.split([' ', '=']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let value = words.iter().skip_while(|word| *word != argument).nth(1);
            match argument.starts_with('-') {
                true => answer_option(command, argument, value.map(String::as_str)),
                false => answer_option(command, "WORD", Some(&format!("name={word}"))),
            }
        }
        ErrorKind::ValueValidation if argument == "--filter" => {
            Some("`jobboard help filters` explains filters".into())
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let value = text(error, ContextKind::InvalidValue)?;
            let value = value.to_lowercase();
            let answer = |name| answer_option(command, &format!("{name}={value}"), None);
            let short = is_short_format(argument, words).then(|| answer("-o"));
            short.flatten().or_else(|| answer(argument))
        }
        ErrorKind::MissingRequiredArgument if command == "run" => {
            let name = words.iter().skip_while(|word| *word != command).nth(1)?;
            let line = as_command(name);
            Some(match line.as_slice() {
                [_] => Hint::new(
                    "`jobboard run {} -- COMMAND` runs COMMAND as a job named {}",
                    [&[name], &[name]],
                ),
                line => {
                    let program = name.split_whitespace().next().unwrap_or_default();
                    Hint::new("`jobboard run {} -- {}`", [&[program], line])
                }
            })
        }
        _ => None,
    }
}

fn is_short_format(argument: &str, words: &[String]) -> bool {
    argument.starts_with("--format") && !words.iter().any(|it| it.starts_with("--format"))
}

fn missing(error: &clap::Error, command: Option<&str>, words: &[String]) -> String {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.join(", "),
        _ => return folded(error),
    };
    let grammar = command.and_then(Command::named).map(|grammar| grammar());
    let options: Vec<_> = grammar
        .iter()
        .flat_map(clap::Command::get_arguments)
        .collect();
    let name = |it: &clap::Arg| it.get_long().map(|long| format!("--{long}"));
    let is = |it: &clap::Arg, word: &str| {
        name(it).is_some_and(|it| word.split(['=', ' ']).next() == Some(&it))
    };
    let is_always_needed = options
        .iter()
        .any(|it| is(it, &missing) && it.is_required_set());
    let mut typed = options
        .iter()
        .filter(|it| words.iter().any(|word| is(it, word)));
    let has_it_in_help = |it: &clap::Arg| {
        let word = missing.split(' ').next().unwrap_or_default();
        it.get_help()
            .is_some_and(|help| help.to_string().starts_with(&format!("With {word}:")))
    };
    let needs = typed
        .clone()
        .find(|it| has_it_in_help(it))
        .or_else(|| typed.next_back());
    match needs.and_then(|it| name(it)) {
        Some(option) if missing.starts_with("--") && !is_always_needed => {
            format!("{option} needs {missing}")
        }
        _ if missing.starts_with("--") => format!("{missing} is missing"),
        _ => {
            let names = missing
                .replace("...", "")
                .replace(['<', '>'], "")
                .replace("|-", " or -");
            let is = if names.contains(", ") { "are" } else { "is" };
            format!("{} {is} missing", names.replace(", ", " and "))
        }
    }
}

/// Explains a negative number or duration, which looks like an option.
fn negative(error: &clap::Error, words: &[String]) -> Option<String> {
    let value = text(error, ContextKind::InvalidArg)?;
    let digits = value
        .strip_prefix('-')
        .filter(|it| it.starts_with(|it: char| it.is_ascii_digit()))?;
    let at = words.iter().position(|word| word.starts_with(&value))?;
    let (option, value) = (words.get(at.checked_sub(1)?)?, words.get(at)?);
    let wanted = match digits.ends_with(|it: char| it.is_ascii_digit()) && value.ends_with(digits) {
        true => "a number, 0 or more",
        false => "a duration, 0s or more",
    };
    option
        .starts_with('-')
        .then(|| format!("{option}: invalid value `{value}`: use {wanted}"))
}

fn of_value(error: &clap::Error, reason: &str) -> String {
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let argument = argument.split(' ').next().unwrap_or_default();
    // The reason may name the part before a `=`.
    let part = value.split('=').next().unwrap_or_default();
    match [&*value, part]
        .iter()
        .any(|it| reason.contains(&format!("`{it}`")))
    {
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
    Some(match source.downcast_ref().map(ParseIntError::kind) {
        Some(IntErrorKind::Zero) => "use 1 or more".to_owned(),
        Some(_) => "use a whole number, 0 or more".to_owned(),
        None => {
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

fn folded(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
    lines.join(" ")
}
