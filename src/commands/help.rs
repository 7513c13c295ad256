//! `jobboard help`: the help of commands and of topics.

pub(super) mod prose;
mod tree;

use std::io;

use clap::{Command, CommandFactory, builder::StyledStr};
use strsim::levenshtein;

use super::{
    Cli,
    guide::{EXIT_CODES, PROGRAM, grammar},
    typing::synonyms,
};
use crate::{
    exit::CommandError,
    output::{Output, size_of},
    suggest::Hint,
};

const MAX_WIDTH: usize = 100;

/// The topic that is made from the grammar.
pub(super) const OPTIONS: &str = "options";

const TROUBLESHOOTING: &str = include_str!("../../docs/troubleshooting.md");

#[derive(Clone, Copy)]
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

pub(super) const TOPICS: [Topic; 9] = [
    topic("boards", include_str!("../../docs/boards.md")),
    topic("filters", include_str!("../../docs/filters.md")),
    topic("output", include_str!("../../docs/output.md")),
    topic("scripting", include_str!("../../docs/scripting.md")),
    topic("exit-codes", EXIT_CODES),
    topic("troubleshooting", TROUBLESHOOTING),
    topic("conducting", include_str!("../../docs/conducting.md")),
    topic("guarantees", include_str!("../../docs/guarantees.md")),
    topic("octavia", include_str!("../../docs/octavia.md")),
];

const fn topic(name: &'static str, text: &'static str) -> Topic {
    Topic { name, text }
}

/// Print help for a command, a topic or a code
///
/// Topics: boards, filters, output, scripting, exit-codes, troubleshooting, conducting, guarantees, octavia, and
/// options (the options of every command). The codes are those of `doctor` and `explain`, for example owner-dead.
/// With --json, prints everything as one object: commands, arguments, options, values, examples and exit codes.
#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// Command, topic or code
    #[arg(value_name = "COMMAND|TOPIC|CODE")]
    about: Option<String>,
}

enum HelpSubject<'a> {
    Program,
    Command(&'a str),
    Options,
    Topic(Topic),
}

pub(crate) fn run(out: &mut Output, args: &HelpArgs) -> anyhow::Result<()> {
    let subject = subject(args.about.as_deref())?;
    match out.is_json() {
        true => tree::print(out, &subject),
        false => out.help(&text(&subject)),
    }
}

fn subject(name: Option<&str>) -> anyhow::Result<HelpSubject<'_>> {
    let Some(name) = name else {
        return Ok(HelpSubject::Program);
    };
    if name == OPTIONS {
        return Ok(HelpSubject::Options);
    }
    let mut topics = TOPICS.into_iter().chain(codes());
    if let Some(topic) = topics.find(|topic| topic.name == name) {
        return Ok(HelpSubject::Topic(topic));
    }
    if Cli::command().find_subcommand(name).is_some() {
        return Ok(HelpSubject::Command(name));
    }
    let meant = match name.parse::<u8>() {
        Ok(_) => Some("exit-codes"),
        Err(_) => synonyms::meaning(name)
            .and_then(|it| it.split(' ').next())
            .filter(|it| !it.starts_with('-')),
    };
    match meant {
        Some(meant) => subject(Some(meant)),
        None => Err(unknown(name).into()),
    }
}

/// Returns the sections of the troubleshooting page: one for each code.
fn codes() -> impl Iterator<Item = Topic> {
    let starts = TROUBLESHOOTING.match_indices("\n### ");
    starts.map(|(at, _)| {
        let text = &TROUBLESHOOTING[at + 1..];
        let text = text.find("\n##").map_or(text, |end| &text[..end]);
        topic(prose::title(text).0, text)
    })
}

fn unknown(name: &str) -> CommandError {
    let topics = TOPICS.map(|topic| topic.name);
    let topics = [&topics[..], &[OPTIONS]].concat();
    let program = Cli::command();
    let commands = program.get_subcommands().map(Command::get_name);
    let all = commands.chain(topics.iter().copied());
    let all = all.chain(codes().map(|code| code.name));
    let near = all.map(|known| (levenshtein(name, known), known)).min();
    let near = near.filter(|(slips, _)| *slips <= 2 && 2 * slips <= name.len());
    let hint = match (synonyms::answer(name, None), near) {
        (Some(answer), _) => answer,
        (None, Some((_, near))) => Hint::new("did you mean `jobboard help {}`?", [&[near]]),
        (None, None) => Hint::new(
            "`jobboard help` lists the commands, `jobboard doctor --list` the codes; topics: {}",
            [&topics],
        ),
    };
    CommandError::usage(format!("no command, topic or code `{name}`")).hint(hint)
}

fn text(subject: &HelpSubject) -> StyledStr {
    let page = |text: &str| {
        let width = size_of(io::stdout()).map_or(MAX_WIDTH, |(columns, _)| columns);
        prose::on_terminal(text, width.min(MAX_WIDTH))
    };
    match subject {
        HelpSubject::Program => asked(&[PROGRAM, "--help"]),
        HelpSubject::Command(name) => asked(&[PROGRAM, name, "--help"]),
        HelpSubject::Options => options(),
        HelpSubject::Topic(topic) => page(topic.text),
    }
}

fn asked(words: &[&str]) -> StyledStr {
    let asked = grammar().try_get_matches_from(words);
    asked.map_or_else(|help| help.render(), |_| StyledStr::new())
}

fn options() -> StyledStr {
    let program = Cli::command();
    let mut options = Command::new(PROGRAM)
        .args(program.get_arguments())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .max_term_width(MAX_WIDTH)
        .before_help(
            "Every command accepts these options, before or after its name. Scripts can set them in the \
             environment, too: `jobboard help boards`.",
        )
        .help_template("{before-help}{all-args}");
    options.render_long_help()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;

    #[test]
    fn each_code_has_exactly_one_section() {
        let mut sections: Vec<_> = codes().map(|section| section.name).collect();
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        sections.sort_unstable();
        names.sort_unstable();
        assert_eq!(sections, names);
    }

    #[test]
    fn each_code_section_is_found_by_its_heading() {
        let headings = TROUBLESHOOTING.lines();
        let headings = headings.filter_map(|line| line.strip_prefix("### "));
        let headings: Vec<_> = headings.collect();
        assert!(headings.len() > 50, "{headings:?}");
        for heading in headings {
            let Ok(HelpSubject::Topic(section)) = subject(Some(heading)) else {
                panic!("{heading}");
            };
            let mut lines = section.text.lines();
            assert_eq!(lines.next(), Some(&*format!("### {heading}")));
            assert!(lines.clone().any(|line| !line.is_empty()), "{heading}");
            assert!(lines.all(|line| !line.starts_with("##")), "{heading}");
        }
    }
}
