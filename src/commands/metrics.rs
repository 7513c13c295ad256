//! `jobboard metrics`.

use std::path::PathBuf;

use anyhow::Context as _;
use chrono::Utc;
use serde_json::json;

use super::parts::scrape::scrape;
use crate::{
    atomic_file::AtomicFile,
    board::{Board, examine::Examined},
    context::Context,
    diagnosis::{Asked, OctaviaReader, Verdict},
    exit::CommandError,
    output::Exposition,
};

/// Age limits of pending load balancers, in seconds.
const AGES: [i64; 3] = [60, 600, 3600];

/// Print metrics for Prometheus
///
/// Reads the board once and prints Prometheus text: jobs by state, age of the oldest job, claim durations,
/// claims that never expire or whose process is dead, and the number of conductors; on an Octavia board also the
/// pending load balancers. If the board cannot be read, prints `jobboard_up 0` and exits with the usual code.
///
/// With --textfile, writes a file for node_exporter's textfile collector; run this command from a timer. The file is
/// replaced atomically, and every user can read it. `conduct --metrics` exports the same numbers and the
/// conductor's own.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// File to write; the name must end in .prom
    #[arg(long, value_name = "FILE", value_parser = textfile)]
    pub(super) textfile: Option<PathBuf>,
}

fn textfile(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().is_some_and(|it| it == "prom") {
        true => Ok(path),
        false => {
            Err("use a file name that ends in .prom; node_exporter ignores other files".to_owned())
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
    let mut exposition = Exposition::new(&[("board", board.url())]);
    let expiry = ctx.config.board.value.octavia_expiry();
    let seen = scrape(&*board, expiry, &mut exposition).await;
    if seen.is_ok() {
        add_load_balancers(ctx, &*board, &mut exposition).await;
    }
    let text = exposition.into_text();
    let Some(file) = args.textfile else {
        ctx.out.document(text.as_bytes())?;
        return seen.with_context(|| ctx.trying("read", "the board"));
    };
    AtomicFile::put(&file, text.as_bytes())?;
    seen.with_context(|| ctx.trying("read", "the board"))?;
    let file = file.display().to_string();
    let sentence = format!("wrote the metrics to {file}");
    ctx.out
        .sentences(&[sentence], &json!({ "file": file, "bytes": text.len() }))
}

async fn add_load_balancers(ctx: &Context, board: &dyn Board, exposition: &mut Exposition) {
    let Some(conf) = &ctx.config.board.value.octavia else {
        return;
    };
    let own = conf.database.as_ref();
    if own.is_none() {
        return;
    }
    let mut reader = OctaviaReader::open(&ctx.config, conf, own).await;
    let look = reader
        .look(board, Asked::Pending, &mut Examined::default())
        .await;
    exposition.value("jobboard_load_balancers_seen", f64::from(look.is_some()));
    let Some(look) = look else { return };
    let now = Utc::now();
    let count = |verdict: Verdict, least: i64| {
        let pending = look.balancers.iter().filter(|it| it.verdict == verdict);
        let ages = pending.map(|it| {
            it.balancer
                .since
                .map_or(0, |since| (now - since).num_seconds())
        });
        ages.filter(|age| *age >= least).count() as f64
    };
    let of_pending = |it: &&Verdict| !matches!(it, Verdict::Settled | Verdict::Failed);
    for verdict in Verdict::ALL.iter().filter(of_pending) {
        let label = ("verdict", verdict.name());
        let family = exposition.family("jobboard_load_balancers_pending");
        family.add(&[label], count(*verdict, 0));
        let family = exposition.family("jobboard_load_balancers_pending_older_than");
        for least in AGES {
            let seconds = least.to_string();
            family.add(&[("seconds", &seconds), label], count(*verdict, least));
        }
    }
}
