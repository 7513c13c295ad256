//! The grammar for programs: commands and their arguments.

use clap::{Arg, ArgAction, Command, CommandFactory};
use serde_json::{Value, json};

use super::{HelpSubject, TOPICS, Topic, prose};
use crate::{
    commands::{
        Cli,
        guide::{Guide, PROGRAM, description},
    },
    output::Output,
};

pub(super) fn print(out: &mut Output, subject: &HelpSubject) -> anyhow::Result<()> {
    let mut grammar = Cli::command();
    let global_options = arguments(grammar.get_arguments());
    grammar.build();
    let document: Value = match subject {
        HelpSubject::Program => program(&grammar, &global_options),
        HelpSubject::Command(name) => grammar.find_subcommand(name).map(command).into(),
        HelpSubject::Options => json!({ "global_options": global_options }),
        HelpSubject::Topic(topic) => {
            let mut shown = title(topic);
            shown["text"] = topic.text.into();
            shown
        }
    };
    out.sentences(&[], &document)
}

fn program(grammar: &Command, global_options: &Value) -> Value {
    let guide = Guide::of(PROGRAM);
    json!({
        "name": PROGRAM,
        "version": env!("CARGO_PKG_VERSION"),
        "about": about(grammar),
        "examples": guide.examples,
        "exit_codes": guide.codes,
        "global_options": global_options,
        "commands": grammar.get_subcommands().map(command).collect::<Value>(),
        "topics": TOPICS.iter().map(title).collect::<Value>(),
    })
}

fn title(topic: &Topic) -> Value {
    json!({ "name": topic.name, "about": prose::title(topic.text).1 })
}

fn command(command: &Command) -> Value {
    let guide = Guide::of(command.get_name());
    let usage = command.clone().render_usage().to_string();
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set();
    let options = command.get_arguments().filter(own);
    json!({
        "name": command.get_name(),
        "aliases": command.get_visible_aliases().collect::<Value>(),
        "about": about(command),
        "description": description(command),
        "usage": usage.trim_start_matches("Usage: "),
        "examples": guide.examples,
        "exit_codes": guide.codes,
        "arguments": arguments(command.get_positionals().filter(own)),
        "options": arguments(options.filter(|arg| !arg.is_positional())),
        "see_also": guide.related,
    })
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn arguments<'a>(arguments: impl Iterator<Item = &'a Arg>) -> Value {
    arguments.map(argument).collect()
}

fn argument(arg: &Arg) -> Value {
    let takes_value = arg.get_action().takes_values();
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let names = arg.get_value_names().filter(|_| takes_value);
    let default = arg.get_default_values().first().filter(|_| takes_value);
    let values = arg
        .get_possible_values()
        .into_iter()
        .filter(|_| takes_value);
    let values = values.filter(|value| !value.is_hide_set());
    let takes_many = arg
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1);
    let repeats = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
    json!({
        "long": arg.get_long(),
        "short": arg.get_short(),
        "value_name": names.map(|names| names.join(" ")),
        "takes_value": takes_value,
        "several": takes_many || repeats,
        "required": arg.is_required_set(),
        "possible_values": values.map(|value| json!({
            "name": value.get_name(),
            "help": value.get_help().map(ToString::to_string),
        })).collect::<Value>(),
        "default": default.map(|value| value.to_string_lossy()),
        "env": variable(&help),
        "help": help,
    })
}

fn variable(help: &str) -> Option<String> {
    let (_, name) = help.split_once("[env: ")?;
    name.split_once(']').map(|(name, _)| name.to_owned())
}
