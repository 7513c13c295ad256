//! `jobboard explain`.

mod finding;
mod flows;
mod gone;
mod held;
mod scene;
mod takers;
mod waiting;
mod worst;

use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound, Utc};
use futures_util::TryStreamExt;
use tokio::time;

pub(crate) use self::{
    finding::{Code, Evidence, Explanation, Finding, Severity},
    scene::Scene,
    worst::Worst,
};
use self::{scene::Case, takers::Taker, worst::WORST};
use super::{
    bulk::references::references_or_names,
    parts::{logbook::LogbookArgs, octavia::AboutArgs, tally::apart},
};
use crate::{
    board::{Board, BoardError, BoardExt, Detail, JobRef, Order, Query, Which},
    context::Context,
    exit::{CommandError, chain},
    job::{Conductor, Entry, Pauses, Rank, Shelf},
    output::Format,
};

const PATIENCE: Duration = Duration::from_secs(2);

/// The time between the two checks of a claim.
const PAUSE: Duration = Duration::from_secs(1);

/// Explain the state of a job and the command that helps
///
/// Without JOB, explains the ten most urgent jobs that will not run without help. The verdict uses the
/// conductors' own rules and the policies that they publish. If a claim seems not to be renewed, the command
/// looks twice. Nothing is changed. `jobboard help troubleshooting` explains each verdict.
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Jobs: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
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
        about: AboutArgs::default(),
        logbook: LogbookArgs::default(),
    };
    run(ctx, args).await
}

pub(crate) async fn run(ctx: &mut Context, args: ExplainArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let named = references_or_names(ctx, &*board, &args.jobs).await?;
    let wanted = match args.about.is_given() {
        true => args.about.jobs(ctx, &*board).await?,
        false => named,
    };
    let asks_for_all = args.jobs.is_empty() && !args.about.is_given();
    let now = Utc::now().trunc_subsecs(6);
    let scene = Scene::of(ctx, &*board, now).await?;
    let mut explanations = match asks_for_all {
        true => worst(ctx, &*board, &scene).await?,
        false => {
            let mut explanations = Vec::new();
            for wanted in &wanted {
                let explained = explain(&*board, &scene, wanted).await;
                explanations.push(explained.with_context(|| ctx.trying("explain", wanted))?);
            }
            explanations
        }
    };
    flows::add(ctx, &args.logbook, &*board, (&mut explanations, &scene)).await?;
    match explanations.as_slice() {
        [one] if wanted.len() == 1 => ctx.out.report(one)?,
        several => ctx.out.reports(several)?,
    }
    if asks_for_all && explanations.is_empty() && ctx.out.format() == Format::Table {
        ctx.out.note("no job on the board needs help");
    }
    let has = |code| explanations.iter().any(|it| it.verdict == code);
    if explanations
        .iter()
        .any(|it| it.needs_help() && it.verdict != Code::NotKnown)
    {
        return Err(CommandError::Command(4).into());
    }
    match has(Code::NotKnown) {
        true => Err(CommandError::Command(3).into()),
        false => Ok(()),
    }
}

pub(super) async fn explained(
    ctx: &Context,
    board: &dyn Board,
    wanted: &JobRef,
) -> anyhow::Result<Explanation> {
    let scene = Scene::of(ctx, board, Utc::now().trunc_subsecs(6)).await?;
    let explained = explain(board, &scene, wanted).await;
    explained.with_context(|| ctx.trying("explain", wanted))
}

impl Scene {
    async fn of(ctx: &Context, board: &dyn Board, now: DateTime<Utc>) -> anyhow::Result<Self> {
        let trying = |what| move || ctx.trying("read", what);
        let (pauses, conductors) = ("the pauses", "the conductors");
        let (paused, problem) = apart(board.pauses().await).with_context(trying(pauses))?;
        let mut unseen: Vec<_> = problem
            .map(|why| format!("{pauses}: {why}"))
            .into_iter()
            .collect();
        let (known, problem) = apart(board.conductors().await).with_context(trying(conductors))?;
        unseen.extend(problem.map(|why| format!("{conductors}: {why}")));
        let pauses = Pauses::new(paused.unwrap_or_default(), now);
        let scene = Self::new(ctx, board, now);
        Ok(scene.knowing(pauses, known.unwrap_or_default(), unseen))
    }

    pub(crate) fn new(ctx: &Context, board: &dyn Board, now: DateTime<Utc>) -> Self {
        let capabilities = board.capabilities();
        Self {
            now,
            program: ctx.program(),
            takers: Vec::new(),
            pauses: Pauses::default(),
            octavia_expiry: ctx.config.board.value.octavia_expiry(),
            has_peers: capabilities.has_peers(),
            sees_peers: !capabilities.has_expiring_claims,
            unseen: Vec::new(),
        }
    }

    pub(crate) fn knowing(
        self,
        pauses: Pauses,
        conductors: Vec<Conductor>,
        unseen: Vec<String>,
    ) -> Self {
        let takers = conductors.into_iter().map(Taker::new).collect();
        Self {
            takers,
            pauses,
            unseen,
            ..self
        }
    }
}

fn unseen(what: &str, error: &BoardError) -> String {
    format!("{what}: {}", chain(error))
}

async fn explain(
    board: &dyn Board,
    scene: &Scene,
    wanted: &JobRef,
) -> Result<Explanation, BoardError> {
    let mut hidden = Vec::new();
    for (shelf, name) in [
        (Shelf::Board, "the board"),
        (Shelf::Trash, "the trash"),
        (Shelf::Past, "the history"),
    ] {
        match board.resolve_one(shelf, wanted).await {
            Ok(mut entry) => {
                if let Entry::Job(job) = &mut entry
                    && let (false, Ok(uuid)) = (shelf == Shelf::Past, job.reference().parse())
                {
                    let alike = board.find(shelf, &[uuid]).await?;
                    job.is_misnamed |= alike.concat().len() > 1;
                }
                let mut explanation = look_closer(board, scene, &entry, shelf).await?;
                explanation.unseen.append(&mut hidden);
                return Ok(explanation);
            }
            Err(BoardError::NoSuchJob) => {}
            Err(error @ BoardError::Ambiguous { .. }) => return Err(error),
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => hidden.push(unseen(name, &error)),
        }
    }
    let (code, summary) = match hidden.is_empty() {
        true => (Code::NotKnown, not_known(scene)),
        false => (
            Code::Unseen,
            "the job was not found in the readable parts of the board".to_owned(),
        ),
    };
    Ok(Explanation {
        job: wanted.to_string(),
        name: String::new(),
        verdict: code,
        will_run: false,
        findings: vec![Finding::new(code, Severity::Warning, summary)],
        unseen: hidden,
        like: None,
    })
}

fn not_known(scene: &Scene) -> String {
    let peers = match scene.has_peers {
        true => ", a Python service consumed it,",
        false => "",
    };
    format!("no such job: it was never posted here{peers} or it left the history")
}

/// Explains a job, after a second look if one does not suffice.
async fn look_closer(
    board: &dyn Board,
    scene: &Scene,
    entry: &Entry,
    shelf: Shelf,
) -> Result<Explanation, BoardError> {
    let mut case = Case {
        shelf,
        ..Case::first(entry)
    };
    if shelf != Shelf::Board {
        return Ok(scene.explain(&case));
    }
    if scene.is_doubtful(entry) {
        time::sleep(PAUSE).await;
        let key = JobRef::Key(entry.key().clone());
        let Ok(again) = board.resolve_one(Shelf::Board, &key).await else {
            return Ok(scene.explain(&case));
        };
        case.has_aged = Some(left(&again) < left(entry));
        case.entry = &again;
        return Ok(scene.explain(&case));
    }
    let mut unseen_here = None;
    if scene.is_crowded(entry)
        && let Some(job) = entry.job()
    {
        match time::timeout(PATIENCE, count_before(board, job.rank(), scene)).await {
            Ok(Ok(before)) => case.before = Some(before),
            Ok(Err(error)) if error.is_retryable() => return Err(error),
            Ok(Err(error)) => unseen_here = Some(unseen("the jobs that come first", &error)),
            Err(_) => {
                unseen_here = Some("the jobs that come first: counting takes too long".into())
            }
        }
    }
    let mut explanation = scene.explain(&case);
    explanation.unseen.extend(unseen_here);
    Ok(explanation)
}

async fn count_before(board: &dyn Board, rank: Rank, scene: &Scene) -> Result<u64, BoardError> {
    let mut entries = board.entries(Query {
        shelf: Shelf::Board,
        which: Which::Unclaimed,
        order: Order::Any,
        detail: Detail::Brief,
    });
    let mut before = 0;
    while let Some(entry) = entries.try_next().await? {
        let Entry::Job(job) = entry else { continue };
        let waits = job.history.not_before.is_some_and(|time| time > scene.now);
        before += u64::from(job.rank() < rank && job.may_be_offered() && !waits);
    }
    Ok(before)
}

/// Explains the worst of the jobs that need help, and counts the others.
async fn worst(
    ctx: &Context,
    board: &dyn Board,
    scene: &Scene,
) -> anyhow::Result<Vec<Explanation>> {
    let trying = || ctx.trying("read", "the board");
    let mut worst = Worst::default();
    let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
    while let Some(entry) = entries.try_next().await.with_context(trying)? {
        worst.add(scene, &entry);
    }
    drop(entries);
    let (explanations, counts) = worst.finish(board, scene).await.with_context(trying)?;
    let all = counts.iter().map(|(_, count)| count).sum::<u64>();
    if all > WORST as u64 {
        let counts = counts.iter().map(|(code, count)| format!("{code} {count}"));
        let counts: Vec<_> = counts.collect();
        let shown = explanations.len();
        ctx.out.note(format!(
            "{shown} of {all} jobs shown: {}",
            counts.join(", ")
        ));
    }
    Ok(explanations)
}

fn left(entry: &Entry) -> Option<Duration> {
    entry.holding().and_then(|holding| holding.expires_in)
}
