//! How the jobs ended that were waited for, and why they came to no good end.

use std::collections::BTreeMap;

use crate::{
    board::{
        self, Board, JobRef,
        wait::{Awaited, Ending},
    },
    context::Context,
    exit::{CommandError, chain},
    job::{self, Entry, Failure, Job, Shelf},
    output::covered_text,
};

/// The jobs that were waited for and came to no good end.
#[derive(Default)]
pub(super) struct InVain {
    /// Their names, by how they ended.
    names: BTreeMap<&'static str, Vec<String>>,
    /// Why they last failed, as far as that is known.
    reasons: Vec<String>,
}

impl InVain {
    /// Adds one, and tells what its command said before it failed.
    fn add(&mut self, ctx: &Context, how: &'static str, name: &str, failure: Option<&Failure>) {
        if let Some(failure) = failure {
            for (stream, said) in failure.said() {
                ctx.out
                    .note(format!("the last that {name} wrote to {stream}:"));
                for line in covered_text(said).lines() {
                    ctx.out.note(format!("  {line}"));
                }
            }
            self.reasons.push(covered_text(&failure.reason));
        }
        self.names.entry(how).or_default().push(name.to_owned());
    }

    /// Ends as a wait does that was in vain, if there are any.
    pub(super) fn end(self) -> anyhow::Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let names = self.names.into_iter();
        let ends: Vec<_> = names
            .map(|(how, names)| format!("{} {how}", names.join(", ")))
            .collect();
        let why = match self.reasons.as_slice() {
            [] => String::new(),
            reasons => format!("; the last failure: {}", reasons.join("; ")),
        };
        Err(CommandError::InVain(format!("{}{why}", ends.join("; "))).into())
    }
}

/// How a job ended, as far as the board knows.
pub(super) struct End {
    /// The word for it.
    pub(super) outcome: &'static str,
    /// How it last failed, if it came to no good end.
    pub(super) failure: Option<Failure>,
}

/// Finds out how a job ended, and notes it if it came to no good end.
///
/// If no more can be learnt than that it has ended, that is no failure, but for a board that does not
/// answer when it would have to say whether the job was done.
pub(super) async fn learn(
    ctx: &Context,
    board: &dyn Board,
    (name, job, ending): (&str, &Awaited, Ending),
    in_vain: &mut InVain,
) -> board::Result<End> {
    let shelf = match ending {
        Ending::Complete => Shelf::Past,
        Ending::Trashed => Shelf::Trash,
    };
    let found = match found(board, shelf, job).await {
        Ok(found) => found,
        Err(error) if ending == Ending::Complete && error.is_retryable() => return Err(error),
        Err(error) => {
            let why = chain(&error);
            ctx.out
                .note(format!("how {name} ended cannot be read: {why}"));
            None
        }
    };
    let failure = found.as_ref().and_then(|job| job.history.failures.last());
    let (outcome, how) = match (ending, found.as_ref().and_then(|job| job.ended)) {
        (Ending::Trashed, _) => ("trashed", Some("ended in the trash")),
        (Ending::Complete, None) => {
            ctx.out.note(format!(
                "{name} is gone, and how it ended is not known: somebody else than jobboard ended it, \
                 or nothing is remembered here"
            ));
            ("complete", None)
        }
        (Ending::Complete, Some(ended)) => match ended.departure {
            job::Departure::Consumed => ("complete", None),
            job::Departure::Failed => ("failed", Some("was consumed although it failed")),
            job::Departure::Purged => ("purged", Some("was purged")),
        },
    };
    let Some(how) = how else {
        return Ok(End {
            outcome,
            failure: None,
        });
    };
    in_vain.add(ctx, how, name, failure);
    Ok(End {
        outcome,
        failure: failure.cloned(),
    })
}

async fn found(board: &dyn Board, shelf: Shelf, job: &Awaited) -> board::Result<Option<Job>> {
    let wanted = [JobRef::Key(job.key.clone())];
    let found = board.find(shelf, &wanted).await?;
    let mut entries = found.into_iter().flatten();
    Ok(match entries.find(|entry| job.is_of(entry)) {
        Some(Entry::Job(job)) => Some(*job),
        Some(Entry::Malformed(_)) | None => None,
    })
}
