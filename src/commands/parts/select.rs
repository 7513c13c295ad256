//! Selects the jobs of a verb: by reference, from standard input, or by filter.

use std::{
    collections::HashSet,
    io::{self, BufRead, Read as _},
    sync::Arc,
};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;

use crate::{
    board::{
        self, Board, BoardError, BoardExt, Detail, JobRef, Order, Query, Which,
        filter::{Filter, Filters},
    },
    context::{Consent, Context},
    exit::CommandError,
    job::{Entry, JobKey, Shelf, State, octavia},
    output::short,
};

const SAMPLE: usize = 5;

/// The longest line of references in bytes: a `unique:KEY` may be long.
const LONGEST_LINE: u64 = 64 * 1024;

/// The memory for all references, and the overhead of each.
const MOST_REFERENCES: (usize, usize) = (64 << 20, 64);

#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Jobs: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(value_name = "JOB",
          conflicts_with_all = ["filter", "state", "with_name", "limit"])]
    pub(crate) jobs: Vec<String>,

    /// Act on all jobs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,

    /// Act on all jobs with this name, for example 'backup-*'
    #[arg(id = "with_name", long = "name", value_name = "GLOB", value_parser = Filter::by_name)]
    pub(crate) name: Option<Filter>,

    /// Act on all matching jobs, for example 'held>10m'; repeat it to narrow further
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Vec<Filter>,

    /// Maximum number of jobs to act on, first in the order of `list`
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Refuse to act on more jobs than this
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,

    /// List the jobs that would be affected, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) jobs: Vec<Named>,
    /// Whether a filter chose them.
    pub(crate) is_bulk: bool,
}

#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// A reference that means this record only.
    pub(crate) reference: String,
    pub(crate) entry: anyhow::Result<Entry>,
}

impl Chosen {
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let records = self.jobs.iter().map(|named| named.entry.as_ref());
        records.filter_map(Result::ok)
    }
}

impl Selection {
    /// Rejects an empty selection, so that it does not mean all jobs.
    pub(crate) fn require(&self) -> anyhow::Result<()> {
        self.require_by("--state, --name or --filter")
    }

    /// Rejects an empty selection; `options` names the ways to select.
    pub(crate) fn require_by(&self, options: &str) -> anyhow::Result<()> {
        if self.jobs.is_empty() && self.filters().is_empty() {
            let message = format!("no job given: name one or use {options}");
            return Err(CommandError::usage(message).into());
        }
        Ok(())
    }

    fn filters(&self) -> Filters {
        let state = self.state.map(Filter::by_state);
        let all = self.filter.iter().cloned().chain(self.name.clone());
        Filters::new(all.chain(state).collect())
    }

    /// Opens the board; a dry run also works on a read-only board.
    pub(crate) fn board(&self, ctx: &mut Context) -> anyhow::Result<Arc<dyn Board>> {
        match self.dry_run {
            true => ctx.board(),
            false => ctx.writable_board(),
        }
    }

    /// Looks the chosen jobs up, in the given order or by rank.
    pub(crate) async fn look_up(
        &self,
        ctx: &Context,
        board: &dyn Board,
        shelves: &[Shelf],
    ) -> anyhow::Result<Chosen> {
        let is_bulk = self.jobs.is_empty();
        let jobs = match is_bulk {
            true => {
                let mut jobs = Vec::new();
                for shelf in shelves {
                    jobs.append(&mut self.matching(ctx, board, *shelf).await?);
                }
                jobs
            }
            false => named(ctx, board, shelves, &references(ctx, &self.jobs)?).await?,
        };
        Ok(Chosen { jobs, is_bulk })
    }

    /// Applies --limit with a note; rejects more than --max.
    pub(crate) fn bounded(&self, ctx: &Context, mut chosen: Chosen) -> anyhow::Result<Chosen> {
        let jobs = &mut chosen.jobs;
        if let Some(limit) = self.limit.filter(|limit| jobs.len() > *limit) {
            let left_out = count((jobs.len() - limit) as u64);
            let note = format!("skipped (--limit): {left_out}");
            ctx.out.note(note);
            jobs.truncate(limit);
        }
        match self.max {
            Some(max) if jobs.len() > max => {
                let chosen = count(jobs.len() as u64);
                let message = format!("{chosen} selected, but --max is {max}; nothing changed");
                let hint = "--dry-run lists them; a larger --max allows them";
                Err(CommandError::refused(message).hint(hint).into())
            }
            _ => Ok(chosen),
        }
    }

    async fn matching(
        &self,
        ctx: &Context,
        board: &dyn Board,
        shelf: Shelf,
    ) -> anyhow::Result<Vec<Named>> {
        let filters = self.filters();
        let mut entries = board.entries(Query {
            shelf,
            which: Which::All,
            order: Order::Rank,
            detail: match self.dry_run && ctx.out.is_json() {
                true => Detail::Whole,
                false => filters.detail(),
            },
        });
        let now = Utc::now();
        let mut chosen = Vec::new();
        while let Some(entry) = entries
            .try_next()
            .await
            .with_context(|| ctx.trying("list", "the jobs"))?
        {
            if filters.matches(&entry, now) {
                chosen.push(Named {
                    name: entry.name().into_owned(),
                    reference: entry.reference().into_owned(),
                    entry: Ok(entry),
                });
            }
        }
        Ok(chosen)
    }
}

/// Shows a selection by filter and asks for confirmation.
pub(crate) fn confirm_bulk(
    ctx: &Context,
    consent: &Consent,
    verb: &str,
    chosen: &Chosen,
) -> anyhow::Result<()> {
    match chosen.is_bulk {
        true => confirm(ctx, consent, &format!("{verb} {{}}?"), chosen),
        false => Ok(()),
    }
}

/// Shows the selection and asks for confirmation; `{}` in the question is the number.
pub(crate) fn confirm(
    ctx: &Context,
    consent: &Consent,
    question: &str,
    chosen: &Chosen,
) -> anyhow::Result<()> {
    let found: Vec<_> = chosen.entries().collect();
    // With nothing found, there is nothing to confirm.
    if found.is_empty() {
        return Ok(());
    }
    // Programs that read the output have no use for it.
    if ctx.out.can_ask() || !ctx.out.is_json() {
        for entry in found.iter().take(SAMPLE) {
            ctx.out.note(format!("  {}", describe(entry)));
        }
        if found.len() > SAMPLE {
            ctx.out
                .note(format!("  … and {} more", found.len() - SAMPLE));
        }
    }
    ctx.consent(consent, &question.replace("{}", &count(found.len() as u64)))
}

pub(crate) fn count(jobs: u64) -> String {
    match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

pub(crate) fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Job(job) => {
            let claim = match (&job.holding, job.owner()) {
                (_, Some(owner)) => format!(" (claimed by {owner})"),
                (Some(_), None) => " (claimed by an unreadable owner)".to_owned(),
                (None, None) => String::new(),
            };
            let name = octavia::title(job).unwrap_or_else(|| job.name.clone());
            format!("{} {name}{claim}", short(&job.reference()))
        }
        Entry::Malformed(record) => format!("key:{} (malformed)", record.key),
    }
}

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
        .with_context(|| ctx.trying("look up", count(wanted.len() as u64)))?;
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
