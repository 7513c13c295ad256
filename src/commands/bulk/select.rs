//! Selects the jobs of a verb: by reference, from standard input, or by filter.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;

use super::references::{Scope, find, references};
use crate::{
    board::{
        Board, BoardError, Detail, JobRef, Order, Query,
        collect::Collector,
        filter::{Filter, Filters},
    },
    commands::parts::words::of_fields,
    context::{Consent, Context},
    diagnosis::{ProblemSelector, Snapshot, read_snapshot},
    exit::CommandError,
    job::{Entry, Location, State, octavia},
    output::{can_ask, count_jobs, short},
};

const SAMPLE: usize = 5;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Selection {
    /// Jobs: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(value_name = "JOB",
          conflicts_with_all = ["filter", "state", "with_name", "problem", "limit"])]
    pub(crate) jobs: Vec<String>,

    /// Act on all jobs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,

    /// Act on all jobs whose names match GLOB, for example 'backup-*'
    #[arg(id = "with_name", long = "name", value_name = "GLOB", value_parser = Filter::by_name)]
    pub(crate) name: Option<Filter>,

    /// Act on all jobs that match EXPR, for example 'held>10m'; repeat to narrow further
    #[arg(long, value_name = "EXPR", value_parser = of_fields)]
    pub(crate) filter: Vec<Filter>,

    /// Act on all jobs with this problem, as `jobboard doctor` names it; CAUSE is a glob
    #[arg(long, value_name = "CODE[=CAUSE]")]
    pub(crate) problem: Option<ProblemSelector>,

    /// Act on at most N jobs, in the order of `list`
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Refuse to act on more than N jobs
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,

    #[command(flatten)]
    pub(crate) preview: PreviewArgs,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct PreviewArgs {
    /// List the jobs that would be affected, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Write a plan for `apply` to this file, and change nothing
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) plan: Option<PathBuf>,
}

impl PreviewArgs {
    pub(crate) fn is_preview(&self) -> bool {
        self.dry_run || self.plan.is_some()
    }

    /// Opens the board; a preview also works on a read-only board.
    pub(crate) fn board(&self, ctx: &mut Context) -> anyhow::Result<Arc<dyn Board>> {
        ctx.board_writable_if(!self.is_preview())
    }
}

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) jobs: Vec<Named>,
    pub(crate) choice: Choice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Named,
    Filtered,
    /// By a plan: jobs that changed since are skipped without an error.
    Planned,
}

#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// A reference that means this record only.
    pub(crate) reference: String,
    pub(crate) entry: anyhow::Result<Entry>,
}

impl Chosen {
    pub(crate) fn is_bulk(&self) -> bool {
        self.choice != Choice::Named
    }

    /// Rejects jobs that do not fit, or drops them from a selection by filter.
    pub(crate) fn require(
        &mut self,
        ctx: &Context,
        fits: impl Fn(&Entry) -> Result<(), BoardError>,
    ) {
        let (all, mut reasons) = (self.jobs.len(), Vec::new());
        for named in &mut self.jobs {
            if let Ok(Err(refusal)) = named.entry.as_ref().map(&fits) {
                let reason = match refusal {
                    BoardError::AlreadyClaimed { .. } => "claimed",
                    BoardError::MayStillRun { .. } => "perhaps still running",
                    BoardError::Malformed { .. } => "unreadable",
                    BoardError::Unclaimable { .. } => "impossible to claim",
                    _ => "not waiting for a retry",
                };
                named.entry = Err(refusal.into());
                reasons.extend((!reasons.contains(&reason)).then_some(reason));
            }
        }
        if self.is_bulk() {
            self.jobs.retain(|named| named.entry.is_ok());
            let skipped = all - self.jobs.len();
            if skipped > 0 {
                let (all, reasons) = (count_jobs(all as u64), reasons.join(", "));
                ctx.out
                    .note(format!("skipped {skipped} of {all}: {reasons}"));
            }
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let records = self.jobs.iter().map(|named| named.entry.as_ref());
        records.filter_map(Result::ok)
    }
}

impl Selection {
    /// Rejects an empty selection, so that it does not mean all jobs.
    pub(crate) fn require(&self) -> Result<(), CommandError> {
        self.require_by("--state, --name, --filter or --problem")
    }

    /// Rejects an empty selection; `options` names the ways to select.
    pub(crate) fn require_by(&self, options: &str) -> Result<(), CommandError> {
        if self.jobs.is_empty() && self.filters().is_empty() && self.problem.is_none() {
            let message = format!("no job given: name one or use {options}");
            return Err(CommandError::usage(message));
        }
        Ok(())
    }

    fn filters(&self) -> Filters {
        Filters::new(self.all_filters().collect())
    }

    fn all_filters(&self) -> impl Iterator<Item = Filter> {
        let state = self.state.map(Filter::by_state);
        let all = self.filter.iter().cloned().chain(self.name.clone());
        all.chain(state)
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let option = |name: &str, value: String| [name.to_owned(), value];
        let filters = self.all_filters();
        let filters = filters.map(move |it| option("--filter", it.to_string()));
        let problem = self.problem.iter();
        let problem = problem.map(move |it| option("--problem", it.text.clone()));
        let limits = [("--limit", self.limit), ("--max", self.max)].into_iter();
        let limits = limits.filter_map(move |(name, value)| Some(option(name, value?.to_string())));
        filters.chain(problem).chain(limits).flatten()
    }

    pub(crate) async fn look_up(
        &self,
        ctx: &Context,
        board: &dyn Board,
        scope: Scope,
    ) -> anyhow::Result<Chosen> {
        let choice = match self.jobs.is_empty() {
            true => Choice::Filtered,
            false => Choice::Named,
        };
        let mut jobs = Vec::new();
        if choice == Choice::Named {
            let wanted = references(ctx, board, scope, &self.jobs).await?;
            jobs = named(ctx, board, scope.locations, &wanted).await?;
        } else {
            let snapshot = match &self.problem {
                Some(_) => Some(read_snapshot(&ctx.config, board).await?),
                None => None,
            };
            for location in scope.locations {
                let some = self.matching(ctx, board, *location, snapshot.as_ref());
                jobs.append(&mut some.await?);
            }
        }
        Ok(Chosen { jobs, choice })
    }

    /// Applies --limit with a note; rejects more than --max.
    pub(crate) fn bounded(&self, ctx: &Context, mut chosen: Chosen) -> anyhow::Result<Chosen> {
        let jobs = &mut chosen.jobs;
        if let Some(limit) = self.limit.filter(|limit| jobs.len() > *limit) {
            let left_out = count_jobs((jobs.len() - limit) as u64);
            let note = format!("skipped (--limit): {left_out}");
            ctx.out.note(note);
            jobs.truncate(limit);
        }
        match self.max {
            Some(max) if jobs.len() > max => {
                let chosen = count_jobs(jobs.len() as u64);
                let message = format!("{chosen} selected, but --max is {max}; nothing changed");
                let hint = "use --dry-run to list the jobs, or raise --max";
                Err(CommandError::refused(message).hint(hint).into())
            }
            _ => Ok(chosen),
        }
    }

    async fn matching(
        &self,
        ctx: &Context,
        board: &dyn Board,
        location: Location,
        snapshot: Option<&Snapshot>,
    ) -> anyhow::Result<Vec<Named>> {
        let filters = self.filters();
        let has_problem = |entry: &Entry| match (&self.problem, snapshot) {
            (Some(problem), Some(snapshot)) => problem.is_of(entry, snapshot),
            _ => true,
        };
        let detail = match self.problem.is_some() || self.preview.dry_run && ctx.out.is_json() {
            true => Detail::Whole,
            false => filters.detail(),
        };
        let mut entries = board.entries(Query {
            order: Order::Rank,
            ..Query::all(location, detail)
        });
        let (now, mut collector) = (Utc::now(), Collector::default());
        let mut chosen = Vec::new();
        while let Some(entry) = entries
            .try_next()
            .await
            .with_context(|| ctx.trying("list", "the jobs"))?
        {
            if filters.matches(&entry, now) && has_problem(&entry) {
                let reference = entry.reference().into_owned();
                let entry = collector.keep(entry);
                chosen.push(Named {
                    name: entry.name().into_owned(),
                    reference,
                    entry: Ok(entry),
                });
            }
        }
        Ok(chosen)
    }
}

pub(crate) async fn named(
    ctx: &Context,
    board: &dyn Board,
    locations: &[Location],
    wanted: &[JobRef],
) -> anyhow::Result<Vec<Named>> {
    let found = find(board, locations, wanted)
        .await
        .with_context(|| ctx.trying("look up", count_jobs(wanted.len() as u64)))?;
    let named = |(wanted, entry): (&JobRef, _)| Named {
        name: wanted.to_string(),
        reference: wanted.to_string(),
        entry,
    };
    let mut given = HashSet::new();
    let is_new = |named: &Named| {
        let key = named.entry.as_ref().map(|entry| entry.key().clone());
        given.insert(key.map_err(|_| named.reference.clone()))
    };
    let found = wanted.iter().zip(found);
    Ok(found.map(named).filter(is_new).collect())
}

/// Shows the selection and asks for confirmation; `{}` in the question is the number.
pub(crate) fn confirm(
    ctx: &Context,
    consent: &Consent,
    question: &str,
    chosen: &Chosen,
) -> anyhow::Result<()> {
    let found: Vec<_> = chosen.entries().collect();
    // Nothing was found, so skip the question.
    if found.is_empty() {
        return Ok(());
    }
    // Programs that read the output have no use for it.
    if can_ask() || !ctx.out.is_json() {
        for entry in found.iter().take(SAMPLE) {
            ctx.out.note(format!("  {}", describe(entry)));
        }
        if found.len() > SAMPLE {
            ctx.out
                .note(format!("  … and {} more", found.len() - SAMPLE));
        }
    }
    ctx.ask(
        consent,
        &question.replace("{}", &count_jobs(found.len() as u64)),
    )
}

pub(crate) fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Job(job) => {
            let claim = match (&job.holding, job.owner()) {
                (_, Some(owner)) => format!(" (claimed by {owner})"),
                (Some(_), None) => " (claimed by an unreadable owner)".to_owned(),
                (None, None) => String::new(),
            };
            let name = octavia::title(job).unwrap_or_else(|| entry.name().into_owned());
            format!("{} {name}{claim}", short(&job.reference()))
        }
        Entry::Malformed(record) => format!("key:{} (malformed)", record.key),
    }
}
