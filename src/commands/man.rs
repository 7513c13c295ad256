//! `jobboard man`.

use std::path::PathBuf;

use clap::CommandFactory;
use serde::Serialize;

use super::{Cli, help};
use crate::{
    context::on_file,
    output::{Output, Page, Record, Report},
};

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder for jobboard.1, jobboard-post.1 and so on; created if need be
    dir: Option<PathBuf>,
}

pub(crate) fn run(out: &mut Output, args: &ManArgs) -> anyhow::Result<()> {
    let command = Cli::command();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for (topic, text) in help::TOPICS {
        page.extend(section(topic, text).into_bytes());
    }
    let Some(dir) = &args.dir else {
        return out.document(&page);
    };
    on_file(dir, "create", std::fs::create_dir_all(dir))?;
    on_file(dir, "write to", clap_mangen::generate_to(command, dir))?;
    // With what no single command tells.
    let main = dir.join("jobboard.1");
    on_file(&main, "write", std::fs::write(&main, page))?;
    out.report(&Written { dir: dir.clone() })
}

/// Returns a section of a manual page, its lines as they are.
fn section(topic: &str, text: &str) -> String {
    let title = topic.replace('-', " ").to_uppercase();
    let mut section = format!(".SH {title}\n.nf\n");
    for line in text.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // What begins like this would be a request.
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        section.push_str(&format!("{guard}{line}\n"));
    }
    section.push_str(".fi\n");
    section
}

#[derive(Debug, Serialize)]
struct Written {
    dir: PathBuf,
}

impl Record for Written {
    fn fields(&self) -> Vec<String> {
        vec![self.dir.to_string_lossy().into()]
    }
}

impl Report for Written {
    fn human(&self, page: &mut Page) {
        let dir = self.dir.to_string_lossy();
        page.line().plain("the manual pages are in ").plain(dir);
    }
}
