//! `jobboard report`.

mod facts;
mod gather;
mod html;
mod masking;
mod measure;
mod svg;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod words;

use std::{io::IsTerminal, path::PathBuf};

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::{atomic_file::AtomicFile, context::Context, exit::CommandError};

/// Write a report about the board for a browser or a ticket
///
/// The page starts with one sentence about the problems, followed by the current numbers and those of the last hour.
/// The failures by cause and the other problems that `doctor` finds come next, each with one fix. The timeline,
/// waiting times and durations, names, and owners follow. FILE is a single HTML page without scripts or external
/// requests. It is written atomically, and only you can read it. It contains names, owners and the last output
/// of failed commands, but no job details; secrets are masked.
///
/// Without FILE, prints the report as text on a terminal; with --json, as numbers. Nothing on the board is
/// changed.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// File to write, or - for standard output
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// Compute ages and remaining lease times as of this time, for example 2026-11-20T18:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<DateTime<Utc>>,
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    let time = time.map_err(|_| "use a time such as 2026-11-20T18:00:00Z".to_owned())?;
    Ok(time.to_utc())
}

pub(crate) async fn run(ctx: &mut Context, args: ReportArgs) -> anyhow::Result<()> {
    let is_dash = args.file.as_ref().is_some_and(|it| it.as_os_str() == "-");
    if args.file.is_some() && ctx.out.is_json() {
        let message = "a report file is always HTML; JSON goes to standard output";
        let hint = "omit FILE for JSON: `jobboard report --json`";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    let board = ctx.board()?;
    let file = args.file.filter(|_| !is_dash);
    // Report an unwritable file before reading the board.
    let target = file.as_deref().map(AtomicFile::open).transpose()?;
    let facts = gather::gather(ctx, &*board, args.at).await?;
    let Some(mut target) = target else {
        // A page on a terminal is of no use.
        return match is_dash && !std::io::stdout().is_terminal() {
            true => ctx.out.document(html::page(&facts).as_str().as_bytes()),
            false => ctx.out.report(&facts),
        };
    };
    let page = html::page(&facts);
    target.write(page.as_str().as_bytes())?;
    let file = target.finish()?.display().to_string();
    let bytes = page.as_str().len();
    let wrote = format!("wrote the report to {file} ({} kB)", bytes.div_ceil(1000));
    let written = json!({ "file": file, "bytes": bytes });
    ctx.out.sentences(&[facts.verdict(), wrote], &written)
}
