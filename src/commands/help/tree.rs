//! The grammar for programs: commands and their arguments.

use clap::{Arg, ArgAction, Command, CommandFactory};
use serde::Serialize;

use super::{
    Subject, TOPICS, Topic,
    guide::{Example, ExitCode, Guide, PROGRAM, description},
    prose,
};
use crate::{
    commands::Cli,
    output::{Output, Page, Record, Report},
};

#[derive(Debug, Serialize)]
pub(crate) struct Program {
    name: &'static str,
    version: &'static str,
    about: String,
    examples: Vec<Example>,
    exit_codes: Vec<ExitCode>,
    /// The options of every command, before or after its name.
    global_options: Vec<Argument>,
    commands: Vec<Told>,
    topics: Vec<TopicName>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Told {
    name: String,
    aliases: Vec<String>,
    about: String,
    description: Option<String>,
    usage: String,
    examples: Vec<Example>,
    exit_codes: Vec<ExitCode>,
    /// Positional arguments in order.
    arguments: Vec<Argument>,
    options: Vec<Argument>,
    see_also: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Argument {
    /// Without `--`; null for a positional argument.
    long: Option<String>,
    short: Option<char>,
    /// Null if it takes no value.
    value_name: Option<String>,
    takes_value: bool,
    /// Whether it may be repeated, or takes several values.
    several: bool,
    required: bool,
    /// The closed list of values, if there is one.
    possible_values: Vec<Value>,
    default: Option<String>,
    env: Option<String>,
    help: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Value {
    name: String,
    help: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TopicName {
    name: &'static str,
    about: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct TopicText {
    name: &'static str,
    about: &'static str,
    /// In Markdown.
    text: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct GlobalOptions {
    global_options: Vec<Argument>,
}

/// Output for programs only.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Document<T: Serialize>(T);

impl<T: Serialize> Record for Document<T> {
    fn fields(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<T: Serialize> Report for Document<T> {
    fn human(&self, _: &mut Page) {}
}

pub(super) fn tell(out: &mut Output, subject: &Subject) -> anyhow::Result<()> {
    let mut grammar = Cli::command();
    let globals = arguments(grammar.get_arguments());
    grammar.build();
    match subject {
        Subject::Program => out.report(&Document(program(&grammar, globals))),
        Subject::Command(name) => {
            let command = grammar.find_subcommand(name).map(command);
            out.report(&Document(command))
        }
        Subject::Options => out.report(&Document(GlobalOptions {
            global_options: globals,
        })),
        Subject::Topic(topic) => out.report(&Document(TopicText {
            name: topic.name,
            about: prose::title(topic.text).1,
            text: topic.text,
        })),
    }
}

fn program(grammar: &Command, global_options: Vec<Argument>) -> Program {
    let guide = Guide::of(PROGRAM);
    Program {
        name: PROGRAM,
        version: env!("CARGO_PKG_VERSION"),
        about: about(grammar),
        examples: guide.examples,
        exit_codes: guide.codes,
        global_options,
        commands: grammar.get_subcommands().map(command).collect(),
        topics: TOPICS.iter().map(topic_name).collect(),
    }
}

fn topic_name(topic: &Topic) -> TopicName {
    TopicName {
        name: topic.name,
        about: prose::title(topic.text).1,
    }
}

fn command(command: &Command) -> Told {
    let guide = Guide::of(command.get_name());
    let usage = command.clone().render_usage().to_string();
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set();
    Told {
        name: command.get_name().to_owned(),
        aliases: command.get_visible_aliases().map(str::to_owned).collect(),
        about: about(command),
        description: description(command),
        usage: usage.trim_start_matches("Usage: ").to_owned(),
        examples: guide.examples,
        exit_codes: guide.codes,
        arguments: arguments(command.get_positionals().filter(own)),
        options: arguments(
            command
                .get_arguments()
                .filter(own)
                .filter(|arg| !arg.is_positional()),
        ),
        see_also: guide.related,
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn arguments<'a>(arguments: impl Iterator<Item = &'a Arg>) -> Vec<Argument> {
    arguments.map(argument).collect()
}

fn argument(arg: &Arg) -> Argument {
    let takes_value = arg.get_action().takes_values();
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let names = arg.get_value_names().filter(|_| takes_value);
    let default = arg.get_default_values().first().filter(|_| takes_value);
    let values = arg
        .get_possible_values()
        .into_iter()
        .filter(|_| takes_value);
    let many = arg
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1);
    Argument {
        long: arg.get_long().map(str::to_owned),
        short: arg.get_short(),
        value_name: names.map(|names| names.join(" ")),
        takes_value,
        several: many || matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        required: arg.is_required_set(),
        possible_values: values
            .filter(|value| !value.is_hide_set())
            .map(|value| Value {
                name: value.get_name().to_owned(),
                help: value.get_help().map(ToString::to_string),
            })
            .collect(),
        default: default.map(|value| value.to_string_lossy().into_owned()),
        env: variable(&help),
        help,
    }
}

fn variable(help: &str) -> Option<String> {
    const PREFIX: &str = "JOBBOARD_";
    let mut words = help.split(|letter: char| letter != '_' && !letter.is_ascii_uppercase());
    let named = words.find(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX));
    named.map(str::to_owned)
}
