//! `jobboard flow`.

mod position;
mod view;

use anyhow::Context as _;
use chrono::Utc;

pub(crate) use self::position::position;
use self::view::FlowView;
use super::{
    parts::{logbook::LogbookArgs, select::reference},
    show::look_everywhere,
};
use crate::{board::BoardError, context::Context, exit::CommandError};

/// Show how far a job of TaskFlow is: its tasks, and what failed
///
/// A job of TaskFlow is a flow of tasks, and its engine writes into a database how far each is. In a pipe
/// each line has, separated by tabs: task, kind, state, since, and why it failed. Which task waits for
/// which is not written there.
#[derive(Debug, clap::Args)]
pub(crate) struct FlowArgs {
    /// The job: a uuid or the beginning of one, @SEQUENCE, key:TEXT, unique:KEY, or - for standard
    /// input
    #[arg(value_name = "JOB")]
    job: String,

    #[command(flatten)]
    logbook: LogbookArgs,
}

pub(crate) async fn run(ctx: &mut Context, args: FlowArgs) -> anyhow::Result<()> {
    let wanted = reference(ctx, &args.job)?;
    let board = ctx.board()?;
    let trying = || ctx.trying("show the flow of", &wanted).with(&wanted);
    let found = look_everywhere(&*board, std::slice::from_ref(&wanted)).await;
    let mut found = found.with_context(trying)?;
    let entry = found
        .pop()
        .unwrap_or(Err(BoardError::NoSuchJob))
        .with_context(trying)?;
    let job = entry
        .job()
        .ok_or(BoardError::NoSuchJob)
        .with_context(trying)?;
    let Some(logbook) = args.logbook.open(ctx).await.with_context(trying)? else {
        let message = "nobody says which database has the logbooks of this board";
        let hint = "--logbook mysql://USER@HOST/DATABASE names it, as does `logbook` of the board in \
                    the configuration";
        return Err(CommandError::usage(message).hint(hint).into());
    };
    let Some(flow) = logbook.flow(job).await.with_context(trying)? else {
        let message = match &job.book {
            Some(_) => {
                "the database has no flow of it: whoever ran the job may have removed it at its end"
            }
            None => "it names no logbook, so that it has no flow",
        };
        return Err(CommandError::Nothing(message.to_owned())).with_context(trying);
    };
    let view = FlowView::new(job, &flow, Utc::now());
    ctx.out.report(&view)
}
