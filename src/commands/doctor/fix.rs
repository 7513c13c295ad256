//! `doctor --fix`: a plan, canaries and then the safest step first, and a question before each step.

use super::{
    ChosenCheck, DoctorArgs,
    plan::{FixPlan, FixStep},
};
use crate::{
    commands::{
        abandon::{self, AbandonArgs},
        bulk::{
            args::{RevivalArgs, SettleArgs},
            select::{PreviewArgs, Selection},
        },
        parts::reason::ReasonArgs,
        retry::{self, RetryArgs},
        trash::{self, TrashArgs},
    },
    context::{Consent, Context},
    exit::CommandError,
    output::{Format, Text, can_ask},
    problem::{Problem, Repair, Risk},
};

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
    // The answer is one document that includes the plan, unless the question will be refused.
    let is_refused = !plan.steps.is_empty() && !is_agreed(ctx, args) && !can_ask();
    let is_document = ctx.out.format() == Format::Json && !is_refused;
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

fn is_agreed(ctx: &Context, args: &DoctorArgs) -> bool {
    // The name of a protected board, typed in advance, agrees like --yes.
    let is_confirmed = ctx.config.board.value.is_protected && !args.consent.confirm.is_empty();
    args.consent.yes || ctx.config.yes.value || is_confirmed
}

async fn perform_all(
    ctx: &mut Context,
    args: &DoctorArgs,
    plan: &mut [FixStep],
) -> anyhow::Result<()> {
    let is_agreed = is_agreed(ctx, args);
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
    let done = match ctx.out.format() {
        // The one document may hold a report, but not one for each of many jobs.
        Format::Json => {
            ctx.out.withhold();
            let done = run(ctx, args, step, false).await;
            step.message = ctx.out.take_withheld();
            done
        }
        _ => run(ctx, args, step, false).await,
    };
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
