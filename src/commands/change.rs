//! `jobboard change`.

use serde_json::Value;

use super::parts::{
    draft,
    reason::ReasonArgs,
    select::{Chosen, named, references},
    verb::{Verb, act},
};
use crate::{
    context::Context,
    exit::CommandError,
    job::{Edit, Entry, Priority, Restore, Shelf},
};

/// Change the priority, name or details of unclaimed jobs
///
/// The uuid, number, creation time and attempts stay. Claimed jobs are refused. `jobboard` conductors use the
/// new version immediately, and listeners receive a `restored` event. A Python service that listed the job
/// earlier may still use the old version.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// Jobs: uuid, prefix, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,

    /// New priority: VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<Priority>,

    /// New name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Replace the details: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    details: Option<String>,

    /// Set one member of the details: KEY=TEXT, or KEY:=JSON for values other than text
    #[arg(long, value_name = "KEY=TEXT|KEY:=JSON", value_parser = draft::fact_of)]
    set: Vec<(String, Value)>,

    /// Remove one member of the details
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,

    #[command(flatten)]
    reason: ReasonArgs,
}

impl ChangeArgs {
    /// Returns the edit; an empty one is an error.
    fn edit(&self, ctx: &Context) -> anyhow::Result<Edit> {
        let from_stdin = self.details.as_deref() == Some("-");
        if from_stdin && (ctx.config.takes_stdin() || self.jobs.iter().any(|job| job == "-")) {
            return Err(CommandError::usage("standard input can be read only once").into());
        }
        let max_details = ctx.config.max_details.value;
        let details = self
            .details
            .as_deref()
            .map(|text| draft::details(text, max_details));
        let set = self
            .set
            .iter()
            .map(|(name, value)| (name.clone(), Some(value.clone())));
        let unset = self.unset.iter().map(|name| (name.clone(), None));
        let edit = Edit {
            name: self.name.as_deref().map(draft::checked_name).transpose()?,
            priority: self.priority,
            details: details.transpose()?.map(Value::Object),
            facts: set.chain(unset).collect(),
        };
        if let Some(details) = &edit.details {
            draft::check_size(details, max_details)?;
        }
        match edit == Edit::default() {
            true => Err(CommandError::usage(
                "nothing to change: use --priority, --name, --details, --set or --unset",
            )
            .into()),
            false => Ok(edit),
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ChangeArgs) -> anyhow::Result<()> {
    let edit = args.edit(ctx)?;
    let wanted = references(ctx, &args.jobs)?;
    let board = ctx.writable_board()?;
    let chosen = Chosen {
        jobs: named(ctx, &*board, &[Shelf::Board], &wanted).await?,
        is_bulk: false,
    };
    let verb = Verb {
        now: "change",
        past: "changed",
    };
    let remark = args.reason.who_and_why(ctx, verb);
    let change = async |entries: &[&Entry]| {
        let jobs: Vec<_> = entries
            .iter()
            .map(|entry| Restore {
                key: entry.key().clone(),
                shelf: Shelf::Board,
                keeps_attempts: true,
                remark: Some(remark.clone()),
                edit: Some(edit.clone()),
            })
            .collect();
        board.restore(&jobs).await
    };
    act(ctx, verb, chosen, change, |(), done| (done, None)).await?;
    if board.capabilities().has_peers() {
        ctx.out
            .note("Python services may use the old version until they list the board again");
    }
    Ok(())
}
