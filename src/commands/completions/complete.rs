//! Completes option values and arguments.
//!
//! A shell asks at every key press, so errors are silent and answers quick.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, Write as _},
};

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use super::ask::{BoardValue, JobRange, ask, is_harmless, typed_flags, typed_words};
use crate::{
    board::{
        EventKind,
        filter::{FieldPath, OPERATOR_CHARS},
    },
    commands::{
        Cli,
        help::{OPTIONS, TOPICS},
        schema::SCHEMAS,
    },
    config::{Config, Environment},
    job::{Outcome, Priority, State},
};

/// The variable that the scripts set. Its value is the name of the shell, and the words follow a `--`.
const REQUEST: &str = "COMPLETE";

/// Answers a shell's request; returns `false` without one.
pub(crate) fn answer_shell() -> bool {
    let shell = env::var(REQUEST).unwrap_or_default();
    let is_request = env::args_os().nth(1).is_some_and(|word| word == "--");
    if !is_request || !["bash", "fish", "zsh"].contains(&&*shell) {
        return false;
    }
    // One line for each value: the value, a tab and the description.
    let lines = candidates().into_iter().map(|it| {
        let help = it.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        format!("{}\t{help}\n", it.get_value().to_string_lossy())
    });
    // A shell that is gone needs no answer.
    let _ = io::stdout().write_all(lines.collect::<String>().as_bytes());
    true
}

fn candidates() -> Vec<CompletionCandidate> {
    let words: Vec<_> = typed_words().into_iter().map(OsString::from).collect();
    let Some((last, before)) = words.split_last() else {
        return Vec::new();
    };
    // Another program's command line follows `--`.
    if before.iter().any(|word| word == "--") {
        return Vec::new();
    }
    let (at, is_begun) = (before.len(), !last.is_empty());
    let here = env::current_dir().ok();
    let mut found = complete(&mut grammar(), words, at, here.as_deref()).unwrap_or_default();
    let is_option = |it: &CompletionCandidate| {
        let value = it.get_value().as_encoded_bytes();
        value.starts_with(b"-")
    };
    // Offers options after a `-`, or without other candidates.
    if !is_begun && !found.iter().all(is_option) {
        found.retain(|it| !is_option(it));
    }
    found
}

fn grammar() -> Command {
    let program = Cli::command().mut_args(|arg| completed("", arg));
    program.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| completed(&name, arg))
    })
}

#[derive(Debug, Clone)]
enum ArgumentValue {
    /// One of these words, with an optional one of these prefixes.
    Word(Vec<String>, &'static [char]),
    Filter,
    Board,
    OnBoard(BoardValue),
}

/// Sets the completer of an argument, by the name of its value.
fn completed(command: &str, arg: Arg) -> Arg {
    let id = arg.get_id().as_str();
    let names = arg.get_value_names().unwrap_or_default();
    let value = match (command, names.first().map_or(id, |name| name.as_str()), id) {
        (_, "EXPR", _) => ArgumentValue::Filter,
        (_, "STATE", _) => ArgumentValue::of_field("state"),
        (_, "PRIORITY", _) => ArgumentValue::of_field("priority"),
        ("watch", _, "event") => ArgumentValue::words(EventKind::ALL.iter().map(|it| it.name())),
        ("schema", _, "name") => ArgumentValue::words(SCHEMAS.iter().map(|it| it.0)),
        ("help", _, "about") => {
            let topics = TOPICS.iter().map(|topic| -> &str { topic.name });
            let program = Cli::command();
            let commands = program.get_subcommands().map(Command::get_name);
            ArgumentValue::words(commands.chain(topics).chain([OPTIONS]))
        }
        (_, "URL|NAME", _) => ArgumentValue::Board,
        (_, "JOB" | "job", _) => ArgumentValue::OnBoard(BoardValue::Job(JobRange::of(command))),
        (_, "NAME", "who" | "owner") => ArgumentValue::OnBoard(BoardValue::Owner),
        ("conductors", _, "name") => ArgumentValue::OnBoard(BoardValue::Conductor),
        (_, "GLOB", "name" | "with_name") | ("pause", "NAME-GLOB", _) => {
            ArgumentValue::OnBoard(BoardValue::Name)
        }
        ("resume", "NAME-GLOB", _) => ArgumentValue::OnBoard(BoardValue::Pause),
        (_, "FILE" | "FILE|-", _) => return arg.value_hint(ValueHint::AnyPath),
        _ if arg.is_allow_hyphen_values_set() => {
            let words = arg.get_possible_values().into_iter();
            let words = words.map(|word| word.get_name().to_owned()).collect();
            ArgumentValue::Word(words, &['+', '-'])
        }
        _ => return arg,
    };
    let complete = move |typed: &OsStr| value.complete(&typed.to_string_lossy());
    arg.add(ArgValueCompleter::new(complete))
}

impl ArgumentValue {
    fn words<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        Self::Word(words.map(str::to_owned).collect(), &[])
    }

    fn of_field(name: &str) -> Self {
        match name {
            "state" => Self::words(State::ALL.iter().map(|it| it.name())),
            "priority" => Self::words(Priority::ALL.iter().map(|it| it.name())),
            "outcome" => Self::words(Outcome::ALL.iter().map(|it| it.name())),
            "name" => Self::OnBoard(BoardValue::Name),
            "owner" => Self::OnBoard(BoardValue::Owner),
            _ => Self::words([].into_iter()),
        }
    }

    fn complete(&self, typed: &str) -> Vec<CompletionCandidate> {
        match self {
            Self::Word(words, signs) => {
                let begin = typed.trim_start_matches(*signs);
                let sign = &typed[..typed.len() - begin.len()];
                let is_meant =
                    |word: &&String| word.to_lowercase().starts_with(&begin.to_lowercase());
                let words = words.iter().filter(is_meant);
                words
                    .map(|word| CompletionCandidate::new(format!("{sign}{word}")))
                    .collect()
            }
            Self::Filter => of_filter(typed),
            Self::Board => {
                let names = Config::board_names(&typed_flags(), &Environment::of_process());
                let names = names.unwrap_or_default().into_iter();
                names
                    .filter(|name| name.starts_with(typed) && is_harmless(name))
                    .map(CompletionCandidate::new)
                    .collect()
            }
            Self::OnBoard(wanted) => ask(*wanted, typed),
        }
    }
}

/// Completes the last comparison of a filter: its field, its operator or its value.
fn of_filter(typed: &str) -> Vec<CompletionCandidate> {
    const AND: &str = " and ";
    let start = typed.to_ascii_lowercase().rfind(AND);
    let last = &typed[start.map_or(0, |at| at + AND.len())..];
    let (field, rest) = last.split_at(last.find(OPERATOR_CHARS).unwrap_or(last.len()));
    let value = rest.trim_start_matches(OPERATOR_CHARS);
    let operator = &rest[..rest.len() - value.len()];
    let before = |text: &str| &typed[..typed.len() - text.len()];
    if operator.is_empty() {
        let (field, names) = (field.trim_start(), FieldPath::names().into_iter());
        let fields: Vec<_> = names.filter(|name| name.starts_with(field)).collect();
        let most = if fields.len() == 1 { usize::MAX } else { 1 };
        let comparisons = fields.into_iter().flat_map(|name| {
            let operators = operators(name).into_iter().take(most);
            operators.map(move |operator| format!("{}{name}{operator}", before(field)))
        });
        return comparisons.map(CompletionCandidate::new).collect();
    }
    let operators = operators(field.trim());
    let mut found = Vec::new();
    if value.is_empty() {
        let longer = operators.iter().filter_map(|it| it.strip_prefix(operator));
        let longer = longer.filter(|more| !more.is_empty());
        found.extend(longer.map(|more| CompletionCandidate::new(format!("{typed}{more}"))));
    }
    if operators.contains(&operator) {
        let value = value.trim_start();
        let values = ArgumentValue::of_field(field.trim())
            .complete(value)
            .into_iter();
        found.extend(values.map(|it| it.add_prefix(before(value))));
    }
    found
}

fn operators(field: &str) -> Vec<&'static str> {
    match FieldPath::read(field) {
        Ok(FieldPath::Details(_)) => vec!["."],
        Ok(known) => known.operators(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_is_completed_at_its_end() {
        for (typed, expected) in [
            ("sta", "state= state!= state~ state!~"),
            ("st", "state= state!= state~ state!~"),
            ("a", "age>= attempts= action= amphora="),
            ("det", "details."),
            ("held", "held>= held= held!= held< held<= held>"),
            ("state=un", "state=UNCLAIMED"),
            ("state = un", "state = UNCLAIMED"),
            ("state!", "state!= state!~"),
            ("priority>=ve", "priority>=VERY_HIGH priority>=VERY_LOW"),
            (
                "held>1h and out",
                "held>1h and outcome= held>1h and outcome!= held>1h and outcome~ held>1h and outcome!~",
            ),
            ("held>1h AND outcome=c", "held>1h AND outcome=consumed"),
            ("held>1h an", ""),
            ("colour=r", ""),
            ("colour", ""),
        ] {
            let found = of_filter(typed).into_iter();
            let found: Vec<_> = found
                .map(|it| it.get_value().to_string_lossy().into_owned())
                .collect();
            assert_eq!(found.join(" "), expected, "{typed}");
        }
    }

    #[test]
    fn every_filter_and_reference_argument_has_completion() {
        let mut seen = 0;
        for command in grammar().get_subcommands() {
            for arg in command.get_arguments() {
                let is_number = arg.get_short() == Some('j');
                if ["filter", "state", "jobs", "job"].contains(&arg.get_id().as_str()) && !is_number
                {
                    let completer = arg.get::<ArgValueCompleter>();
                    assert!(completer.is_some(), "{}: {arg}", command.get_name());
                    seen += 1;
                }
            }
        }
        assert!(seen > 30, "{seen}");
    }
}
