//! `jobboard man`.

use std::{io, path::PathBuf};

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use serde::Serialize;

use super::{
    Cli,
    guide::{Guide, PROGRAM},
    help::{TOPICS, Topic, prose},
};
use crate::{
    atomic_file::on_file,
    output::{Output, Page, Report},
};

const SOURCE: &str = concat!("jobboard ", env!("CARGO_PKG_VERSION"));

/// The manual section of topics; commands are in section 1.
const TOPIC_SECTION: &str = "7";

/// Print the manual page, or write all manual pages to a directory
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory for jobboard.1, jobboard-post.1, jobboard-boards.7 and so on; created if missing
    dir: Option<PathBuf>,
}

pub(crate) fn run(out: &mut Output, args: &ManArgs) -> anyhow::Result<()> {
    let mut program = Cli::command();
    program.build();
    let Some(dir) = &args.dir else {
        return out.document(&page_of_command(&program)?);
    };
    on_file(dir, "create", std::fs::create_dir_all(dir))?;
    let commands = program.get_subcommands().chain([&program]).map(|command| {
        let name = command.get_display_name().unwrap_or(PROGRAM);
        (format!("{name}.1"), page_of_command(command))
    });
    let topics = TOPICS.iter().map(|topic| {
        let name = format!("{PROGRAM}-{}.{TOPIC_SECTION}", topic.name);
        (name, page_of_topic(topic))
    });
    for (name, page) in commands.chain(topics) {
        let path = dir.join(name);
        on_file(
            &path,
            "write",
            page.and_then(|page| std::fs::write(&path, page)),
        )?;
    }
    out.report(&Written { dir: dir.clone() })
}

fn page_of_command(command: &Command) -> io::Result<Vec<u8>> {
    let is_program = command.get_name() == PROGRAM;
    let own = command.clone().mut_args(|arg| {
        let is_hidden = arg.is_global_set() && !is_program;
        arg.hide(is_hidden)
    });
    let man = Man::new(own)
        .date("\"\"")
        .source(SOURCE)
        .manual("Job boards");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut rest = Roff::new();
    if is_program {
        man.render_subcommands_section(&mut page)?;
        rest.control("SH", ["TOPICS"]);
        for topic in &TOPICS {
            let page = format!("{PROGRAM}-{}({TOPIC_SECTION})", topic.name);
            rest.control("TP", []).text([roman(page)]);
            rest.text([roman(prose::title(topic.text).1)]);
        }
    } else {
        rest.control("PP", []).text([
            roman("Global options, for example "),
            bold("--board"),
            roman(" and "),
            bold("--json"),
            roman(", are described in "),
            bold(PROGRAM),
            roman("(1)."),
        ]);
    }
    let guide = Guide::of(command.get_name());
    rest.control("SH", ["EXAMPLES"]);
    for example in &guide.examples {
        let line = [bold(example.line)];
        match example.about {
            Some(about) => rest.control("TP", []).text(line).text([roman(about)]),
            None => rest.control("PP", []).text(line),
        };
    }
    rest.control("SH", ["EXIT STATUS"]);
    for code in &guide.codes {
        rest.control("TP", []).text([bold(code.code)]);
        rest.text([roman(code.meaning)]);
    }
    let program = (!is_program).then_some(PROGRAM);
    see_also(&mut rest, program.into_iter().chain(guide.related));
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let name = command.get_bin_name().unwrap_or(PROGRAM);
    let arguments = usage.trim_start_matches("Usage: ").trim_start_matches(name);
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    section.text([bold(name), roman(arguments)]);
    section
}

fn page_of_topic(topic: &Topic) -> io::Result<Vec<u8>> {
    let name = format!("{PROGRAM}-{}", topic.name);
    let mut page = Roff::new();
    let title = [name.as_str(), TOPIC_SECTION, "\"\"", SOURCE, "Job boards"];
    page.control("TH", title).control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", prose::title(topic.text).1))]);
    prose::on_page(topic.text, &mut page);
    let others = TOPICS.iter().map(|topic| topic.name);
    let others = others.filter(|other| *other != topic.name);
    see_also(&mut page, [PROGRAM].into_iter().chain(others));
    let mut bytes = Vec::new();
    page.to_writer(&mut bytes)?;
    Ok(bytes)
}

fn see_also<'a>(page: &mut Roff, names: impl Iterator<Item = &'a str>) {
    page.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for name in names {
        let (name, section) = match TOPICS.iter().find(|topic| topic.name == name) {
            Some(topic) => (format!("{PROGRAM}-{}", topic.name), TOPIC_SECTION),
            None if name == PROGRAM => (PROGRAM.to_owned(), "1"),
            None => (format!("{PROGRAM}-{name}"), "1"),
        };
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(name), roman(format!("({section})"))]);
    }
    page.text(line);
}

#[derive(Debug, Serialize)]
struct Written {
    dir: PathBuf,
}

impl Report for Written {
    fn fields(&self) -> Vec<String> {
        vec![self.dir.to_string_lossy().into()]
    }

    fn human(&self, page: &mut Page) {
        let dir = self.dir.to_string_lossy();
        page.line().plain("wrote the manual pages to ").plain(dir);
    }
}
