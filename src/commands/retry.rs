//! `jobboard retry`.

mod canary;

use chrono::{DateTime, Utc};

use self::canary::CanaryArgs;
use super::bulk::{act::Pace, action::Action, args::RevivalArgs, settle::require_end_of_command};
use crate::{
    board::BoardError,
    context::Context,
    job::{Entry, Location},
    suggest::Suggestion,
};

/// Retry failed jobs now, whether trashed or backing off
///
/// Makes trashed jobs and jobs that are backing off claimable immediately. Attempts restart from zero. Claimed jobs,
/// and claimable jobs without a failed attempt, cannot be retried: they are refused if you name them, and skipped if a
/// filter selects them. With a filter, jobs on the board are retried before trashed ones. JOB may also be a unique
/// name.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    revival: RevivalArgs,

    /// Keep the attempt and postponement counts
    #[arg(long)]
    keep_attempts: bool,

    /// Maximum rate: a number per second (5/s), minute (100/m) or hour (2/h)
    #[arg(long, value_name = "N/s", value_parser = Pace::parse)]
    rate: Option<Pace>,

    #[command(flatten)]
    canary: CanaryArgs,
}

impl RetryArgs {
    pub(super) fn of(revival: RevivalArgs, has_canary: bool, was_asked: bool) -> Self {
        Self {
            revival,
            canary: CanaryArgs::one_if(has_canary, was_asked),
            ..Self::default()
        }
    }

    fn resume(&self, ctx: &Context) -> Suggestion {
        let rate = self.rate.iter().flat_map(|it| ["--rate", &it.text]);
        let keep = self.keep_attempts.then_some("--keep-attempts");
        let words = ctx.program().with(["retry"]).with(self.revival.words());
        words.with(keep).with(rate)
    }
}

pub(crate) async fn run(ctx: &mut Context, args: RetryArgs) -> anyhow::Result<()> {
    let (revival, keep_attempts) = (&args.revival, args.keep_attempts);
    let all = "`jobboard retry --problem failed` retries all failed jobs";
    let required = revival.selection.require();
    required.map_err(|error| error.hint(all))?;
    let board = revival.selection.preview.board(ctx)?;
    let (action, now) = (Action::Retry { keep_attempts }, Utc::now());
    // The task checks whether the old command has ended.
    let fits = |entry: &Entry| judge(entry, now, keep_attempts, true);
    let mut task = revival.task(ctx, &*board, action, fits).await?;
    task.pace = args.rate.clone().unwrap_or(Pace::FULL);
    let is_careful = args.rate.is_some() || args.canary.canary.is_some();
    task.resume = is_careful.then(|| args.resume(ctx));
    let Some(mut task) = revival.agreed(ctx, &*board, task).await? else {
        return Ok(());
    };
    args.canary.try_first(ctx, &*board, &mut task).await?;
    task.carry_out(ctx, &*board).await
}

/// Returns the reason why a record cannot be retried, as last seen; the board checks again.
pub(super) fn judge(
    entry: &Entry,
    now: DateTime<Utc>,
    keeps_attempts: bool,
    ends_wait: bool,
) -> Result<(), BoardError> {
    if let Some(holding) = entry.holding() {
        let owner = holding.owner.clone();
        return Err(BoardError::AlreadyClaimed { owner });
    }
    if !ends_wait {
        require_end_of_command(entry, now)?;
    }
    match entry {
        Entry::Malformed(record) => Err(record.into()),
        Entry::Job(job) if job.location == Location::Trash => Ok(()),
        Entry::Job(job) if job.is_unfit => Err(BoardError::unclaimable(job.problem.clone())),
        Entry::Job(job) if job.attempts.needs_restart(now, keeps_attempts) => Ok(()),
        Entry::Job(_) => Err(BoardError::NotDelayed),
    }
}
