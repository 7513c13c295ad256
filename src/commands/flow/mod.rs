//! `jobboard flow`.

mod view;

use anyhow::Context as _;
use chrono::Utc;

use self::view::FlowView;
use super::{
    bulk::references::{Scope, reference},
    parts::logbook::LogbookArgs,
    show::find_everywhere,
};
use crate::{
    board::{BoardError, ext::the_answer},
    context::Context,
    exit::{CommandError, verb},
};

/// Show the progress of a TaskFlow job: its tasks and failures
///
/// A TaskFlow job is a flow of tasks, and its engine records the progress of each task in a database. The
/// database does not record the dependencies between tasks.
#[derive(Debug, clap::Args)]
pub(crate) struct FlowArgs {
    /// Job: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read one from standard input
    #[arg(value_name = "JOB")]
    job: String,

    #[command(flatten)]
    logbook: LogbookArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: FlowArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let wanted = reference(ctx, &*board, Scope::board("flow"), &args.job).await?;
    let trying = || ctx.trying(verb::SHOW_FLOW, &wanted).with(&wanted);
    let found = find_everywhere(&*board, std::slice::from_ref(&wanted)).await;
    let found = found.and_then(|it| the_answer(&*board, it));
    let entry = found.with_context(trying)?;
    let job = entry.job().ok_or(BoardError::NoSuchJob);
    let job = job.with_context(trying)?;
    let Some(logbook) = args.logbook.open(ctx).await.with_context(trying)? else {
        let message = "the logbook database of this board is not configured";
        let hint = "use --logbook mysql://USER@HOST/DATABASE, or set `logbook` for the board in the configuration";
        return Err(CommandError::usage(message).hint(hint).into());
    };
    let Some(flow) = logbook.flow(job).await.with_context(trying)? else {
        let message = match &job.book {
            Some(_) => {
                "the database has no flow for this job; its worker may have removed the flow at the end"
            }
            None => "the job refers to no logbook and so has no flow",
        };
        return Err(CommandError::Nothing(message.to_owned())).with_context(trying);
    };
    let view = FlowView::new(job, &flow, Utc::now());
    ctx.out.report(&view)
}
