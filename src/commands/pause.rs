//! `jobboard pause`.

use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::parts::reason::ReasonArgs;
use crate::{
    board::{Board, BoardError, BoardExt, JobRef},
    context::{Consent, Context},
    duration,
    exit::CommandError,
    glob::{InvalidGlob, literal, translate},
    job::{Entry, Location, MAX_TEXT_BYTES, Pause},
    output::{Page, Report},
    suggest::Hint,
};

/// Pause jobs by name: conductors and `claim --next` skip them
///
/// Takes effect immediately. Running jobs continue, and claims by hand still work. `status` shows the pauses,
/// `list` marks paused jobs, and `resume` ends a pause. Python services ignore pauses. Pausing all names asks
/// first, unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    /// Job names to pause, for example 'backup-*'. Without it, list the current pauses
    #[arg(value_name = "NAME-GLOB", value_parser = glob)]
    names: Option<String>,

    /// End the pause automatically after this long, for example 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = lasting, requires = "names")]
    lasting: Option<Duration>,

    #[command(flatten)]
    consent: Consent,

    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Serialize)]
struct Paused {
    done: &'static str,
    #[serde(flatten)]
    pause: Pause,
}

impl Report for Paused {
    fn fields(&self) -> Vec<String> {
        vec![self.pause.names.clone(), self.done.to_owned()]
    }

    fn human(&self, page: &mut Page) {
        page.line().plain(self.pause.to_string());
    }
}

pub(crate) async fn run(ctx: &mut Context, args: PauseArgs) -> anyhow::Result<()> {
    let Some(names) = args.names else {
        return list(ctx).await;
    };
    let board = ctx.writable_board()?;
    let now = Utc::now();
    let until = args.lasting.map(|lasting| end(now, lasting)).transpose()?;
    refuse_reference(ctx, &*board, &names).await?;
    let question = format!("pause all jobs named {names}?");
    // Every other glob leaves some names.
    match names.trim_matches(['*', '?']).is_empty() && names.contains('*') {
        true => ctx.ask(&args.consent, "pause all jobs?")?,
        false => ctx.confirm_protected(&[&ctx.config], &args.consent, &question)?,
    }
    let pause = Pause::new(names, until, args.reason.audit(ctx, "paused"));
    let trying = || ctx.trying("pause", &pause.names);
    board.pause(&pause).await.with_context(trying)?;
    if board.capabilities().has_peers() {
        ctx.out.note("Python services ignore pauses");
    }
    let done = "paused";
    ctx.out.report(&Paused { done, pause })
}

/// Refuses the uuid of a job: pauses match names, so this one would have no effect.
async fn refuse_reference(ctx: &Context, board: &dyn Board, names: &str) -> anyhow::Result<()> {
    // Shorter words may well be names: `cafe`, `feed`.
    let wanted = match names.parse() {
        Ok(wanted @ JobRef::Uuid(_)) if names.len() >= 8 => wanted,
        _ => return Ok(()),
    };
    let found = board.resolve_one(Location::Board, &wanted).await;
    match found {
        Ok(Entry::Job(job)) if job.name != names => {
            let message = format!(
                "{names} is the uuid of a job named {}, not a name",
                job.name
            );
            let hint = Hint::new(
                "`jobboard pause {}` pauses all jobs with this name",
                [&[&*literal(&job.name)]],
            );
            Err(CommandError::usage(message).hint(hint).into())
        }
        Ok(_) | Err(BoardError::NoSuchJob | BoardError::Ambiguous { .. }) => Ok(()),
        Err(error) => Err(error).with_context(|| ctx.trying("pause", names)),
    }
}

async fn list(ctx: &mut Context) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let pauses = board.pauses().await;
    let pauses = pauses.with_context(|| ctx.trying("list", "the pauses"))?;
    let now = Utc::now();
    let pauses = pauses.into_iter().filter(|pause| !pause.is_over(now));
    let pauses = pauses.map(|pause| Paused {
        done: match pause.is_unreadable {
            true => "unreadable",
            false => "paused",
        },
        pause,
    });
    let pauses: Vec<_> = pauses.collect();
    if pauses.is_empty() {
        ctx.out
            .note_unless_json("nothing is paused; `jobboard pause '*'` pauses all jobs");
    }
    ctx.out.reports(&pauses)
}

fn glob(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the pattern is empty; use `*` for all names".to_owned()),
        text if text.len() > MAX_TEXT_BYTES => Err(InvalidGlob::TooLong.to_string()),
        text => translate(text)
            .map(|_| text.to_owned())
            .map_err(|error| error.to_string()),
    }
}

fn lasting(text: &str) -> Result<Duration, String> {
    let bounds = (Duration::from_millis(1), Duration::MAX);
    duration::within(text, bounds, "use a duration of at least 1ms")
}

fn end(now: DateTime<Utc>, lasting: Duration) -> Result<DateTime<Utc>, CommandError> {
    let lasting = TimeDelta::from_std(lasting).ok();
    let end = lasting.and_then(|lasting| now.checked_add_signed(lasting));
    end.ok_or_else(|| {
        CommandError::usage(
            "--for is too long; leave it out and use `jobboard resume` \
        to end the pause",
        )
    })
}
