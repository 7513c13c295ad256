//! Doing something to each of several jobs, and answering for each.

use anyhow::Context as _;

use super::{
    done::Done,
    failures::Failures,
    select::{Chosen, Named},
};
use crate::{
    board::{self, BoardError},
    context::Context,
    job::Entry,
};

/// How many jobs go to the board in one exchange.
const BATCH: usize = 500;

/// What is done to a job, before and after it is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) now: &'static str,
    pub(crate) past: &'static str,
}

/// Acts on each of the chosen jobs, batch by batch, and tells of each in order.
///
/// The only one decides on the exit code by its own error; of several, that some failed. `told`
/// completes what is told of a job, and may note something beside it.
pub(crate) async fn act<T, E: Into<anyhow::Error>>(
    ctx: &mut Context,
    verb: Verb,
    chosen: Chosen,
    mut act: impl AsyncFnMut(&[&Entry]) -> board::Result<Vec<Result<T, E>>>,
    told: impl Fn(&T, Done) -> (Done, Option<String>),
) -> anyhow::Result<()> {
    ctx.out.outlive_reader();
    let total = chosen.jobs.len();
    if total == 0 {
        ctx.out.note("no job matches, and nothing was done");
    }
    let mut failures = Failures::new(ctx, verb.now, chosen.is_bulk);
    let progress = ctx.out.progress(verb.now, Some(total as u64));
    let mut jobs = chosen.jobs.into_iter().peekable();
    let ended = loop {
        if jobs.peek().is_none() {
            break Ok(());
        }
        let batch: Vec<_> = jobs.by_ref().take(BATCH).collect();
        let entries: Vec<_> = batch
            .iter()
            .filter_map(|named| named.entry.as_ref().ok())
            .collect();
        let answers = match act(&entries).await {
            Ok(answers) => answers,
            Err(error) => break Err(error).with_context(|| ctx.trying(verb.now, "the jobs")),
        };
        let count = batch.len();
        for Answered {
            name,
            reference,
            done,
        } in matched(batch, answers)
        {
            match done {
                Ok((entry, answer)) => progress.suspend(|| {
                    let (done, note) = told(&answer, Done::of(verb.past, &entry));
                    if let Some(note) = note {
                        ctx.out.note(note);
                    }
                    ctx.out.say(&done)
                })?,
                Err(error) if total == 1 => {
                    return Err(error.context(ctx.trying(verb.now, name).with(reference)));
                }
                Err(error) => progress.suspend(|| failures.add(ctx, name, reference, error)),
            }
        }
        progress.suspend(|| ctx.out.flush())?;
        progress.add(count as u64);
    };
    drop(progress);
    ended.and(failures.end(ctx, total))
}

/// What became of a record.
struct Answered<T> {
    name: String,
    reference: String,
    done: anyhow::Result<(Entry, T)>,
}

/// Gives each answer to its record; those that were not found have theirs already.
fn matched<T, E: Into<anyhow::Error>>(
    batch: Vec<Named>,
    answers: Vec<Result<T, E>>,
) -> impl Iterator<Item = Answered<T>> {
    let mut answers = answers.into_iter();
    batch.into_iter().map(move |named| {
        let done = named.entry.and_then(|entry| match answers.next() {
            Some(Ok(answer)) => Ok((entry, answer)),
            Some(Err(error)) => Err(error.into()),
            None => Err(BoardError::NoSuchJob.into()),
        });
        Answered {
            name: named.name,
            reference: named.reference,
            done,
        }
    })
}
