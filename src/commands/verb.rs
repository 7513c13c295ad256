//! Doing something to each of several jobs, and answering for each.

use anyhow::Context as _;

use super::{done::Done, select::Chosen};
use crate::{board, context::Context, exit::CommandError, job::Entry};

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
/// The only one decides on the exit code by its own error; of several, that some failed.
pub(crate) async fn act<T>(
    ctx: &mut Context,
    verb: Verb,
    chosen: Vec<Chosen>,
    mut act: impl AsyncFnMut(&[&Entry]) -> board::Result<Vec<board::Result<T>>>,
    note: impl Fn(&T) -> Option<String>,
) -> anyhow::Result<()> {
    ctx.out.outlive_reader();
    let total = chosen.len();
    let progress = ctx.out.progress(verb.now, Some(total as u64));
    if total == 0 {
        ctx.out.note("no job matches, and nothing was done");
    }
    let mut failed = 0;
    let mut chosen = chosen.into_iter().peekable();
    while chosen.peek().is_some() {
        let batch: Vec<_> = chosen.by_ref().take(BATCH).collect();
        let entries: Vec<_> = batch
            .iter()
            .filter_map(|(_, entry)| entry.as_ref().ok())
            .collect();
        let answers = act(&entries)
            .await
            .with_context(|| ctx.trying(verb.now, "the jobs"))?;
        let mut answers = answers.into_iter();
        let count = batch.len();
        for (wanted, entry) in batch {
            let done = match entry {
                Ok(entry) => answers
                    .next()
                    .unwrap_or(Err(board::BoardError::NoSuchJob))
                    .map(|answer| (entry, answer))
                    .map_err(anyhow::Error::from),
                Err(error) => Err(error),
            };
            match done.with_context(|| ctx.trying(verb.now, &wanted)) {
                Ok((entry, answer)) => {
                    if let Some(note) = note(&answer) {
                        progress.suspend(|| ctx.out.note(note));
                    }
                    let report = done_to(&entry, verb.past);
                    progress.suspend(|| ctx.out.say(&report))?;
                }
                Err(error) if total == 1 => return Err(error),
                Err(error) => {
                    progress.suspend(|| ctx.tell(&error));
                    failed += 1;
                }
            }
        }
        progress.suspend(|| ctx.out.flush())?;
        progress.add(count as u64);
    }
    if failed > 0 {
        return Err(CommandError::Partly { failed, total }.into());
    }
    Ok(())
}

fn done_to(entry: &Entry, past: &'static str) -> Done {
    match entry {
        Entry::Job(job) => Done::new(past, &job.uuid, &job.name),
        Entry::Malformed(record) => Done {
            uuid: None,
            name: None,
            done: past,
            more: None,
        }
        .with("key", record.key.as_str()),
    }
}
