//! Acts on several jobs and reports each result.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

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

const BATCH: usize = 500;

/// The shortest time between two exchanges of a paced run.
const TICK: Duration = Duration::from_millis(100);

/// The verb in both forms: before and after the action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) now: &'static str,
    pub(crate) past: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    batch: usize,
    /// The time between the starts of two batches.
    interval: Duration,
}

impl Pace {
    /// No limit.
    pub(crate) const FULL: Self = Self {
        batch: BATCH,
        interval: Duration::ZERO,
    };

    /// Parses a rate, for example `5/s` or `100/m`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let rate = text.split_once('/').and_then(|(count, unit)| {
            let unit = match unit {
                "s" => Duration::from_secs(1),
                "m" => Duration::from_secs(60),
                "h" => Duration::from_secs(60 * 60),
                _ => return None,
            };
            let count: u32 = count.parse().ok().filter(|count| *count > 0)?;
            Some((count, unit))
        });
        let (count, unit) =
            rate.ok_or("use a number per second, minute or hour, for example 5/s or 100/m")?;
        let each = unit / count;
        // More exchanges with the board would bring nothing.
        let batch = (TICK.as_nanos() / each.as_nanos().max(1)).clamp(1, BATCH as u128) as u32;
        Ok(Self {
            batch: batch as usize,
            interval: each * batch,
        })
    }
}

/// Acts on the chosen jobs in batches, and reports each in order.
///
/// A single job sets the exit code by its own error; several jobs share one. `told` completes the report of a job and
/// may print a note.
pub(crate) async fn act<T, E: Into<anyhow::Error>>(
    ctx: &mut Context,
    verb: Verb,
    chosen: Chosen,
    act: impl AsyncFnMut(&[&Entry]) -> board::Result<Vec<Result<T, E>>>,
    told: impl Fn(&T, Done) -> (Done, Option<String>),
) -> anyhow::Result<()> {
    act_at(ctx, (verb, Pace::FULL), chosen, act, told).await
}

/// Like [`act`], at this pace.
pub(crate) async fn act_at<T, E: Into<anyhow::Error>>(
    ctx: &mut Context,
    (verb, pace): (Verb, Pace),
    chosen: Chosen,
    mut act: impl AsyncFnMut(&[&Entry]) -> board::Result<Vec<Result<T, E>>>,
    told: impl Fn(&T, Done) -> (Done, Option<String>),
) -> anyhow::Result<()> {
    ctx.out.outlive_reader();
    let total = chosen.jobs.len();
    if total == 0 {
        ctx.out.note("no job matches; nothing changed");
    }
    let mut failures = Failures::new(ctx, verb.now, chosen.is_bulk);
    let progress = ctx.out.progress(verb.now, Some(total as u64));
    let mut jobs = chosen.jobs.into_iter().peekable();
    let mut next = Instant::now();
    let ended = loop {
        if jobs.peek().is_none() {
            break Ok(());
        }
        tokio::time::sleep_until(next).await;
        next = Instant::now() + pace.interval;
        let batch: Vec<_> = jobs.by_ref().take(pace.batch).collect();
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

struct Answered<T> {
    name: String,
    reference: String,
    done: anyhow::Result<(Entry, T)>,
}

/// Assigns the answers to their records; missing records already have theirs.
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
