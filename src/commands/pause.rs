//! `jobboard pause`.

use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::parts::{reason::ReasonArgs, verb::Verb};
use crate::{
    board::Board,
    context::{Consent, Context},
    duration,
    exit::CommandError,
    glob::{InvalidGlob, translate},
    job::{LONGEST, Pause},
    output::{Page, Record, Report},
};

/// Have jobs of some names left alone, by our conductors and by `claim --next`
///
/// It holds at once, and touches no job: what is claimed already goes on, and a job can still be
/// claimed by hand. `status` shows what is paused, `list` notes it, and `resume` ends it. Python
/// services know nothing of it. To pause all names asks first, unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    /// The names of the jobs, such as 'backup-*'; without any, all of them
    #[arg(value_name = "NAME-GLOB", default_value = "*", hide_default_value = true, value_parser = glob)]
    names: String,

    /// End it by itself after this long, such as 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
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

impl Record for Paused {
    fn fields(&self) -> Vec<String> {
        vec![self.pause.names.clone(), self.done.to_owned()]
    }
}

impl Report for Paused {
    fn human(&self, page: &mut Page) {
        page.line().plain(self.pause.to_string());
    }
}

pub(crate) async fn run(ctx: &mut Context, args: PauseArgs) -> anyhow::Result<()> {
    let verb = Verb {
        now: "pause",
        past: "paused",
    };
    let board = ctx.writable_board()?;
    let now = Utc::now();
    let until = args.lasting.map(|lasting| end(now, lasting)).transpose()?;
    let question = format!("pause all jobs named {}?", args.names);
    // Every other glob leaves some names.
    match args.names.trim_matches(['*', '?']).is_empty() && args.names.contains('*') {
        true => ctx.consent(&args.consent, "pause all jobs?")?,
        false => ctx.require_names(&[&ctx.config], &args.consent, &question)?,
    }
    let pause = Pause {
        names: args.names,
        until,
        remark: args.reason.who_and_why(ctx, verb),
    };
    let trying = || ctx.trying(verb.now, &pause.names);
    board.pause(&pause).await.with_context(trying)?;
    note_peers(ctx, &*board);
    let done = verb.past;
    ctx.out.report(&Paused { done, pause })
}

fn glob(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty; `*` is for all names".to_owned()),
        text if text.len() > LONGEST => Err(InvalidGlob::TooLong.to_string()),
        text => translate(text)
            .map(|_| text.to_owned())
            .map_err(|error| error.to_string()),
    }
}

fn end(now: DateTime<Utc>, lasting: Duration) -> Result<DateTime<Utc>, CommandError> {
    let lasting = TimeDelta::from_std(lasting).ok();
    let end = lasting.and_then(|lasting| now.checked_add_signed(lasting));
    end.ok_or_else(|| CommandError::usage("--for is too long: leave it out, and `resume` ends it"))
}

fn note_peers(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() {
        ctx.out.note("Python services take such jobs all the same");
    }
}
