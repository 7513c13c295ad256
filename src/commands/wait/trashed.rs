//! Jobs that ended in the trash, and why they did.

use crate::{
    board::{Board, JobRef, wait::Awaited},
    context::Context,
    exit::CommandError,
    job::{Failure, Shelf},
    output::covered_text,
};

/// The jobs that were waited for and are in the trash.
#[derive(Default)]
pub(super) struct Trashed {
    names: Vec<String>,
    /// Why they last failed, as far as that is known.
    reasons: Vec<String>,
}

impl Trashed {
    /// Adds one, and tells what its command said before it failed.
    pub(super) fn add(&mut self, ctx: &Context, name: String, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            let said = covered_text(failure.stderr.trim_end());
            if !said.is_empty() {
                ctx.out
                    .note(format!("the last that {name} wrote to its errors:"));
            }
            for line in said.lines() {
                ctx.out.note(format!("  {line}"));
            }
            self.reasons.push(covered_text(&failure.reason));
        }
        self.names.push(name);
    }

    /// Ends as a wait does that was in vain, if there are any.
    pub(super) fn end(self) -> anyhow::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let names = self.names.join(", ");
        let why = match self.reasons.as_slice() {
            [] => String::new(),
            reasons => format!("; the last failure: {}", reasons.join("; ")),
        };
        Err(CommandError::Trashed(format!("{names} ended in the trash{why}")).into())
    }
}

/// Returns how a job in the trash last failed.
///
/// That it is there is what its end depends on; if no more can be learnt, that is no failure.
pub(super) async fn last_failure(board: &dyn Board, job: &Awaited) -> Option<Failure> {
    let wanted = [JobRef::Key(job.key.clone())];
    let found = board.find(Shelf::Trash, &wanted).await.ok()?;
    let mut entries = found.into_iter().flatten();
    let entry = entries.find(|entry| job.is_of(entry))?;
    entry.job()?.history.failures.last().cloned()
}
