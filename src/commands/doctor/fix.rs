//! Mending what commands of ours mend: a plan that somebody agrees to, then step by step.

use anyhow::Context as _;
use clap::Parser as _;
use serde::Serialize;

use super::{Chosen, DoctorArgs, examine, report::Diagnosis};
use crate::{
    board::examine::Code,
    commands::{Cli, dispatch},
    context::Context,
    exit::CommandError,
    output::{Page, Record, Report, Tone},
    shell,
};

/// One thing to do.
#[derive(Debug, Clone, Serialize)]
struct Step {
    code: Code,
    summary: String,
    command: Vec<String>,
}

/// What is going to be done.
#[derive(Debug, Serialize)]
struct Plan {
    plan: Vec<Step>,
}

impl Plan {
    fn of(diagnosis: &Diagnosis) -> Self {
        let steps = diagnosis.findings.iter().filter_map(|it| {
            Some(Step {
                code: it.code,
                summary: it.summary.clone(),
                command: it.step()?.to_vec(),
            })
        });
        Self {
            plan: steps.collect(),
        }
    }

    /// Whether a step, or one about more jobs, was agreed to.
    fn has(&self, step: &Step) -> bool {
        let mut planned = self.plan.iter().filter(|it| it.code == step.code);
        planned.any(|it| step.command.iter().all(|word| it.command.contains(word)))
    }
}

impl Step {
    fn text(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| shell::word(word)).collect();
        words.join(" ")
    }
}

impl Record for Plan {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let line = |it: &Step| vec![it.code.name().to_owned(), it.summary.clone(), it.text()];
        self.plan.iter().map(line).collect()
    }
}

impl Report for Plan {
    fn human(&self, page: &mut Page) {
        for (at, step) in self.plan.iter().enumerate() {
            page.line().plain(format!("{}. {}", at + 1, step.summary));
            page.line().plain("   ").add(Tone::Strong, step.text());
        }
    }
}

/// Does what was found to be mended by commands of ours, each only if it is still so.
pub(super) async fn fix(
    ctx: &mut Context,
    args: &DoctorArgs,
    found: &Diagnosis,
) -> anyhow::Result<()> {
    let plan = Plan::of(found);
    if plan.plan.is_empty() {
        ctx.out
            .note("there is nothing that jobboard can mend by itself");
        return Ok(());
    }
    ctx.out.report(&plan)?;
    if args.dry_run {
        return Ok(());
    }
    let board = ctx.writable_board()?;
    let question = match plan.plan.len() {
        1 => "do this step?".to_owned(),
        steps => format!("do these {steps} steps?"),
    };
    ctx.consent(&args.consent, &question)?;
    let mut codes: Vec<_> = plan.plan.iter().map(|step| step.code).collect();
    codes.dedup();
    let mut failed = 0;
    for code in codes {
        // What somebody else has mended by now is left alone.
        let only = DoctorArgs {
            only: vec![Chosen::Code(code)],
            ..DoctorArgs::default()
        };
        let now = Plan::of(&examine(ctx, &*board, &only).await?);
        for step in now.plan.into_iter().filter(|step| plan.has(step)) {
            if let Err(error) = perform(ctx, args, &step).await {
                failed += 1;
                ctx.tell(&error);
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(CommandError::Partly {
            failed,
            total: plan.plan.len(),
        }
        .into()),
    }
}

/// Does a step as if it was typed, and agreed to.
async fn perform(ctx: &mut Context, args: &DoctorArgs, step: &Step) -> anyhow::Result<()> {
    let yes = ["--yes".to_owned()];
    let protected = ctx.config.board.value.is_protected;
    let name = ctx.config.board.value.name.clone().filter(|_| protected);
    let confirmed = name.map(|name| ["--confirm".to_owned(), name]);
    let by = args.reason.iter().cloned().collect::<Vec<_>>();
    let reason = by.into_iter().flat_map(|why| ["--reason".to_owned(), why]);
    let words = step.command.iter().cloned().chain(yes).chain(reason);
    let words = words.chain(confirmed.into_iter().flatten());
    let cli = Cli::try_parse_from(words).with_context(|| format!("cannot do `{}`", step.text()))?;
    Box::pin(dispatch(ctx, cli.command)).await
}
