//! `jobboard dump`.

use std::path::PathBuf;

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;

use super::bulk::shared_trash::SharedArgs;
use crate::{
    board::{
        Detail, Order, Query,
        filter::{Filter, Filters},
    },
    context::Context,
    exit::CommandError,
    job::{Entry, Location},
    output::JobView,
    transfer::{
        dump::{DumpHeader, DumpLine},
        sealed::{SealedWriter, Trailer},
    },
};

const STEP: u64 = 500;

/// Write all jobs of the board and its trash to a file for `load`
///
/// The file has one JSON object per line: a header, one line per record (the output of `list -o jsonl`, plus the
/// stored posting as base64 in `raw`), and a trailer with counts and a SHA-256 checksum. Details are written
/// unmasked, including secrets; only the owner of the file can read it. Jobs that come or go during the dump may be
/// missing or included. The history is not dumped.
#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// File to write; it appears only when complete [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Dump only matching jobs, for example 'name=backup-*'; repeat to narrow further
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// On an Octavia board: include secrets
    #[arg(long)]
    secrets: bool,

    #[command(flatten)]
    shared: SharedArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: DumpArgs) -> anyhow::Result<()> {
    if ctx.hides_secrets() && !args.secrets {
        let message = "a dump contains complete postings, and those of Octavia hold private keys";
        let hint = "--secrets includes them; only you can read the file";
        return Err(CommandError::refused(message).hint(hint).into());
    }
    let board = ctx.board()?;
    // An unreadable board leaves no file behind, not even a header.
    let health = board.health().await;
    let health = health.with_context(|| ctx.trying("dump", "the jobs"))?;
    let mut writer = SealedWriter::open(args.file.as_deref())?;
    let kind = ctx.config.board.value.url.kind();
    writer.line(
        &mut ctx.out,
        &DumpHeader::new(board.url(), kind, &args.filter),
    )?;
    let filters = Filters::new(args.filter);
    let progress = ctx
        .out
        .progress("dumping", Some(health.jobs + health.trashed));
    let (mut trailer, mut seen, mut unread) = (Trailer::default(), 0, 0);
    let now = Utc::now();
    for location in Location::LIVE {
        let mut entries = board.entries(Query {
            order: Order::Posted,
            ..Query::all(location, Detail::Stored)
        });
        while let Some(entry) = entries
            .try_next()
            .await
            .with_context(|| ctx.trying("dump", "the jobs"))?
        {
            seen += 1;
            if seen % STEP == 0 {
                progress.add(STEP);
            }
            if !args.shared.admits(&entry) || !filters.matches(&entry, now) {
                continue;
            }
            if let Entry::Malformed(record) = &entry
                && record.raw.len() as u64 != record.size
            {
                unread += 1;
                continue;
            }
            let view = JobView::of(&entry, now);
            writer.line(&mut ctx.out, &DumpLine::new(location, view))?;
            trailer.count(&entry);
        }
    }
    drop(progress);
    writer.seal(&mut ctx.out, "dumped to", trailer)?;
    if unread == 0 {
        return Ok(());
    }
    ctx.out
        .note(format!("skipped, too large to read: {unread}"));
    CommandError::partly("records", unread, seen as usize)
}
