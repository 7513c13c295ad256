//! `jobboard man`.

use std::path::PathBuf;

use clap::CommandFactory;
use serde::Serialize;

use super::Cli;
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
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return out.document(&page);
    };
    on_file(dir, "create", std::fs::create_dir_all(dir))?;
    on_file(dir, "write to", clap_mangen::generate_to(command, dir))?;
    out.report(&Written { dir: dir.clone() })
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
