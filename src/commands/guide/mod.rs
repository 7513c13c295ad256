//! Examples, exit codes and pointers in the help of commands.

use std::fmt::Write as _;

use clap::{
    Command, CommandFactory,
    builder::{Resettable, StyledStr, styling::Style},
};
use serde::Serialize;

use crate::{commands::Cli, suggest::Hint};

/// For each command: examples (`$`), exit codes, rarely used options (`-`), related pages (`@`), and for the program
/// groups of commands (`=`).
///
/// A line of bare codes takes their meanings from the table of all exit codes.
const GUIDES: &str = include_str!("commands.txt");

/// The page of the topic, with the table of all exit codes.
pub(super) const EXIT_CODES: &str = include_str!("../../../docs/exit-codes.md");

pub(super) const PROGRAM: &str = "jobboard";

#[derive(Debug, Serialize)]
pub(super) struct GuideExample {
    pub(super) line: &'static str,
    pub(super) about: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct ExitCode {
    /// The code, or `else` for the exit code of the command that it runs.
    pub(super) code: &'static str,
    pub(super) meaning: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Guide {
    pub(super) examples: Vec<GuideExample>,
    pub(super) codes: Vec<ExitCode>,
    pub(super) related: Vec<&'static str>,
    advanced: Vec<&'static str>,
    groups: Vec<&'static str>,
}

impl Guide {
    pub(super) fn of(command: &str) -> Self {
        let mut guide = Self::default();
        let entry = GUIDES.split("\n\n").find_map(|entry| {
            let entry = entry.strip_prefix('[')?.strip_prefix(command)?;
            entry.strip_prefix("]\n")
        });
        for line in entry.unwrap_or_default().lines() {
            if line.starts_with('=') || !guide.groups.is_empty() {
                guide.groups.push(line);
                continue;
            }
            match line.split_once(' ') {
                Some(("$", example)) => {
                    let (line, about) = example.split_once("  ").unwrap_or((example, ""));
                    let about = Some(about.trim_start()).filter(|about| !about.is_empty());
                    guide.examples.push(GuideExample { line, about });
                }
                Some(("-", options)) => guide.advanced.extend(options.split(' ')),
                Some(("@", names)) => guide.related.extend(names.split(' ')),
                Some((code, meaning)) if meaning.contains(char::is_alphabetic) => {
                    guide.codes.push(ExitCode { code, meaning });
                }
                _ => guide.codes.extend(line.split(' ').map(default_exit_code)),
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
        for GuideExample { line, about } in &self.examples {
            let _ = match about {
                Some(about) => write!(shown, "\n  {line:width$}   {about}"),
                None => write!(shown, "\n  {line}"),
            };
        }
        shown
    }

    fn groups(&self, header: Style) -> String {
        let mut shown = String::new();
        for row in &self.groups {
            let _ = match row.strip_prefix("= ") {
                Some(heading) => writeln!(shown, "{header}{heading}:{header:#}"),
                None => writeln!(shown, "  {row}"),
            };
        }
        shown
    }

    /// Lists 0 and each code with a special meaning for the command.
    fn codes(&self, header: Style) -> String {
        let mut shown = format!("{header}Exit codes:{header:#}");
        for ExitCode { code, meaning } in &self.codes {
            if *code == "0" || default_exit_code(code).meaning != *meaning {
                let _ = write!(shown, "\n  {code:4} {meaning}");
            }
        }
        shown + "\n  Others: `jobboard help exit-codes`"
    }
}

fn default_exit_code(code: &'static str) -> ExitCode {
    let meaning = EXIT_CODES.lines().find_map(|line| {
        let (codes, meaning) = line.strip_prefix("| ")?.split_once(" | ")?;
        let is_it = codes.split(", ").any(|it| it == code);
        is_it.then(|| meaning.trim_end_matches([' ', '|']))
    });
    let meaning = meaning.unwrap_or_default();
    ExitCode { code, meaning }
}

pub(crate) fn grammar() -> Command {
    Cli::command()
        .mut_args(|arg| arg.hide_short_help(true).hide_long_help(true))
        .mut_subcommands(|command| command.defer(describe))
        .defer(describe)
}

fn describe(command: Command) -> Command {
    let guide = Guide::of(command.get_name());
    let header = *command.get_styles().get_header();
    let about = command.get_about().cloned().unwrap_or_default();
    let rest = description(&command).map(StyledStr::from);
    let name = command.get_name().to_owned();
    let command = command
        .before_help(guide.examples(header))
        .about(Resettable::Reset);
    if name == PROGRAM {
        return command.help_template(format!(
            "{about}\n\n{{before-help}}{{usage-heading}} {{usage}}\n\n{}\n{POINTERS}",
            guide.groups(header)
        ));
    }
    let codes = guide.codes(header);
    command
        .mut_args(|arg| {
            let values = arg.get_possible_values().len();
            let arg = arg.hide_possible_values(values > MAX_VALUES);
            match arg
                .get_long()
                .is_some_and(|it| guide.advanced.contains(&it))
            {
                true => arg.hide_short_help(true).help_heading("Advanced"),
                false => arg,
            }
        })
        .after_help(
            Hint::new(
                "All options, details and exit codes: `jobboard {} --help`",
                [&[&name]],
            )
            .to_string(),
        )
        .after_long_help(format!(
            "{codes}\n\nGlobal options (--board, --who, --json, …): `jobboard help options`"
        ))
        .long_about(Resettable::from(rest))
        .help_template(format!(
            "{about}\n\n{{before-help}}{{usage-heading}} {{usage}}\n{{about-section}}\n\
             {{all-args}}{{after-help}}"
        ))
}

/// The help of an option lists its values only up to this number. Longer lists are described in its text.
const MAX_VALUES: usize = 8;

const POINTERS: &str = "\
More: `jobboard COMMAND -h`, and `jobboard help COMMAND` (or TOPIC, or CODE). Topics: boards,
conducting, exit-codes, filters, guarantees, octavia, options, output, scripting, troubleshooting
";

pub(super) fn description(command: &Command) -> Option<String> {
    let long = command.get_long_about()?.to_string();
    let (_, rest) = long.split_once("\n\n")?;
    Some(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{help::TOPICS, tests::grammars_agree};

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
        each(|name, guide| {
            let command = program.find_subcommand(name).unwrap_or(&program);
            for option in &guide.advanced {
                let mut options = command.get_arguments();
                let is_known = options.any(|arg| arg.get_long() == Some(option));
                assert!(is_known, "{name}: --{option}");
            }
        });
        let guides = GUIDES.split("\n\n").count();
        assert_eq!(guides, Cli::command().get_subcommands().count() + 1);
    }

    #[test]
    fn each_exit_code_is_known() {
        each(|name, guide| {
            for ExitCode { code, meaning } in &guide.codes {
                assert!(!meaning.is_empty(), "{name} {code}");
                let is_known = *code == "else" || !default_exit_code(code).meaning.is_empty();
                assert!(is_known, "{name} {code}");
            }
        });
    }

    #[test]
    fn related_words_are_commands_or_topics() {
        let program = Cli::command();
        each(|name, guide| {
            for other in &guide.related {
                let is_known = program.find_subcommand(other).is_some()
                    || TOPICS.iter().any(|topic| topic.name == *other);
                assert!(is_known && *other != name, "{name}: {other}");
            }
        });
    }

    /// Splits a line as a shell does, at its pipes, too.
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
    fn each_example_parses() {
        let whole = grammar();
        each(|name, guide| {
            for GuideExample { line, .. } in &guide.examples {
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
    fn each_command_is_in_one_group_of_a_short_screen() {
        let rows = Guide::of(PROGRAM).groups;
        let rows = rows.iter().filter(|row| !row.starts_with('='));
        let names = rows.flat_map(|row| row.split("  ").next().unwrap().split(", "));
        let mut grouped: Vec<_> = names.collect();
        let program = Cli::command();
        let mut commands: Vec<_> = program.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands);
        let shown = shown(PROGRAM, "--help");
        assert!(shown.lines().count() <= 40, "{shown}");
        assert!(shown.lines().all(|line| line.len() <= 100), "{shown}");
    }

    fn shown(command: &str, flag: &str) -> String {
        let words = [command, flag].into_iter().filter(|it| *it != PROGRAM);
        let words = [PROGRAM].into_iter().chain(words);
        let shown = grammar().try_get_matches_from(words).unwrap_err();
        shown.render().to_string()
    }

    #[test]
    fn short_help_fits_a_screen_and_points_to_the_long_one() {
        each(|name, _| {
            let shown = shown(name, "-h");
            assert!(shown.lines().count() <= 40, "{shown}");
            assert!(shown.contains("help"), "{shown}");
        });
    }

    #[test]
    fn help_begins_with_examples_and_ends_with_codes() {
        each(|name, _| {
            if name == PROGRAM {
                return;
            }
            let shown = shown(name, "--help");
            let mut lines = shown.lines().skip(1);
            assert_eq!(lines.next(), Some(""), "{shown}");
            assert_eq!(lines.next(), Some("Examples:"), "{shown}");
            assert!(lines.any(|line| line == "Exit codes:"), "{shown}");
            let left: Vec<_> = lines.collect();
            assert!(left[0].starts_with("  0    "), "{shown}");
            let is_last = |line: &&str| line.starts_with("  Others: `jobboard help exit-codes`");
            assert!(left.iter().any(is_last), "{shown}");
            assert!(
                left.last().unwrap().starts_with("Global options ("),
                "{shown}"
            );
            assert!(!shown.contains("--op-timeout"), "{shown}");
            assert!(!shown.contains("\n\n\n"), "{shown}");
        });
    }
}
