//! Choosing the jobs that a verb acts on: by reference, from standard input, or by filter.

use std::{io::BufRead, sync::Arc};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;

use super::complete;
use crate::{
    board::{
        Board, BoardExt, Detail, JobRef, Order, Query, Which,
        filter::{Filter, Filters},
    },
    context::{Consent, Context},
    exit::CommandError,
    job::{Entry, Shelf},
    output::short,
};

/// How many jobs are shown before a bulk action is confirmed.
const SAMPLE: usize = 5;

/// Which jobs to act on.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// The jobs: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for one a
    /// line on standard input
    #[arg(add = complete::jobs(), value_name = "JOB", conflicts_with = "filter")]
    pub(crate) jobs: Vec<String>,

    /// Act on every job for which this holds, such as 'held>10m'; several must all hold
    #[arg(long, value_name = "EXPR")]
    pub(crate) filter: Vec<Filter>,

    /// Refuse to act on more jobs than this
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,

    /// Show the jobs that would be acted on, as `list` does, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The records that were chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) jobs: Vec<Named>,
    /// Whether they were chosen by what they are, and not one by one.
    pub(crate) is_bulk: bool,
}

/// How a record is called, and the record, or why there is none.
pub(crate) type Named = (String, anyhow::Result<Entry>);

impl Chosen {
    /// Returns the records that were found.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.jobs
            .iter()
            .filter_map(|(_, entry)| entry.as_ref().ok())
    }
}

impl Selection {
    /// Refuses to take no choice for the choice of everything.
    pub(crate) fn require(&self) -> anyhow::Result<()> {
        if self.jobs.is_empty() && self.filter.is_empty() {
            let message = "name the jobs, or choose them with --filter EXPR";
            return Err(CommandError::usage(message).into());
        }
        Ok(())
    }

    /// Returns the board; a dry run changes nothing, wherever that is forbidden.
    pub(crate) fn board(&self, ctx: &mut Context) -> anyhow::Result<Arc<dyn Board>> {
        match self.dry_run {
            true => ctx.board(),
            false => ctx.writable_board(),
        }
    }

    /// Looks the chosen jobs up, in the order in which they were named or are ranked.
    pub(crate) async fn look_up(
        &self,
        ctx: &Context,
        board: &dyn Board,
        shelf: Shelf,
    ) -> anyhow::Result<Chosen> {
        self.limited(self.look_up_all(ctx, board, shelf).await?)
    }

    /// Looks up as many as there are; those that are to be acted on must be [`Self::limited`].
    pub(crate) async fn look_up_all(
        &self,
        ctx: &Context,
        board: &dyn Board,
        shelf: Shelf,
    ) -> anyhow::Result<Chosen> {
        let is_bulk = self.jobs.is_empty();
        let jobs = if is_bulk {
            let filters = Filters::new(self.filter.clone());
            let detail = match self.dry_run && ctx.out.is_json() {
                true => Detail::Whole,
                false => filters.detail(),
            };
            matching(
                ctx,
                board,
                &filters,
                Query {
                    shelf,
                    which: Which::All,
                    order: Order::Rank,
                    detail,
                },
            )
            .await?
        } else {
            named(ctx, board, shelf, &references(ctx, &self.jobs)?).await?
        };
        Ok(Chosen { jobs, is_bulk })
    }

    /// Refuses more jobs than are to be acted on.
    pub(crate) fn limited(&self, chosen: Chosen) -> anyhow::Result<Chosen> {
        let count = chosen.jobs.len();
        match self.max {
            Some(max) if count > max => {
                let message =
                    format!("{count} jobs were chosen, --max is {max}, and nothing was done");
                Err(CommandError::refused(message).into())
            }
            _ => Ok(chosen),
        }
    }
}

/// Shows what was chosen by filter, and asks whether it is meant.
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

/// Shows what was chosen, and asks whether it is meant; `{}` in the question says how many.
pub(crate) fn confirm(
    ctx: &Context,
    consent: &Consent,
    question: &str,
    chosen: &Chosen,
) -> anyhow::Result<()> {
    let found: Vec<_> = chosen.entries().collect();
    // Where nothing was found, there is nothing to agree to.
    if found.is_empty() {
        return Ok(());
    }
    for entry in found.iter().take(SAMPLE) {
        ctx.out.note(format!("  {}", describe(entry)));
    }
    if found.len() > SAMPLE {
        ctx.out
            .note(format!("  … and {} more", found.len() - SAMPLE));
    }
    ctx.consent(consent, &question.replace("{}", &count(found.len() as u64)))
}

/// Says how many jobs there are.
pub(super) fn count(jobs: u64) -> String {
    match jobs {
        1 => "1 job".to_owned(),
        jobs => format!("{jobs} jobs"),
    }
}

/// Names a record so that a person recognises it.
fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Job(job) => {
            let claim = match (&job.holding, job.owner()) {
                (_, Some(owner)) => format!(" (claimed by {owner})"),
                (Some(_), None) => " (claimed by somebody whose name cannot be read)".to_owned(),
                (None, None) => String::new(),
            };
            format!("{} {}{claim}", short(&job.uuid), job.name)
        }
        Entry::Malformed(record) => format!("key:{} (malformed)", record.key),
    }
}

/// Reads references as they were typed; `-` stands for those on standard input.
pub(crate) fn references(ctx: &Context, typed: &[String]) -> anyhow::Result<Vec<JobRef>> {
    let readers = typed.iter().filter(|text| *text == "-").count();
    if readers + usize::from(ctx.config.takes_stdin()) > 1 && readers > 0 {
        return Err(CommandError::usage("standard input can be read only once").into());
    }
    let mut references = Vec::new();
    for text in typed {
        if text == "-" {
            for line in std::io::stdin().lock().lines() {
                let line = line.map_err(|error| {
                    CommandError::usage(format!("cannot read standard input: {error}"))
                })?;
                if !line.trim().is_empty() {
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

/// Reads the reference to the one job that a command is about.
pub(crate) fn reference(ctx: &Context, typed: &str) -> anyhow::Result<JobRef> {
    let mut references = references(ctx, &[typed.to_owned()])?;
    match (references.pop(), references.is_empty()) {
        (Some(reference), true) => Ok(reference),
        (None, _) => Err(CommandError::usage("standard input names no job").into()),
        (Some(_), false) => {
            Err(CommandError::usage("standard input names several jobs, and one is needed").into())
        }
    }
}

fn parse(text: &str) -> anyhow::Result<JobRef> {
    text.parse()
        .map_err(|error| CommandError::usage(format!("{error}")).into())
}

async fn named(
    ctx: &Context,
    board: &dyn Board,
    shelf: Shelf,
    wanted: &[JobRef],
) -> anyhow::Result<Vec<Named>> {
    let found = board
        .resolve(shelf, wanted)
        .await
        .with_context(|| ctx.trying("look up", format!("{} jobs", wanted.len())))?;
    Ok(wanted
        .iter()
        .zip(found)
        .map(|(wanted, entry)| (wanted.to_string(), entry.map_err(anyhow::Error::from)))
        .collect())
}

async fn matching(
    ctx: &Context,
    board: &dyn Board,
    filters: &Filters,
    query: Query,
) -> anyhow::Result<Vec<Named>> {
    let mut entries = board.entries(query);
    let now = Utc::now();
    let mut chosen = Vec::new();
    while let Some(entry) = entries
        .try_next()
        .await
        .with_context(|| ctx.trying("list", "the jobs"))?
    {
        if filters.matches(&entry, now) {
            chosen.push((entry.name().to_owned(), Ok(entry)));
        }
    }
    Ok(chosen)
}
