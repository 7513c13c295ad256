//! `doctor --fix`: a plan, canaries and then the safest step first, and a question before each step.

use serde::Serialize;
use serde_json::Value;

use super::{ChosenCheck, DoctorArgs};
use crate::{
    commands::{
        abandon::{self, AbandonArgs},
        bulk::{
            args::{RevivalArgs, SettleArgs},
            select::{PreviewArgs, Selection},
        },
        parts::{problems::scope, reason::ReasonArgs},
        retry::{self, RetryArgs},
        trash::{self, TrashArgs},
    },
    context::{Consent, Context},
    exit::CommandError,
    output::{Format, Page, Report, Text, Tone},
    problem::{Code, Problem, Repair, Risk},
    suggest::Suggestion,
};

#[derive(Debug, Clone, Serialize)]
pub(super) struct FixStep {
    code: Code,
    risk: Risk,
    jobs: u64,
    summary: String,
    command: Suggestion,
    /// `planned`, `done`, `failed`, `stopped` (by Ctrl-C or its time limit) or `skipped`.
    state: &'static str,
    #[serde(skip)]
    repair: Repair,
    /// The value of `--problem` that selects the jobs.
    #[serde(skip)]
    selector: String,
    #[serde(skip)]
    advice: String,
    /// Whether the operator agreed to this step at a question.
    #[serde(skip)]
    was_asked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
}

impl FixStep {
    fn has_canary(&self) -> bool {
        matches!(self.repair, Repair::Retry { canary: true })
    }

    /// Retries all jobs of the step immediately.
    fn drop_canary(&mut self) {
        self.repair = Repair::Retry { canary: false };
        let words = self.command.words().iter().cloned();
        let words = words.take_while(|word| word != "--canary");
        self.command = Suggestion::default().with(words);
        self.advice += "; without a canary, because no conductor has a free slot";
    }
}

#[derive(Debug, Serialize)]
pub(super) struct FixPlan {
    #[serde(rename = "plan")]
    pub(super) steps: Vec<FixStep>,
}

impl FixPlan {
    fn of(problems: &[Problem]) -> Self {
        let steps = problems.iter().filter_map(|it| {
            let fix = it.fix.as_ref()?;
            Some(FixStep {
                code: it.code,
                risk: fix.risk?,
                jobs: it.jobs,
                summary: scope(it),
                command: fix.command.clone()?,
                repair: fix.repair?,
                selector: it.selector.clone()?,
                state: "planned",
                advice: fix.text.clone().unwrap_or_default(),
                was_asked: false,
                message: None,
            })
        });
        Self::sorted(steps.collect())
    }

    fn sorted(mut steps: Vec<FixStep>) -> Self {
        // The other steps release jobs, which may take the slots that a canary needs.
        steps.sort_by_key(|it| (!it.has_canary(), it.risk));
        Self { steps }
    }

    fn count(&self, state: &str) -> usize {
        self.steps.iter().filter(|it| it.state == state).count()
    }

    pub(super) fn has_run(&self) -> bool {
        self.steps.iter().any(|it| it.state != "skipped")
    }

    /// Counts the steps, and names those that failed or stopped, with the command that continues each.
    pub(super) fn summary(&self) -> Vec<String> {
        let states = ["done", "failed", "stopped", "skipped"];
        let counts = states.map(|state| (self.count(state), state));
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts
            .map(|(count, state)| format!("{count} {state}"))
            .collect();
        let counts = format!("steps: {}", counts.join(", "));
        let steps = self.steps.iter().zip(1..);
        let open = steps.filter(|(it, _)| ["failed", "stopped"].contains(&it.state));
        let open = open.flat_map(|(step, number)| {
            let (state, summary) = (step.state, &step.summary);
            let step_in_words = format!("step {number} {state} ({summary}); to continue:");
            [step_in_words, format!("   {}", step.command)]
        });
        [counts].into_iter().chain(open).collect()
    }

    pub(super) fn result(&self) -> anyhow::Result<()> {
        CommandError::partly("steps", self.count("failed"), self.steps.len())
    }
}

impl Report for FixPlan {
    fn human(&self, page: &mut Page) {
        for (at, step) in self.steps.iter().enumerate() {
            let tone = match step.risk {
                Risk::Safe => Tone::Good,
                Risk::Decision => Tone::Warning,
                Risk::Destructive => Tone::Bad,
            };
            let line = page.sentence(3).plain(format!("{}. ", at + 1));
            let line = line.add(tone, step.risk.name());
            line.plain(format!("  {}", step.summary));
            page.command("   ", &step.command);
        }
    }
}

/// Maximum width of a heading: three lines, less the columns that word wrap may leave empty.
const HEADING: usize = 270;

const ANSWERS: &str = "[y]es [n]o [a]ll safe [s]how [q]uit, then Enter";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepAnswer {
    Yes,
    No,
    All,
    Show,
    Quit,
}

fn heading(step: &FixStep, number: usize, total: usize) -> String {
    let risk = match step.risk {
        Risk::Destructive => "destructive; ",
        Risk::Safe | Risk::Decision => "",
    };
    let (start, end) = (
        format!("{number} of {total}. "),
        format!(" ({risk}{})", step.advice),
    );
    let room = HEADING.saturating_sub(start.len() + end.len());
    format!("{start}{}{end}", Text::from(&step.summary).cut(room))
}

fn ask(ctx: &Context, heading: &str) -> Option<StepAnswer> {
    let question = format!("{heading}:");
    loop {
        let answer = ctx.out.ask(question.as_str(), ANSWERS)?;
        match answer.to_lowercase().as_str() {
            "y" | "yes" => return Some(StepAnswer::Yes),
            "n" | "no" | "" => return Some(StepAnswer::No),
            "a" | "all" => return Some(StepAnswer::All),
            "s" | "show" => return Some(StepAnswer::Show),
            "q" | "quit" => return Some(StepAnswer::Quit),
            _ => ctx.out.note("answer y, n, a, s or q"),
        }
    }
}

/// Runs the steps that the operator agrees to; `None` only shows the plan.
pub(super) async fn fix(
    ctx: &mut Context,
    args: &DoctorArgs,
    found: &[Problem],
) -> anyhow::Result<Option<FixPlan>> {
    let mut plan = FixPlan::of(found);
    if plan.steps.is_empty() {
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
    if !plan.steps.is_empty() {
        ctx.writable_board()?;
        ctx.confirm_protected(&[&ctx.config], &args.consent, "run these steps?")?;
        perform_all(ctx, args, &mut plan.steps).await?;
    }
    Ok(Some(plan))
}

async fn perform_all(
    ctx: &mut Context,
    args: &DoctorArgs,
    plan: &mut [FixStep],
) -> anyhow::Result<()> {
    // The name of a protected board, typed in advance, agrees like --yes.
    let is_confirmed = ctx.config.board.value.is_protected && !args.consent.confirm.is_empty();
    let is_agreed = args.consent.yes || ctx.config.yes.value || is_confirmed;
    let (mut all, total) = (false, plan.len());
    plan.iter_mut().for_each(|step| step.state = "skipped");
    let mut is_full = false;
    for (step, number) in plan.iter_mut().zip(1..) {
        if is_full && step.has_canary() {
            step.drop_canary();
        }
        let (code, heading) = (step.code, heading(step, number, total));
        if is_agreed && step.risk > Risk::Safe && !args.only.contains(&ChosenCheck::Code(code)) {
            let command = step.command.clone().with(["--yes"]);
            let risk = match step.risk {
                Risk::Destructive => "is destructive",
                Risk::Safe | Risk::Decision => "needs a decision",
            };
            let note = format!("step {number} {risk}; to run it: `{command}`");
            ctx.out.note(note);
            continue;
        }
        // The operator answered `a` before seeing the steps that need a decision.
        let answer = match is_agreed || (all && step.risk == Risk::Safe) {
            true => {
                ctx.out.note(heading);
                StepAnswer::Yes
            }
            false => decide(ctx, args, &heading, step).await?,
        };
        all |= answer == StepAnswer::All;
        match answer {
            StepAnswer::Quit => break,
            StepAnswer::Yes | StepAnswer::All => {
                step.was_asked = !is_agreed;
                is_full |= perform(ctx, args, step).await;
            }
            StepAnswer::No | StepAnswer::Show => {}
        }
    }
    Ok(())
}

async fn decide(
    ctx: &mut Context,
    args: &DoctorArgs,
    heading: &str,
    step: &FixStep,
) -> anyhow::Result<StepAnswer> {
    loop {
        match ask(ctx, heading) {
            Some(StepAnswer::Show) => run(ctx, args, step, true).await?,
            Some(answer) => return Ok(answer),
            None => {
                let message = "stdin is not a terminal, so nothing was changed";
                let hint = "add `--yes` to run the safe steps";
                return Err(CommandError::refused(message).hint(hint).into());
            }
        }
    }
}

/// Returns whether no conductor had a free slot for the canary.
async fn perform(ctx: &mut Context, args: &DoctorArgs, step: &mut FixStep) -> bool {
    if ctx.out.format() == Format::Json {
        ctx.out.collect();
    }
    let done = run(ctx, args, step, false).await;
    let reports = <[Value; 1]>::try_from(ctx.out.take_collected());
    step.message = reports.ok().map(|[only]| only);
    let Err(error) = done else {
        step.state = "done";
        return false;
    };
    let reason = error.downcast_ref();
    // Ctrl-C stopped the command, which then named the remaining jobs.
    if !matches!(reason, Some(CommandError::Command(_))) {
        ctx.print_error(&error);
    }
    step.state = match reason {
        Some(CommandError::Command(_) | CommandError::TimedOut(_) | CommandError::NoSlot(_)) => {
            "stopped"
        }
        _ => "failed",
    };
    let is_full = matches!(reason, Some(CommandError::NoSlot(_)));
    if is_full {
        step.drop_canary();
    }
    is_full
}

async fn run(
    ctx: &mut Context,
    args: &DoctorArgs,
    step: &FixStep,
    dry_run: bool,
) -> anyhow::Result<()> {
    let board = &ctx.config.board.value;
    let confirm = board.name.iter().filter(|_| board.is_protected);
    let consent = Consent {
        yes: !dry_run,
        confirm: confirm.cloned().collect(),
    };
    let selection = Selection {
        problem: Some(step.selector.parse().map_err(anyhow::Error::msg)?),
        // The operator did not agree to jobs that appeared after the question.
        max: (!dry_run).then(|| usize::try_from(step.jobs).unwrap_or(usize::MAX)),
        preview: PreviewArgs {
            dry_run,
            plan: None,
        },
        ..Selection::default()
    };
    let suggested = match step.repair {
        Repair::Trash { reason } => reason,
        Repair::Abandon { .. } | Repair::Retry { .. } => None,
    };
    // All steps record the same reason, so the code shows which step acted on a job.
    let given = args.reason.as_ref();
    let reason = given.map(|given| format!("{given} ({})", step.code));
    let reason = reason.or(suggested.map(str::to_owned));
    let reason = ReasonArgs { reason };
    match step.repair {
        Repair::Abandon { now } => {
            let settle = SettleArgs::by_force(selection, reason, consent);
            abandon::run(ctx, AbandonArgs { settle, now }).await
        }
        Repair::Trash { .. } => {
            let settle = SettleArgs::by_force(selection, reason, consent);
            let failed = false;
            trash::run(ctx, TrashArgs { failed, settle }).await
        }
        Repair::Retry { canary } => {
            let revival = RevivalArgs {
                selection,
                reason,
                consent,
                ..RevivalArgs::default()
            };
            retry::run(ctx, RetryArgs::of(revival, canary, step.was_asked)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(repair: Repair, risk: Risk, command: &'static str) -> FixStep {
        FixStep {
            code: Code::Failed,
            risk,
            jobs: 2,
            summary: "failed: 2 jobs".to_owned(),
            command: Suggestion::of(command),
            state: "planned",
            repair,
            selector: "failed".to_owned(),
            advice: "after fixing the cause".to_owned(),
            was_asked: false,
            message: None,
        }
    }

    #[test]
    fn canary_takes_its_slot_before_jobs_are_released() {
        let release = Repair::Abandon { now: false };
        let canary = Repair::Retry { canary: true };
        let plan = FixPlan::sorted(vec![
            step(release, Risk::Safe, "abandon --problem owner-dead"),
            step(canary, Risk::Decision, "retry --problem failed --canary 1"),
            step(Repair::Retry { canary: false }, Risk::Decision, "retry"),
        ]);
        let first: Vec<_> = plan.steps.iter().map(|it| &it.command.words()[0]).collect();
        assert_eq!(first, ["retry", "abandon", "retry"]);
        assert!(plan.steps[0].has_canary());
    }

    #[test]
    fn retry_without_a_slot_needs_no_canary() {
        let canary = Repair::Retry { canary: true };
        let mut step = step(canary, Risk::Decision, "retry --problem failed --canary 1");
        step.drop_canary();
        assert!(!step.has_canary());
        assert_eq!(step.command.to_string(), "retry --problem failed");
        assert!(step.advice.contains("no conductor has a free slot"));
    }
}
