//! `jobboard owner`.

use std::borrow::Cow;

use serde::Serialize;

use super::bulk::{
    references::{NONE_PREFERRED, Scope, references_or_names},
    select::named,
};
use crate::{
    board::BoardError,
    context::Context,
    exit::CommandError,
    job::{Conductor, Entry},
    output::{Page, Report, Tone},
};

/// Print the owner of a job
///
/// Prints nothing on standard output for an unclaimed job. On an Octavia board on ZooKeeper, it also prints the host.
/// For several jobs, each line starts with the reference of the job.
#[derive(Debug, clap::Args)]
pub(crate) struct OwnerArgs {
    /// Jobs: uuid, prefix, name, @SEQUENCE, key:TEXT, unique:KEY, or - to read references from standard input
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Ownership {
    uuid: Option<String>,
    name: String,
    owner: String,
    /// The host of the owner, if it is registered as a worker of Octavia.
    host: Option<String>,
    #[serde(skip)]
    reference: String,
    /// Whether there are several jobs, so that each needs its name.
    #[serde(skip)]
    is_one_of_several: bool,
}

impl Report for Ownership {
    fn fields(&self) -> Vec<String> {
        match self.is_one_of_several {
            true => vec![self.reference.clone(), self.owner.clone()],
            false => vec![self.owner.clone()],
        }
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.reference))
    }

    fn human(&self, page: &mut Page) {
        let line = page.line();
        match self.is_one_of_several {
            true => line.add(Tone::Faint, &self.reference).plain("  "),
            false => line,
        }
        .plain(&self.owner);
        if let Some(host) = &self.host {
            page.line().add(Tone::Faint, format!("on {host}"));
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: OwnerArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let scope = Scope::board("owner");
    let (wanted, mut failed) =
        references_or_names(ctx, &*board, scope, NONE_PREFERRED, &args.jobs).await?;
    let found = named(ctx, &*board, scope.locations, &wanted).await?;
    let total = found.len() + failed;
    // Their names do not contain the host.
    let workers = match ctx.config.board.value.is_of_octavia() {
        true => board.conductors().await.unwrap_or_default(),
        false => Vec::new(),
    };
    for it in found {
        let name = it.entry.as_ref();
        let name = name.map_or(it.name, |entry| entry.name().into_owned());
        let trying = ctx.trying("show the owner of", name).with(it.reference);
        match it
            .entry
            .and_then(|entry| ownership(&entry, &workers, total > 1))
        {
            Ok(ownership) => ctx.out.print(&ownership)?,
            Err(error) if total == 1 => return Err(error.context(trying)),
            Err(error) => {
                failed += 1;
                ctx.print_error(&error.context(trying));
            }
        }
    }
    ctx.out.flush()?;
    CommandError::partly("jobs", failed, total)
}

fn ownership(
    entry: &Entry,
    workers: &[Conductor],
    is_one_of_several: bool,
) -> anyhow::Result<Ownership> {
    let Some(holding) = entry.holding() else {
        if let Entry::Malformed(record) = entry {
            return Err(BoardError::from(record).into());
        }
        return Err(CommandError::Nothing("the job is not claimed".to_owned()).into());
    };
    let Some(owner) = &holding.owner else {
        return Err(CommandError::UnreadableOwner.into());
    };
    Ok(Ownership {
        uuid: entry.job().map(|job| job.uuid.clone()),
        name: entry.name().into_owned(),
        owner: owner.to_string(),
        host: (workers.iter().find(|it| it.owner == *owner)).map(|it| it.host.clone()),
        reference: entry.reference().into_owned(),
        is_one_of_several,
    })
}
