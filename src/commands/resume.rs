//! `jobboard resume`.

use anyhow::Context as _;
use chrono::Utc;
use serde::Serialize;

use super::parts::reason::ReasonArgs;
use crate::{
    context::{Consent, Context},
    exit::{CommandError, verb},
    job::Pause,
    output::{Page, Report},
};

/// Resume paused jobs
///
/// Without NAME-GLOB, ends all pauses; asks first if there are several, unless --yes is given.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// Pause to end, as given to `pause` and shown by `status` [default: all]
    #[arg(value_name = "NAME-GLOB")]
    names: Option<String>,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Serialize)]
struct Resumed {
    done: &'static str,
    names: String,
}

impl Report for Resumed {
    fn fields(&self) -> Vec<String> {
        vec![self.names.clone(), self.done.to_owned()]
    }

    fn human(&self, page: &mut Page) {
        page.line().plain(format!("{} {}", self.done, self.names));
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ResumeArgs) -> anyhow::Result<()> {
    let board = ctx.writable_board()?;
    let what = args.names.as_deref().unwrap_or("all pauses");
    let trying = || ctx.trying(verb::RESUME, what);
    let paused = board.pauses().await.with_context(trying)?;
    let now = Utc::now();
    let is_active = |pause: &&Pause| !pause.is_over(now);
    let active = paused.iter().filter(is_active).count();
    // Without NAMES, ended pauses are removed, too.
    let paused = (paused.iter()).filter(|it| args.names.is_none() || is_active(it));
    let paused: Vec<_> = paused.map(|pause| pause.names.clone()).collect();
    let names = match &args.names {
        Some(names) if paused.contains(names) => vec![names.clone()],
        Some(_) => {
            let message = match paused.as_slice() {
                [] => "nothing is paused".to_owned(),
                [one] => format!("no pause is named {what}; the current pause is {one}"),
                all => format!(
                    "no pause is named {what}; the current pauses are {}",
                    all.join(", ")
                ),
            };
            return Err(CommandError::Nothing(message)).with_context(trying);
        }
        None => paused,
    };
    match names.as_slice() {
        [] => ctx.out.note("nothing is paused"),
        _ if args.names.is_none() && active > 1 => {
            let question = format!("end all {active} pauses?");
            ctx.ask(&args.consent, &question)?;
        }
        _ => ctx.confirm_protected(&[&ctx.config], &args.consent, &format!("resume {what}?"))?,
    }
    let audit = args.reason.audit(ctx, "resumed");
    let mut resumed = Vec::new();
    for names in names {
        // Another client may have been faster.
        if board.resume(&names, &audit).await.with_context(trying)? {
            let done = "resumed";
            resumed.push(Resumed { done, names });
        }
    }
    ctx.out.reports(&resumed)
}
