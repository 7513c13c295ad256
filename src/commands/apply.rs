//! `jobboard apply`.

use std::path::PathBuf;

use anyhow::Context as _;

use super::{
    bulk::{
        act::Pace,
        plan::{Plan, PlannedAction, PlannedMove},
        select::PreviewArgs,
        task::Task,
    },
    copy,
};
use crate::{
    context::{Consent, Context},
    exit::CommandError,
    transfer::lines::{LineReader, source},
    trust::require_ours,
};

/// Carry out a plan made with --plan
///
/// Acts on each job of the plan that is unchanged, and reports the other jobs as `skipped`. An interrupted run can be
/// repeated: jobs that are already changed are skipped. The audit entries record the plan's author and reason.
/// A plan that is truncated, altered, made for another board or writable by other users is refused as a whole.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Plan to carry out, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: String,

    /// With a plan of `copy --move`: file with the password of the target board
    #[arg(long, value_name = "FILE")]
    pub(super) to_password_file: Option<PathBuf>,

    /// Maximum rate: a number per second (5/s), minute (100/m) or hour (2/h)
    #[arg(long, value_name = "N/s", value_parser = Pace::parse)]
    rate: Option<Pace>,

    /// List the jobs that are unchanged, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: ApplyArgs) -> anyhow::Result<()> {
    let path = source(&ctx.config, &args.file)?;
    let preview = PreviewArgs {
        dry_run: args.dry_run,
        plan: None,
    };
    let board = preview.board(ctx)?;
    let max_details = ctx.config.max_details.value;
    let lines = LineReader::open(path.as_deref(), max_details)?;
    if let Some(path) = &path {
        // The plan decides which jobs change, under our name.
        let trying = || format!("cannot trust the plan {}", path.display());
        let trusted = require_ours(path).with_context(trying);
        trusted.map_err(|error| CommandError::of_config(&error))?;
    }
    let mut plan = Plan::read(lines).await?;
    plan.require(&*board)?;
    let action = match &plan.action {
        PlannedAction::Move(_) if args.rate.is_some() => {
            let message = "--rate does not apply to a plan of `copy --move`";
            return Err(CommandError::usage(message).into());
        }
        PlannedAction::Move(action) => {
            let planned = PlannedMove::new(action.clone(), plan);
            return copy::apply(
                ctx,
                planned,
                args.to_password_file,
                args.consent,
                args.dry_run,
            )
            .await;
        }
        PlannedAction::Bulk(_) if args.to_password_file.is_some() => {
            let message = "--to-password-file applies only to a plan of `copy --move`";
            return Err(CommandError::usage(message).into());
        }
        PlannedAction::Bulk(action) => action.clone(),
    };
    let (chosen, skipped) = plan.look_up(ctx, &*board, action.locations()).await?;
    let mut task = Task {
        action,
        who: plan.who,
        reason: plan.reason,
        chosen,
        pace: args.rate.clone().unwrap_or(Pace::FULL),
        resume: None,
    };
    if let (Some(_), Some(rate)) = (path, &args.rate) {
        let words = ["apply", &args.file, "--rate", &rate.text];
        task.resume = Some(ctx.program().with(words));
    }
    let Some(task) = task.agreed(ctx, &*board, &preview, &args.consent).await? else {
        return Ok(());
    };
    for done in &skipped {
        ctx.out.print(done)?;
    }
    task.carry_out(ctx, &*board).await
}
