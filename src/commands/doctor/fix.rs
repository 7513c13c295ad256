//! `doctor --fix`: confirms a plan, then runs it step by step.

use anyhow::Context as _;
use clap::Parser as _;
use serde::Serialize;
use serde_json::Value;

use super::{
    DoctorArgs,
    look::mends,
    report::{Diagnosis, FIT},
};
use crate::{
    board::{Board, JobRef, examine::Code},
    commands::{Cli, dispatch},
    context::Context,
    exit::CommandError,
    job::{Entry, Shelf},
    output::{Format, Page, Record, Report, Tone},
    suggest::Suggestion,
};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    code: Code,
    summary: String,
    command: Suggestion,
    /// The only jobs of this step.
    jobs: Vec<String>,
    /// The output of the command, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Fixed {
    pub(super) steps: Vec<Step>,
    failed: usize,
}

impl Fixed {
    pub(super) fn result(&self) -> anyhow::Result<()> {
        match (self.failed, self.steps.len()) {
            (0, _) => Ok(()),
            (failed, total) => Err(CommandError::Partly { failed, total }.into()),
        }
    }
}

#[derive(Debug, Serialize)]
struct Plan {
    plan: Vec<Step>,
}

impl Plan {
    fn of(diagnosis: &Diagnosis) -> Self {
        let steps = diagnosis.findings.iter().filter_map(|it| {
            let (command, jobs) = it.step()?;
            Some(Step {
                code: it.code,
                summary: it.summary.clone(),
                command: Suggestion::default().with(command),
                jobs: jobs.to_vec(),
                message: None,
            })
        });
        Self {
            plan: steps.collect(),
        }
    }
}

impl Step {
    fn text(&self) -> String {
        let jobs = self.jobs.iter().take(FIT);
        self.command.clone().with(jobs).to_string()
    }

    /// Returns the title, with the number of jobs that its command does not name.
    fn title(&self) -> String {
        match self.jobs.len().saturating_sub(FIT) {
            0 => self.summary.clone(),
            more => format!("{}; these, and {more} more", self.summary),
        }
    }

    /// Returns the jobs that still need the step.
    async fn left(&self, board: &dyn Board) -> anyhow::Result<Vec<String>> {
        let parsed = self.jobs.iter().map(|job| job.parse());
        let references: Vec<JobRef> = parsed.collect::<Result<_, _>>()?;
        let found = board.find(Shelf::Board, &references).await?;
        // Read after the claims: an owner may be back.
        let conductors = board.conductors().await.ok();
        let is_so = |found: &[Entry]| match found {
            [entry] => mends(entry, conductors.as_deref()) == Some(self.code),
            _ => false,
        };
        let pairs = self.jobs.iter().zip(found);
        Ok(pairs
            .filter(|(_, found)| is_so(found))
            .map(|(job, _)| job.clone())
            .collect())
    }
}

impl Record for Plan {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let line = |it: &Step| vec![it.code.name().to_owned(), it.title(), it.text()];
        self.plan.iter().map(line).collect()
    }
}

impl Report for Plan {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        for (at, step) in self.plan.iter().enumerate() {
            page.line().plain(format!("{}. {}", at + 1, step.title()));
            page.line().plain("   ").add(Tone::Strong, step.text());
        }
    }
}

/// Runs the fixing commands, each only if the problem still exists.
///
/// `None` only shows the plan.
pub(super) async fn fix(
    ctx: &mut Context,
    args: &DoctorArgs,
    found: &Diagnosis,
) -> anyhow::Result<Option<Fixed>> {
    let mut plan = Plan::of(found);
    if plan.plan.is_empty() {
        ctx.out.note("nothing to fix automatically");
    }
    // The answer is one document that includes the plan.
    let is_document = ctx.out.format() == Format::Json;
    if args.dry_run || !is_document {
        ctx.out.report(&plan)?;
    }
    if args.dry_run {
        return Ok(None);
    }
    if plan.plan.is_empty() {
        let steps = Vec::new();
        return Ok(Some(Fixed { steps, failed: 0 }));
    }
    let board = ctx.writable_board()?;
    let question = match plan.plan.len() {
        1 => "run this step?".to_owned(),
        steps => format!("run these {steps} steps?"),
    };
    ctx.consent(&args.consent, &question)?;
    let mut failed = 0;
    for step in &mut plan.plan {
        if is_document {
            ctx.out.keep_aside();
        }
        let done = perform(ctx, args, &*board, step).await;
        step.message = serde_json::from_slice(&ctx.out.take_aside()).ok();
        if let Err(error) = done {
            failed += 1;
            ctx.tell(&error);
        }
    }
    let steps = plan.plan;
    Ok(Some(Fixed { steps, failed }))
}

/// Runs a step as a confirmed command line.
async fn perform(
    ctx: &mut Context,
    args: &DoctorArgs,
    board: &dyn Board,
    step: &Step,
) -> anyhow::Result<()> {
    let left = step.left(board).await;
    let left = left.with_context(|| ctx.trying("read", "the affected jobs"))?;
    if left.len() < step.jobs.len() {
        let by_now = step.jobs.len() - left.len();
        ctx.out.note(format!(
            "no longer affected, skipped: {by_now} of {}",
            step.jobs.len()
        ));
    }
    if left.is_empty() {
        return Ok(());
    }
    let yes = ["--yes".to_owned()];
    let protected = ctx.config.board.value.is_protected;
    let name = ctx.config.board.value.name.clone().filter(|_| protected);
    let confirmed = name.map(|name| ["--confirm".to_owned(), name]);
    let reason = (args.reason.clone().into_iter()).flat_map(|why| ["--reason".to_owned(), why]);
    let words = step.command.words().iter().cloned().chain(left);
    let words = words.chain(yes).chain(reason);
    let words = words.chain(confirmed.into_iter().flatten());
    let cli =
        Cli::try_parse_from(words).with_context(|| format!("cannot run `{}`", step.text()))?;
    Box::pin(dispatch(ctx, cli.command)).await
}
