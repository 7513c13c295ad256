//! References to jobs, from the command line or standard input.

use std::{
    collections::HashSet,
    io::{self, BufRead, Read as _},
};

use anyhow::Context as _;
use futures_util::TryStreamExt;

use super::select::Named;
use crate::{
    board::{self, Board, BoardError, BoardExt, Detail, JobRef, Query},
    context::Context,
    exit::CommandError,
    job::{Entry, JobKey, Shelf},
    output::count_jobs,
};

/// The number of candidates for an ambiguous name.
const SAMPLE: usize = 5;

/// The longest line of references in bytes: a `unique:KEY` may be long.
const LONGEST_LINE: u64 = 64 * 1024;

/// The memory for all references, and the overhead of each.
const MOST_REFERENCES: (usize, usize) = (64 << 20, 64);

/// Parses references; `-` reads them from standard input.
pub(crate) fn references(ctx: &Context, typed: &[String]) -> anyhow::Result<Vec<JobRef>> {
    let readers = typed.iter().filter(|text| *text == "-").count();
    if readers + usize::from(ctx.config.takes_stdin()) > 1 && readers > 0 {
        return Err(CommandError::usage("standard input can be read only once").into());
    }
    let mut references = Vec::new();
    for text in typed {
        if text == "-" {
            let (mut input, mut size) = (std::io::stdin().lock(), 0);
            while let Some(line) = line(&mut input).map_err(|error| {
                CommandError::usage(format!("cannot read standard input: {error}"))
            })? {
                if !line.trim().is_empty() {
                    size += line.len() + MOST_REFERENCES.1;
                    if size > MOST_REFERENCES.0 {
                        let message = "standard input names too many jobs";
                        let hint = "split the input: `xargs -n 1000 jobboard COMMAND`";
                        return Err(CommandError::usage(message).hint(hint).into());
                    }
                    references.push(parse(line.trim())?);
                }
            }
        } else {
            references.push(parse(text)?);
        }
    }
    if references.is_empty() && readers > 0 {
        ctx.out.note("standard input names no job");
    }
    Ok(references)
}

/// Parses references for a command that only reads: any other word is the name of a job.
pub(crate) async fn references_or_names(
    ctx: &Context,
    board: &dyn Board,
    typed: &[String],
) -> anyhow::Result<Vec<JobRef>> {
    let mut typed = typed.to_vec();
    for text in &mut typed {
        let is_form = text == "-" || text.starts_with(['@', ':']) || text.contains(':');
        if !is_form && text.parse::<JobRef>().is_err() {
            let found = by_name(board, text).await;
            let found = found.with_context(|| ctx.trying("look up", &*text))?;
            *text = JobRef::Key(found).to_string();
        }
    }
    references(ctx, &typed)
}

/// Finds the only job of this name: on the board, or else in the trash.
async fn by_name(board: &dyn Board, name: &str) -> board::Result<JobKey> {
    for shelf in [Shelf::Board, Shelf::Trash] {
        let mut entries = board.entries(Query::all(shelf, Detail::Brief));
        let mut found = Vec::new();
        while let Some(entry) = entries.try_next().await? {
            if entry.job().is_some_and(|job| job.name == name) && found.len() <= SAMPLE {
                found.push(entry);
            }
        }
        match found.as_slice() {
            [] => {}
            [entry] => return Ok(entry.key().clone()),
            several => {
                let candidates = several.iter().map(|it| it.reference().into_owned());
                return Err(BoardError::Ambiguous {
                    wanted: name.to_owned(),
                    candidates: candidates.collect(),
                });
            }
        }
    }
    Err(BoardError::NoSuchJob)
}

/// Reads the next line; rejects one that is longer than any reference.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    input.take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
    if line.len() as u64 > LONGEST_LINE {
        let problem = format!("a line has more than {LONGEST_LINE} bytes and is not a reference");
        return Err(io::Error::other(problem));
    }
    let text = String::from_utf8(line).map_err(|_| io::Error::other("the input is not UTF-8"))?;
    Ok((!text.is_empty()).then_some(text))
}

pub(crate) fn reference(ctx: &Context, typed: &str) -> anyhow::Result<JobRef> {
    let mut references = references(ctx, &[typed.to_owned()])?;
    match (references.pop(), references.is_empty()) {
        (Some(reference), true) => Ok(reference),
        (None, _) => Err(CommandError::usage("standard input names no job").into()),
        (Some(_), false) => {
            Err(CommandError::usage("standard input names several jobs; name one").into())
        }
    }
}

fn parse(text: &str) -> anyhow::Result<JobRef> {
    text.parse()
        .map_err(|error| CommandError::usage(format!("{error}")).into())
}

/// Looks up references, and returns each job once.
pub(crate) async fn named(
    ctx: &Context,
    board: &dyn Board,
    shelves: &[Shelf],
    wanted: &[JobRef],
) -> anyhow::Result<Vec<Named>> {
    let found = board
        .resolve_on(shelves, wanted)
        .await
        .with_context(|| ctx.trying("look up", count_jobs(wanted.len() as u64)))?;
    let named = |(wanted, entry): (&JobRef, board::Result<Entry>)| Named {
        name: wanted.to_string(),
        reference: wanted.to_string(),
        entry: entry.map_err(anyhow::Error::from),
    };
    let mut given = HashSet::new();
    let is_new = |named: &Named| {
        let key = named.entry.as_ref().map(|entry| entry.key().clone());
        given.insert(key.map_err(|_| named.reference.clone()))
    };
    Ok(wanted.iter().zip(found).map(named).filter(is_new).collect())
}
