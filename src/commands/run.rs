//! `jobboard run`.

use std::time::Duration;

use anyhow::Context as _;

use super::parts::{
    draft::DraftArgs,
    octavia::warn_of_workers,
    unconfirmed::{claim_confirmed, claim_of_post},
    under_claim::{Performer, WonJob, lease, ours},
};
use crate::{
    board::{Board, BoardError, BoardExt, ClaimRules, JobRef},
    context::{Context, Creation},
    exit::verb,
    glob::literal,
    job::{Claimant, Decision, Job, Location},
    process::clock::Boottime,
    retry::RetryPolicy,
    suggest::Suggestion,
};

/// Post a job, run its command here, and consume it
///
/// While the command runs, the board shows the job as CLAIMED. If the command succeeds, the job
/// is consumed. Otherwise it is released for a retry after a back-off, and trashed at its retry limit, as with
/// `conduct`.
///
/// With --unique, a job that an earlier run left on the board is retried. While another process holds that job,
/// nothing runs, and the exit code is 0.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Job name; names need not be unique
    name: String,

    #[command(flatten)]
    draft: DraftArgs,

    #[command(flatten)]
    creation: Creation,

    #[command(flatten)]
    retry: RetryPolicy,

    /// Lease duration; the claim is renewed while the command runs [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<Duration>,

    /// Command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn run(ctx: &mut Context, args: RunArgs) -> anyhow::Result<()> {
    perform(ctx, args).await.map_err(ours)
}

async fn perform(ctx: &mut Context, args: RunArgs) -> anyhow::Result<()> {
    let draft = args.draft.draft(&ctx.config, &args.name, &args.command)?;
    ctx.create_directory(&args.creation);
    let board = ctx.writable_board()?;
    warn_of_workers(ctx);
    let (command, lease) = (&args.command, args.lease);
    let performer = Performer::prepare(ctx, &*board, command, lease, &args.retry).await?;
    let by = &performer.by;
    let mut ends = 0;
    let won = loop {
        let asked = Boottime::now();
        let posted = board.post_one(&draft, Some(by)).await;
        if let (Err(BoardError::Exists { uuid, .. }), true) = (&posted, args.draft.is_unique()) {
            let left = claim_left(ctx, &*board, uuid, by).await;
            // The other run has just ended. A foreign record could block the key for ever.
            if is_gone(&left) && ends < 10 {
                ends += 1;
                continue;
            }
            match left.with_context(|| ctx.trying(verb::CLAIM, &args.name).with(draft.uuid))? {
                None => return Ok(()),
                // A trashed job blocks no other.
                Some(won) if performer.gives_up(ctx, &*board, &won.claimed).await? => continue,
                Some(won) => break won,
            }
        }
        let claimed = claim_of_post(&*board, &draft, by, posted).await;
        let claimed = claimed.with_context(|| ctx.trying("post", &args.name).with(draft.uuid))?;
        break WonJob { claimed, asked };
    };
    let is_unique = args.draft.is_unique();
    let left = |ctx: &Context, job: &Job, decision: &Decision| hint(ctx, job, decision, is_unique);
    performer.perform(ctx, board, won, &left).await
}

fn hint(ctx: &Context, job: &Job, decision: &Decision, is_unique: bool) {
    let (name, program) = (&job.name, ctx.program());
    let on_job = |verb| Suggestion::of(verb).operand(&job.reference()).on(&program);
    let is_plain = |it: char| it.is_alphanumeric() || "-_.".contains(it);
    let only = match name.chars().all(is_plain) {
        true => format!("name={name}"),
        false => format!("name=\"{}\"", literal(name).replace('"', "\"\"")),
    };
    let conduct = Suggestion::of("conduct --drain --filter").with([only]);
    let (retry, conduct) = (on_job("retry"), conduct.on(&program));
    let by_conductor = format!("`{retry}`, then `{conduct}`");
    let (until, how, remove) = match (decision.is_trash(), is_unique) {
        (true, _) => ("you restore it", by_conductor, "purge"),
        (false, false) => ("a conductor runs", by_conductor, "trash --force"),
        (false, true) => {
            let until = "a conductor or the same `run --unique` command claims it";
            (until, "repeat this command".to_owned(), "trash --force")
        }
    };
    let remove = on_job(remove);
    ctx.out.note(format!(
        "{name} is not retried until {until}; to retry {name} now: {how}"
    ));
    ctx.out.note(format!("to remove {name}: `{remove}`"));
}

fn is_gone<T>(answer: &anyhow::Result<T>) -> bool {
    let error = answer.as_ref().err();
    matches!(
        error.and_then(|it| it.downcast_ref()),
        Some(BoardError::NoSuchJob)
    )
}

/// Claims the job of an earlier run that failed and is not running.
///
/// Otherwise one failure would block every later run.
async fn claim_left(
    ctx: &Context,
    board: &dyn Board,
    uuid: &str,
    by: &Claimant,
) -> anyhow::Result<Option<WonJob>> {
    let wanted = JobRef::Uuid(uuid.to_owned());
    let entry = board.resolve_one(Location::Board, &wanted).await?;
    let rules = ClaimRules {
        is_attempt: true,
        ..ClaimRules::BY_HAND
    };
    let asked = Boottime::now();
    let name = entry.name();
    match claim_confirmed(board, &entry, by, rules).await {
        Ok(claimed) => {
            ctx.out.note(format!(
                "retrying {name}, which an earlier run left on the board"
            ));
            Ok(Some(WonJob { claimed, asked }))
        }
        Err(error) => match error.downcast_ref() {
            Some(reason @ BoardError::AlreadyClaimed { .. }) => {
                ctx.out.note(format!(
                    "did not run {name}, which is still on the board: {reason}"
                ));
                Ok(None)
            }
            _ => Err(error),
        },
    }
}
