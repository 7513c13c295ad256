//! `jobboard restore`.

use chrono::{DateTime, Utc};

use super::{
    bulk::{
        action::Action,
        select::{Choice, Chosen, Selection, confirm},
        shared_trash::SharedArgs,
        task::Task,
    },
    parts::{logbook::BooklessArgs, reason::ReasonArgs},
};
use crate::{
    board::{Board, BoardError},
    context::{Consent, Context},
    job::{Entry, Origin},
};

/// Move trashed jobs back to the board
///
/// The jobs become UNCLAIMED, and their attempts restart from zero.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    revival: RevivalArgs,
}

/// The jobs that become claimable again.
#[derive(Debug, Default, clap::Args)]
pub(super) struct RevivalArgs {
    #[command(flatten)]
    pub(super) selection: Selection,

    #[command(flatten)]
    pub(super) shared: SharedArgs,

    #[command(flatten)]
    pub(super) bookless: BooklessArgs,

    /// Include jobs that a former owner may still be running
    ///
    /// After a forced release, a job is refused until the old claim would have expired. Use --now only if you know that
    /// its command has ended.
    #[arg(long)]
    pub(super) now: bool,

    #[command(flatten)]
    pub(super) reason: ReasonArgs,

    #[command(flatten)]
    pub(super) consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: RestoreArgs) -> anyhow::Result<()> {
    let revival = args.revival;
    revival.selection.require()?;
    let board = revival.selection.preview.board(ctx)?;
    let (now, ends_wait) = (Utc::now(), revival.now);
    let fits = |entry: &Entry| match ends_wait {
        true => Ok(()),
        false => require_end_of_command(entry, now),
    };
    let task = revival.task(ctx, &*board, Action::Restore, fits).await?;
    match revival.agreed(ctx, &*board, task).await? {
        Some(task) => task.carry_out(ctx, &*board).await,
        None => Ok(()),
    }
}

/// Refuses a job that its former owner may still run after a forced release.
pub(super) fn require_end_of_command(entry: &Entry, now: DateTime<Utc>) -> Result<(), BoardError> {
    let until = entry.job().and_then(|job| job.history.may_run_until(now));
    until.map_or(Ok(()), |until| Err(BoardError::MayStillRun { until }))
}

impl RevivalArgs {
    /// Returns the options that choose the rest again, for the same reason.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let shared = self.shared.shared.then(|| "--shared".to_owned());
        let reason = self.reason.given();
        let reason = reason.map(|reason| ["--reason".to_owned(), reason]);
        let words = self.selection.words().chain(shared);
        let words = words.chain(self.now.then(|| "--now".to_owned()));
        words.chain(reason.into_iter().flatten())
    }

    pub(super) async fn task(
        &self,
        ctx: &Context,
        board: &dyn Board,
        action: Action,
        fits: impl Fn(&Entry) -> Result<(), BoardError>,
    ) -> anyhow::Result<Task> {
        let mut chosen = self.selection.look_up(ctx, board, action.scope()).await?;
        self.shared.narrow(ctx, board, &mut chosen);
        chosen.require(ctx, fits);
        let mut chosen = self.selection.bounded(ctx, chosen)?;
        self.bookless.refuse(ctx, &mut chosen).await?;
        Ok(Task::new(ctx, action, &self.reason, chosen))
    }

    /// Asks for confirmation, also of a job whose board is unknown; `None` after a preview.
    pub(super) async fn agreed(
        &self,
        ctx: &mut Context,
        board: &dyn Board,
        task: Task,
    ) -> anyhow::Result<Option<Task>> {
        let how = (&self.selection.preview, &self.consent);
        let task = task.agreed(ctx, board, how).await?;
        if let Some(task) = &task
            && !self.shared.shared
            && has_unknown_board(&task.chosen)
        {
            ctx.out.note(
                "a Python service moved the job to the trash; the job may belong to another board \
                 that shares this trash",
            );
            confirm(ctx, &self.consent, "restore {} here?", &task.chosen)?;
        }
        Ok(task)
    }
}

fn has_unknown_board(chosen: &Chosen) -> bool {
    let mut entries = chosen.entries();
    chosen.choice == Choice::Named && entries.any(|it| *it.origin() == Origin::Unknown)
}
