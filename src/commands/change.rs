//! `jobboard change`.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    bulk::{
        action::Action,
        references::references,
        select::{Choice, Chosen, PreviewArgs, named},
        shared_trash::refuse_others,
        task::Task,
    },
    parts::{draft, reason::ReasonArgs},
    typing::corrected::DASHES,
};
use crate::{
    board::JobRef,
    context::{Consent, Context},
    exit::CommandError,
    job::{Edit, Priority},
    suggest::Hint,
    transfer::limits,
};

/// Change the priority, name or details of unclaimed or trashed jobs
///
/// The uuid, sequence number, creation time and attempts do not change. Claimed jobs are refused. A trashed job stays
/// in the trash until you `retry` it. `jobboard` conductors use the new version immediately, and subscribers receive
/// a `restored` event. A Python service that listed the job earlier may still use the old version. JOB may also be a
/// unique name.
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

    /// New command; stored as `command` in the details
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    preview: PreviewArgs,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

impl ChangeArgs {
    fn edit(&self, ctx: &Context) -> anyhow::Result<Edit> {
        let from_stdin = self.details.as_deref() == Some("-");
        if from_stdin && (ctx.config.takes_stdin() || self.jobs.iter().any(|job| job == "-")) {
            return Err(CommandError::usage("`-` (standard input) can be given only once").into());
        }
        let max_details = ctx.config.max_details.value;
        let details = self
            .details
            .as_deref()
            .map(|text| draft::details(text, max_details));
        let command = (!self.command.is_empty()).then(|| self.command.as_slice().into());
        let command = command.map(|it: Value| ("command".to_owned(), it));
        let edit = Edit {
            name: self.name.as_deref().map(limits::checked_name).transpose()?,
            priority: self.priority,
            details: details.transpose()?.map(Value::Object),
            set: self.set.iter().cloned().chain(command).collect(),
            unset: self.unset.clone(),
        };
        let mut keys = HashSet::new();
        let mut changed = edit.set.iter().map(|(key, _)| key).chain(&edit.unset);
        if let Some(key) = changed.find(|key| !keys.insert(*key)) {
            let message = format!("the key `{key}` is given twice");
            return Err(CommandError::usage(message).into());
        }
        if let Some(details) = &edit.details {
            limits::check_size(details, max_details)?;
        }
        match edit == Edit::default() {
            true => Err(self.nothing().into()),
            false => Ok(edit),
        }
    }

    fn nothing(&self) -> CommandError {
        let message =
            "nothing to change: use --priority, --name, --details, --set, --unset or -- COMMAND";
        let words: Vec<_> = self.jobs.iter().map(String::as_str).collect();
        let is_job = |it: &&str| it.parse::<JobRef>().is_ok();
        let jobs = 1 + words.iter().skip(1).take_while(|it| is_job(it)).count();
        match words.split_at(jobs) {
            (_, []) => CommandError::usage(message),
            (jobs, command) => {
                let jobs = [&["change"], jobs].concat();
                let hint = match as_options(command) {
                    Some(options) => {
                        Hint::new("name the options: `jobboard {} {}`", [&jobs, &options])
                    }
                    None => Hint::new(DASHES, [&jobs, command]),
                };
                CommandError::usage(message).hint(hint)
            }
        }
    }
}

/// Returns the options that set these values, if all words are `KEY=TEXT` or `KEY:=JSON`.
fn as_options<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut options = Vec::new();
    for word in words {
        options.extend(match word.split_once('=')? {
            ("priority", value) => ["--priority", value],
            ("name", value) => ["--name", value],
            _ => ["--set", *word],
        });
    }
    Some(options)
}

pub(crate) async fn run(ctx: &mut Context, args: ChangeArgs) -> anyhow::Result<()> {
    let action = Action::Change(args.edit(ctx)?);
    if args
        .set
        .iter()
        .any(|(name, value)| name == "command" && value.is_string())
    {
        ctx.out
            .note("only handlers accept a string as `command`; `-- COMMAND` sets a command");
    }
    let board = args.preview.board(ctx)?;
    let scope = action.scope();
    let wanted = references(ctx, &*board, scope, &args.jobs).await?;
    let mut jobs = named(ctx, &*board, scope.locations, &wanted).await?;
    if let Action::Change(edit) = &action {
        for named in &mut jobs {
            let details = named.entry.as_ref().ok().and_then(|it| it.job()?.details());
            if let Ok(Some(details)) = edit.details(details.as_deref())
                && let Err(flaw) = limits::check_command(&details.into())
            {
                named.entry = Err(flaw);
            }
        }
    }
    let mut chosen = Chosen {
        jobs,
        choice: Choice::Named,
    };
    refuse_others(&*board, &mut chosen, "use --board {}");
    let task = Task::new(ctx, action, &args.reason, chosen);
    task.finish(ctx, &*board, &args.preview, &args.consent)
        .await
}
