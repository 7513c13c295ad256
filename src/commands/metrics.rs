//! `jobboard metrics`.

use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;

use super::parts::scrape::scrape;
use crate::{
    atomic_file::AtomicFile, context::Context, diagnosis::octavia_expiry, exit::CommandError,
    output::Exposition,
};

/// Print metrics for Prometheus
///
/// Reads the board once and prints Prometheus text: jobs by state, age of the oldest job, claim durations,
/// claims that never expire or whose process is dead, and the number of conductors. If the board cannot be
/// read, prints `jobboard_up 0` and exits with the usual code.
///
/// With --textfile, writes a file for node_exporter's textfile collector, for example from a timer. The file is
/// replaced atomically, and every user can read it. `conduct --metrics` exports the same numbers and the
/// conductor's own.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Also count jobs by name: the 50 most frequent, and all others as __other__
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,

    /// File to write; the name must end in .prom
    #[arg(long, value_name = "FILE", value_parser = textfile)]
    textfile: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Name,
}

fn textfile(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().is_some_and(|it| it == "prom") {
        true => Ok(path),
        false => {
            Err("use a file name that ends in .prom: node_exporter reads no others".to_owned())
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: MetricsArgs) -> anyhow::Result<()> {
    if args.textfile.is_none() && ctx.out.is_json() {
        let message = "metrics have no JSON output";
        let hint = "use `jobboard status --json`";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    let board = ctx.board()?;
    let mut exposition = Exposition::new(&[("board", board.name())]);
    let by_name = args.by == Some(By::Name);
    let seen = scrape(&*board, octavia_expiry(ctx), by_name, &mut exposition).await;
    let text = exposition.into_text();
    let Some(file) = args.textfile else {
        ctx.out.pass(text.as_bytes())?;
        ctx.out.flush()?;
        return seen.with_context(|| ctx.trying("read", "the board"));
    };
    AtomicFile::put(&file, text.as_bytes())?;
    seen.with_context(|| ctx.trying("read", "the board"))?;
    let file = file.display().to_string();
    let sentence = format!("wrote the metrics to {file}");
    ctx.out
        .sentences(&[sentence], &json!({ "file": file, "bytes": text.len() }))
}
