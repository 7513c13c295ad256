//! References to jobs, from the command line or standard input.

use std::io::{self, BufRead, Read as _};

use anyhow::Context as _;

use super::namesakes::Namesakes;
pub(crate) use super::namesakes::Scope;
use crate::{
    board::{self, Board, BoardError, BoardExt, JobRef, error::reason},
    commands::typing::synonyms::answer_option,
    context::Context,
    exit::CommandError,
    glob::literal,
    job::{Entry, Location},
    output::short,
    suggest::Hint,
};

/// These commands accept a name that only one job has, because their effect is harmless or can be undone.
const TAKE_NAMES: [&str; 5] = ["wait", "retry", "restore", "change", "trash"];

/// The longest line of references in bytes: a `unique:KEY` may be long.
const MAX_LINE: u64 = 64 * 1024;

/// The memory for all references, and the overhead of each.
const MAX_REFERENCES: (usize, usize) = (64 << 20, 64);

/// Parses references; most commands answer a name with the uuid of its job. `-` reads them from standard input.
pub(crate) async fn references(
    ctx: &Context,
    board: &dyn Board,
    scope: Scope,
    typed: &[String],
) -> anyhow::Result<Vec<JobRef>> {
    if TAKE_NAMES.contains(&scope.command()) {
        let everywhere = Scope::everywhere(scope.verb);
        let mut known = Vec::new();
        for text in typed {
            let job = job_of_name(ctx, board, everywhere, NONE_PREFERRED, text).await;
            known.push(job.map_err(|error| match error.downcast_ref() {
                Some(CommandError::NoSuchName { .. }) => not_a_job(scope, text).unwrap_or(error),
                _ => error,
            })?);
        }
        return parsed(ctx, &known);
    }
    if let Some(name) = typed.iter().find(|text| may_be_name(text)) {
        // A board without an answer leaves the plain error.
        let is_there =
            |entry: &Entry| (entry.job()).is_some_and(|it| scope.locations.contains(&it.location));
        let found = Namesakes::find(board, &Location::LIVE, name, is_there).await;
        if let Some(answer) = found.ok().and_then(|it| it.answer(scope)) {
            return Err(answer.into());
        }
        if let Some(answer) = not_a_job(scope, name) {
            return Err(answer);
        }
    }
    parsed(ctx, typed)
}

/// Answers a word that is often typed in place of a job.
fn not_a_job(scope: Scope, word: &str) -> Option<anyhow::Error> {
    let hint = answer_option(scope.command(), &format!("name={word}"), None)?;
    let message = format!("`{word}` is not a job reference");
    Some(CommandError::usage(message).hint(hint).into())
}

fn may_be_name(text: &str) -> bool {
    !["", "-"].contains(&text)
        && !text.starts_with('@')
        && !text.contains(':')
        && text.parse::<JobRef>().is_err()
}

fn parsed(ctx: &Context, typed: &[String]) -> anyhow::Result<Vec<JobRef>> {
    let readers = typed.iter().filter(|text| *text == "-").count();
    if readers + usize::from(ctx.config.takes_stdin()) > 1 && readers > 0 {
        return Err(CommandError::usage("`-` (standard input) can be given only once").into());
    }
    let mut references = Vec::new();
    for text in typed {
        if text == "-" {
            let (mut input, mut size) = (std::io::stdin().lock(), 0);
            while let Some(line) = line(&mut input).map_err(|error| {
                CommandError::usage(format!("cannot read standard input: {}", reason(&error)))
            })? {
                if !line.trim().is_empty() {
                    size += line.len() + MAX_REFERENCES.1;
                    if size > MAX_REFERENCES.0 {
                        let message = "standard input names too many jobs";
                        let hint = "split the input: `xargs -n 1000 jobboard COMMAND`";
                        return Err(CommandError::usage(message).hint(hint).into());
                    }
                    references.push(parse(ctx, line.trim())?);
                }
            }
        } else {
            references.push(parse(ctx, text)?);
        }
    }
    if references.is_empty() && readers > 0 {
        ctx.out.note("standard input names no job");
    }
    Ok(references)
}

pub(crate) const NONE_PREFERRED: fn(&Entry) -> bool = |_| false;

/// Parses references or names for a command that only reads; also returns how many names it reported as unknown.
///
/// If several jobs have a name, it means the only `preferred` one.
pub(crate) async fn references_or_names(
    ctx: &Context,
    board: &dyn Board,
    scope: Scope,
    preferred: fn(&Entry) -> bool,
    typed: &[String],
) -> anyhow::Result<(Vec<JobRef>, usize)> {
    let (mut known, mut failed) = (Vec::new(), 0);
    for text in typed {
        match job_of_name(ctx, board, scope, preferred, text).await {
            Ok(job) => known.push(job),
            Err(error) if typed.len() > 1 && error.is::<CommandError>() => {
                failed += 1;
                ctx.print_error(&error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((parsed(ctx, &known)?, failed))
}

/// Returns the reference of the only job with this name, or the text itself if it is a reference.
async fn job_of_name(
    ctx: &Context,
    board: &dyn Board,
    scope: Scope,
    preferred: fn(&Entry) -> bool,
    text: &str,
) -> anyhow::Result<String> {
    let trying = || ctx.trying("look up", text);
    if !is_name(board, text).await.with_context(trying)? {
        return Ok(text.to_owned());
    }
    let found = Namesakes::find(board, scope.locations, text, preferred).await;
    let found = found.with_context(trying)?;
    if let ([ended], true) = (found.found.as_slice(), found.count > 1) {
        let (id, count) = (short(&ended.reference()).to_owned(), found.count);
        let list = Hint::new("`jobboard list --history {}`", [&[&*literal(text)]]);
        ctx.out.note(format!(
            "{id} is the last of {count} jobs named {text} that ended; {list}"
        ));
    }
    match found.only(scope.verb, board.url()) {
        // A few hex digits that are no name either may begin a uuid in the history.
        Err(CommandError::NoSuchName { .. }) if !may_be_name(text) => Ok(text.to_owned()),
        found => Ok(found?),
    }
}

/// Whether a word is a name: no form of a reference, or the beginning of no uuid.
async fn is_name(board: &dyn Board, text: &str) -> board::Result<bool> {
    match text.parse::<JobRef>() {
        Ok(wanted @ JobRef::Uuid(_)) if !wanted.is_exact() && !text.contains(':') => {
            let found = board.resolve_on(&Location::LIVE, &[wanted]).await?;
            Ok(matches!(found.as_slice(), [Err(BoardError::NoSuchJob)]))
        }
        _ => Ok(may_be_name(text)),
    }
}

fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    input.take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
    if line.len() as u64 > MAX_LINE {
        let problem = format!("a line has more than {MAX_LINE} bytes and is not a reference");
        return Err(io::Error::other(problem));
    }
    let text = String::from_utf8(line).map_err(|_| io::Error::other("the input is not UTF-8"))?;
    Ok((!text.is_empty()).then_some(text))
}

pub(crate) async fn reference(
    ctx: &Context,
    board: &dyn Board,
    scope: Scope,
    typed: &str,
) -> anyhow::Result<JobRef> {
    let mut references = references(ctx, board, scope, &[typed.to_owned()]).await?;
    let problem = match (references.pop(), references.is_empty()) {
        (Some(reference), true) => return Ok(reference),
        (None, _) => "standard input names no job",
        (Some(_), false) => "standard input names several jobs; name one",
    };
    Err(CommandError::usage(problem).into())
}

fn parse(ctx: &Context, text: &str) -> anyhow::Result<JobRef> {
    let wanted = text.parse::<JobRef>();
    let wanted = wanted.map_err(|error| CommandError::usage(error.to_string()))?;
    if text.starts_with("unique:") {
        ctx.remember_unique(wanted.to_string(), text);
    }
    Ok(wanted)
}

/// Finds jobs in these locations. If a job is missing, the error names the location where it is.
pub(crate) async fn find(
    board: &dyn Board,
    locations: &[Location],
    wanted: &[JobRef],
) -> board::Result<Vec<anyhow::Result<Entry>>> {
    let found = board.resolve_on(locations, wanted).await?;
    let places = places_of_missing(board, locations, wanted, &found).await;
    let with_place = |(entry, place): (board::Result<Entry>, Option<Location>)| {
        entry.map_err(|error| match place {
            Some(place) => CommandError::Elsewhere(place).into(),
            None => error.into(),
        })
    };
    Ok(found.into_iter().zip(places).map(with_place).collect())
}

async fn places_of_missing(
    board: &dyn Board,
    locations: &[Location],
    wanted: &[JobRef],
    found: &[board::Result<Entry>],
) -> Vec<Option<Location>> {
    let mut places = vec![None; found.len()];
    let all = found.iter().enumerate();
    let missing = all.filter(|(_, it)| matches!(it, Err(BoardError::NoSuchJob)));
    let missing: Vec<_> = missing.map(|(at, _)| at).collect();
    if missing.is_empty() {
        return places;
    }
    let lost: Vec<_> = missing.iter().map(|&at| wanted[at].clone()).collect();
    let others = [Location::History, Location::Trash, Location::Board].into_iter();
    for location in others.filter(|it| !locations.contains(it)) {
        let elsewhere = board.resolve(location, &lost).await.unwrap_or_default();
        for (&at, elsewhere) in missing.iter().zip(elsewhere) {
            if elsewhere.is_ok() {
                places[at] = Some(location);
            }
        }
    }
    places
}
