//! The arguments that several verbs share, and their way to a task.

use chrono::Utc;

use super::{
    action::{Action, Force},
    bookless::BooklessArgs,
    select::{Choice, Selection, confirm},
    settle::{Release, refuse_process_name, require_end_of_command, stated_owner},
    shared_trash::SharedArgs,
    task::Task,
};
use crate::{
    board::{Board, BoardError},
    commands::parts::reason::ReasonArgs,
    context::{Consent, Context},
    job::{Entry, Origin},
};

/// The jobs to settle, and whether by force.
#[derive(Debug, clap::Args)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    selection: Selection,

    /// Act on jobs regardless of their owner
    ///
    /// Shows the state of the jobs, asks, and acts only if that state is unchanged.
    #[arg(long)]
    force: bool,

    /// With --force: act only if this owner holds the claim
    #[arg(long, value_name = "NAME", requires = "force")]
    owner: Option<String>,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

impl SettleArgs {
    pub(crate) fn by_force(selection: Selection, reason: ReasonArgs, consent: Consent) -> Self {
        Self {
            selection,
            force: true,
            owner: None,
            reason,
            consent,
        }
    }

    pub(crate) async fn run(
        self,
        ctx: &mut Context,
        action: impl FnOnce(Force) -> Action,
    ) -> anyhow::Result<()> {
        stated_owner(self.owner.as_deref())?;
        if !self.force {
            refuse_process_name(ctx)?;
        }
        self.selection.require()?;
        let board = self.selection.preview.board(ctx)?;
        let action = action(match (self.force, self.owner) {
            (false, _) => Force::None,
            (true, None) => Force::Any,
            (true, Some(owner)) => Force::Of(owner),
        });
        let chosen = self.selection.look_up(ctx, &*board, action.scope());
        let chosen = chosen.await?;
        let chosen = self.selection.bounded(ctx, chosen)?;
        let task = Task::new(ctx, action, &self.reason, chosen);
        task.finish(ctx, &*board, &self.selection.preview, &self.consent)
            .await
    }
}

/// The jobs that become claimable again.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RevivalArgs {
    #[command(flatten)]
    pub(crate) selection: Selection,

    #[command(flatten)]
    pub(crate) shared: SharedArgs,

    #[command(flatten)]
    pub(crate) bookless: BooklessArgs,

    /// Include jobs that a former owner may still be running
    ///
    /// After a forced release, a job is refused until the old claim would have expired, unless its command is known to
    /// have ended. Use --now only if you are sure that it has ended.
    #[arg(long)]
    pub(crate) now: bool,

    #[command(flatten)]
    pub(crate) reason: ReasonArgs,

    #[command(flatten)]
    pub(crate) consent: Consent,
}

impl RevivalArgs {
    /// Returns the options that choose the rest again, for the same reason.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let shared = self.shared.shared.then(|| "--shared".to_owned());
        let reason = self.reason.given();
        let reason = reason.map(|reason| ["--reason".to_owned(), reason]);
        let words = self.selection.words().chain(shared);
        let words = words.chain(self.now.then(|| "--now".to_owned()));
        words.chain(reason.into_iter().flatten())
    }

    pub(crate) async fn task(
        &self,
        ctx: &Context,
        board: &dyn Board,
        action: Action,
        fits: impl Fn(&Entry) -> Result<(), BoardError>,
    ) -> anyhow::Result<Task> {
        let chosen = self.selection.look_up(ctx, board, action.scope());
        let mut chosen = chosen.await?;
        self.shared.narrow(ctx, board, &mut chosen);
        let now = Utc::now();
        let may_run = |it: &Entry| !self.now && require_end_of_command(it, now).is_err();
        // After a release without proof, the command may have ended by now.
        let release = match chosen.entries().any(may_run) {
            true => Some(Release::checked(board).await),
            false => None,
        };
        chosen.require(ctx, |entry| {
            if let Some(release) = &release {
                release.require_end(entry, now)?;
            }
            fits(entry)
        });
        let mut chosen = self.selection.bounded(ctx, chosen)?;
        self.bookless.refuse(ctx, &mut chosen).await?;
        Ok(Task::new(ctx, action, &self.reason, chosen))
    }

    /// Asks for confirmation, even if a job's board is unknown; `None` after a preview.
    pub(crate) async fn agreed(
        &self,
        ctx: &mut Context,
        board: &dyn Board,
        task: Task,
    ) -> anyhow::Result<Option<Task>> {
        let task = task
            .agreed(ctx, board, &self.selection.preview, &self.consent)
            .await?;
        if let Some(task) = &task
            && !self.shared.shared
            && task.chosen.choice == Choice::Named
            && (task.chosen.entries()).any(|it| *it.origin() == Origin::Unknown)
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
