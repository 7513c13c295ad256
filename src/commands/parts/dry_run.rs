//! `--dry-run` of a verb: lists its jobs.

use chrono::Utc;

use super::{failures::Failures, select::Chosen};
use crate::{
    context::Context,
    job::{Shelf, State},
    output::{JobColumns, JobView},
};

/// Lists the chosen jobs like `list`, and reports missing ones.
pub(crate) fn dry_run(ctx: &mut Context, verb: &'static str, chosen: Chosen) -> anyhow::Result<()> {
    let total = chosen.jobs.len();
    let mut failures = Failures::new(ctx, verb, chosen.is_bulk);
    let mut entries = Vec::new();
    for named in chosen.jobs {
        match named.entry {
            Ok(entry) => entries.push(entry),
            Err(error) if total == 1 => {
                let trying = ctx.trying(verb, named.name).with(named.reference);
                return Err(error.context(trying));
            }
            Err(error) => failures.add(ctx, named.name, named.reference, error),
        }
    }
    let now = Utc::now();
    let are_trashed = entries.iter().all(|it| it.state() == State::Trashed);
    let shelf = match are_trashed {
        true => Shelf::Trash,
        false => Shelf::Board,
    };
    let columns = JobColumns::usual(shelf);
    let hides = ctx.hides_secrets();
    let mut rows = ctx.out.rows(&columns.shapes());
    for entry in &entries {
        rows.push(&columns.row(JobView::of(entry, now).covered(hides)))?;
    }
    rows.finish()?;
    if total == 0 {
        ctx.out.note("no job matches");
    }
    failures.end(ctx, total)
}
