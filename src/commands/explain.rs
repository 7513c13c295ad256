//! `jobboard explain`.

mod flows;

use std::time::Duration;

use anyhow::Context as _;
use futures_util::TryStreamExt;
use tokio::time;

use super::{
    bulk::references::{NONE_PREFERRED, Scope, references_or_names},
    doctor::{self, DoctorArgs},
    parts::{logbook::LogbookArgs, octavia::AboutArgs, problems},
    show::ended_later,
};
use crate::{
    board::{Board, BoardError, BoardExt, Detail, JobRef, Order, Query, Which},
    context::Context,
    diagnosis::{ExplainedJob, Explanation, Recheck, Snapshot, read_snapshot},
    exit::{CommandError, NOT_FOUND, REJECTED, chain},
    job::{Entry, Location, Rank},
    output::{Page, Report, Tone, rfc3339},
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

const RECHECK_TIMEOUT: Duration = Duration::from_secs(2);

const MAX_FACTS: usize = 5;

/// Explain a job's state and suggest the command that helps
///
/// The verdict is based on the conductors' own rules and published settings. If a claim does not seem to be
/// renewed, the command checks a second time. Without JOB, lists the problems that keep jobs from running,
/// as `jobboard doctor --only jobs,conductors,keys` does, but does not search for stray keys.
/// Nothing is changed. `jobboard help troubleshooting` explains each verdict.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Jobs: uuid, prefix, name, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(value_name = "JOB", conflicts_with_all = ["lb", "amphora"])]
    jobs: Vec<String>,

    #[command(flatten)]
    about: AboutArgs,

    #[command(flatten)]
    logbook: LogbookArgs,
}

pub(super) async fn jobs(ctx: &mut Context, jobs: Vec<String>) -> anyhow::Result<()> {
    let args = ExplainArgs {
        jobs,
        ..ExplainArgs::default()
    };
    run(ctx, args).await
}

pub(crate) async fn run(ctx: &mut Context, args: ExplainArgs) -> anyhow::Result<()> {
    if args.jobs.is_empty() && !args.about.is_given() {
        return doctor::run(ctx, DoctorArgs::of_board()).await;
    }
    let board = ctx.board()?;
    let scope = Scope::everywhere("explain");
    let (named, unnamed) =
        references_or_names(ctx, &*board, scope, NONE_PREFERRED, &args.jobs).await?;
    let wanted = args.about.jobs_or(named, ctx, &*board).await?;
    let snapshot = snapshot(ctx, &*board).await?;
    let mut explanations = Vec::new();
    for wanted in &wanted {
        let explained = explain(&*board, &snapshot, wanted).await;
        explanations.push(explained.with_context(|| ctx.trying("explain", wanted))?);
    }
    flows::add(ctx, &args.logbook, &*board, &mut explanations, &snapshot).await?;
    let program = ctx.program();
    let explanations = explanations.into_iter().map(|it| it.on(&program));
    let mut explanations: Vec<_> = explanations.collect();
    problems::omit_refused(ctx, explanations.iter_mut().flat_map(|it| &mut it.findings));
    match explanations.as_slice() {
        [] => {}
        [one] => ctx.out.report(one)?,
        several => ctx.out.reports(several)?,
    }
    let mut known = explanations
        .iter()
        .filter(|it| it.verdict != Code::UnknownJob);
    let needs_help = |it: &Explanation| !it.will_run || it.findings.iter().any(Problem::is_wrong);
    if known.any(needs_help) {
        return Err(CommandError::Command(REJECTED).into());
    }
    match unnamed > 0 || explanations.iter().any(|it| it.verdict == Code::UnknownJob) {
        true => Err(CommandError::Command(NOT_FOUND).into()),
        false => Ok(()),
    }
}

async fn snapshot(ctx: &Context, board: &dyn Board) -> anyhow::Result<Snapshot> {
    let (snapshot, moves) = tokio::join!(read_snapshot(&ctx.config, board), board.moves());
    let mut snapshot = snapshot?;
    let added = snapshot.add_moves(moves);
    added.with_context(|| ctx.trying("read", "the moves"))?;
    Ok(snapshot)
}

pub(super) async fn explained(
    ctx: &Context,
    board: &dyn Board,
    wanted: &JobRef,
) -> anyhow::Result<Explanation> {
    let snapshot = snapshot(ctx, board).await?;
    let explained = explain(board, &snapshot, wanted).await;
    let explained = explained.with_context(|| ctx.trying("explain", wanted))?;
    let mut explained = explained.on(&ctx.program());
    if ctx.config.read_only.value {
        explained.findings.iter_mut().for_each(Problem::omit_change);
    }
    Ok(explained)
}

fn unseen(what: &str, error: &BoardError) -> String {
    format!("{what}: {}", chain(error))
}

async fn explain(
    board: &dyn Board,
    snapshot: &Snapshot,
    wanted: &JobRef,
) -> Result<Explanation, BoardError> {
    let mut hidden = Vec::new();
    for (location, name) in [
        (Location::Board, "the board"),
        (Location::Trash, "the trash"),
        (Location::History, "the history"),
    ] {
        match board.resolve_one(location, wanted).await {
            Ok(entry) => {
                let (mut entry, location) = match location {
                    Location::Trash => last_run(board, wanted, entry).await?,
                    Location::Board | Location::History => (entry, location),
                };
                if let Entry::Job(job) = &mut entry
                    && let (false, Ok(uuid)) =
                        (location == Location::History, job.reference().parse())
                {
                    let alike = board.find(location, &[uuid]).await?;
                    job.is_misnamed |= alike.concat().len() > 1;
                }
                let mut explanation = recheck_claim(board, snapshot, &entry, location).await?;
                explanation.unseen.append(&mut hidden);
                return Ok(explanation);
            }
            Err(BoardError::NoSuchJob) => {}
            Err(error @ BoardError::Ambiguous { .. }) => return Err(error),
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => hidden.push(unseen(name, &error)),
        }
    }
    let alike = match wanted {
        JobRef::Uuid(start) if hidden.is_empty() => suggest_key(board, start).await?,
        _ => None,
    };
    let has_peers = board.capabilities().has_peers();
    let (code, summary) = match (hidden.is_empty(), &alike) {
        (true, Some(_)) => (
            Code::UnknownJob,
            "no job has this uuid, but a record has this key".to_owned(),
        ),
        (true, None) => (
            Code::UnknownJob,
            CommandError::NotKnown { has_peers }.to_string(),
        ),
        (false, _) => (
            Code::Unavailable,
            "the job was not found in the readable parts of the board".to_owned(),
        ),
    };
    Ok(Explanation {
        job: wanted.to_string(),
        name: String::new(),
        verdict: code,
        will_run: false,
        findings: vec![Problem::new(code, summary).fixed_by(alike.map(Fix::look))],
        unseen: hidden,
    })
}

/// A job in the trash may have been posted again under its uuid, and have ended since.
async fn last_run(
    board: &dyn Board,
    wanted: &JobRef,
    trashed: Entry,
) -> Result<(Entry, Location), BoardError> {
    match board.resolve_one(Location::History, wanted).await {
        Ok(past) if ended_later(&past, &trashed) => Ok((past, Location::History)),
        Err(error) if error.is_retryable() => Err(error),
        _ => Ok((trashed, Location::Trash)),
    }
}

async fn suggest_key(board: &dyn Board, start: &str) -> Result<Option<Suggestion>, BoardError> {
    for location in Location::LIVE {
        let mut entries = board.entries(Query::all(location, Detail::Brief));
        while let Some(entry) = entries.try_next().await? {
            if entry.key().text().starts_with(start) {
                return Ok(Some(Suggestion::of("explain").with([entry.reference()])));
            }
        }
    }
    Ok(None)
}

/// Explains a job, after a second look if one does not suffice.
async fn recheck_claim(
    board: &dyn Board,
    snapshot: &Snapshot,
    entry: &Entry,
    location: Location,
) -> Result<Explanation, BoardError> {
    let mut explained = ExplainedJob {
        entry,
        location,
        is_late: false,
        before: None,
    };
    let judged = snapshot.judge(entry);
    if location != Location::Board {
        return Ok(snapshot.explain(&explained));
    }
    if let Some(pause) = judged.pause {
        let mut recheck = Recheck::default();
        recheck.add(entry, pause);
        let late = recheck.not_renewed(board, RECHECK_TIMEOUT).await?;
        explained.is_late = !late.is_empty();
        explained.entry = late.first().unwrap_or(entry);
        return Ok(snapshot.explain(&explained));
    }
    let mut unseen_here = None;
    if let Some(job) = entry.job().filter(|_| judged.main.code == Code::Waiting) {
        match time::timeout(RECHECK_TIMEOUT, count_before(board, job.rank(), snapshot)).await {
            Ok(Ok(before)) => explained.before = Some(before),
            Ok(Err(error)) if error.is_retryable() => return Err(error),
            Ok(Err(error)) => unseen_here = Some(unseen("the jobs that come first", &error)),
            Err(_) => {
                unseen_here = Some("the jobs that come first: counting takes too long".into())
            }
        }
    }
    let mut explanation = snapshot.explain(&explained);
    explanation.unseen.extend(unseen_here);
    Ok(explanation)
}

/// Counts the jobs that a conductor would take first.
async fn count_before(
    board: &dyn Board,
    rank: Rank,
    snapshot: &Snapshot,
) -> Result<u64, BoardError> {
    let mut entries = board.entries(Query {
        location: Location::Board,
        which: Which::Unclaimed,
        order: Order::Any,
        detail: Detail::Whole,
    });
    let mut before = 0;
    while let Some(entry) = entries.try_next().await? {
        let is_before = entry.job().is_some_and(|job| job.rank() < rank);
        before += u64::from(is_before && snapshot.judge(&entry).is_queued());
    }
    Ok(before)
}

impl Report for Explanation {
    fn human(&self, page: &mut Page) {
        let line = page.line().add(Tone::Strong, self.title()).plain("  ");
        let severity = self.findings.first().map(|it| it.severity);
        let tone = severity.map_or(Tone::Plain, problems::tone);
        line.add(tone, self.verdict.name());
        self.reasons(page, |_| true);
    }
}

impl Explanation {
    /// Prints everything but the title, with the evidence of these names.
    pub(super) fn reasons(&self, page: &mut Page, is_shown: impl Fn(&str) -> bool) {
        for (at, finding) in self.findings.iter().enumerate() {
            if at == 0 {
                page.sentence(2).plain("  ").plain(&finding.summary);
            } else {
                let tone = problems::tone(finding.severity);
                let line = page.sentence(4).plain("  ").add(tone, finding.code.name());
                line.plain(": ").plain(&finding.summary);
            }
            let most = if at == 0 { MAX_FACTS } else { 1 };
            let evidence = finding.evidence.iter().take(most);
            for evidence in evidence.filter(|it| is_shown(&it.what)) {
                let time = evidence.at.map(|at| format!(" ({})", rfc3339(at)));
                let value = format!("{}{}", evidence.value, time.unwrap_or_default());
                page.fact(&format!("  {}", evidence.what), &value);
            }
            if let Some(fix) = &finding.fix {
                let colon = if fix.command.is_some() { ":" } else { "" };
                page.facts("  next", fix.lead().map(|text| text + colon));
                if let Some(command) = &fix.command {
                    page.command("  ", command);
                }
            }
        }
        page.facts("  not checked", &self.unseen);
    }
}
