//! Acts on several jobs and reports each result.

use std::{collections::VecDeque, time::Duration};

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    report::{Done, Results},
    select::{Choice, Chosen, Named},
};
use crate::{
    board::{self, BoardError, collect::next_page},
    context::Context,
    exit::CommandError,
    job::Entry,
    output::count_jobs,
    process::signal::{Signals, code_of},
    suggest::Suggestion,
};

pub(super) const BATCH: usize = 500;

/// The shortest time between two exchanges of a paced run.
const TICK: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) now: &'static str,
    pub(crate) past: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pace {
    batch: usize,
    interval: Duration,
    /// The rate as typed; empty for no limit.
    pub(crate) text: String,
}

impl Pace {
    pub(crate) const FULL: Self = Self {
        batch: BATCH,
        interval: Duration::ZERO,
        text: String::new(),
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
            text: text.to_owned(),
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Effect {
    pub(crate) field: Option<(&'static str, Value)>,
    pub(crate) note: Option<String>,
}

/// Acts on the chosen jobs in batches, and reports each in order.
///
/// A single job sets the exit code by its own error; several jobs share one. With a command to resume, Ctrl-C ends the
/// work after a batch and prints that command.
pub(crate) async fn act(
    ctx: &mut Context,
    verb: Verb,
    pace: Pace,
    resume: Option<Suggestion>,
    chosen: Chosen,
    mut change: impl AsyncFnMut(&[&Entry]) -> board::Result<Vec<anyhow::Result<Effect>>>,
) -> anyhow::Result<()> {
    ctx.out.outlive_reader();
    let (choice, total) = (chosen.choice, chosen.jobs.len());
    if total == 0 && choice != Choice::Planned {
        ctx.out.note("no job matches; nothing changed");
    }
    let progress = ctx.out.progress(verb.now, Some(total as u64));
    let mut results = Results::new(ctx, verb.now, chosen.is_bulk()).with_progress(progress);
    let mut jobs = VecDeque::from(chosen.jobs);
    let mut next = Instant::now();
    let mut signals = resume.as_ref().map(|_| Signals::ending()).transpose()?;
    let ended = loop {
        if jobs.is_empty() {
            break Ok(());
        }
        if let Some(signal) = signal_before(next, signals.as_mut()).await {
            let rest = remaining(resume, choice, jobs.into_iter());
            break Err(stopped(ctx, signal, rest));
        }
        next = Instant::now() + pace.interval;
        let batch = next_page(&mut jobs, pace.batch, |named| named.entry.as_ref().ok());
        let entries: Vec<_> = batch
            .iter()
            .filter_map(|named| named.entry.as_ref().ok())
            .collect();
        let answers = match change(&entries).await {
            Ok(answers) => answers,
            Err(error) => break Err(error).with_context(|| ctx.trying(verb.now, "the jobs")),
        };
        let count = batch.len();
        for (name, reference, done) in matched(batch, answers) {
            match done {
                Ok((entry, effect)) => {
                    let mut done = Done::of(verb.past, &entry);
                    if let Some(note) = effect.note {
                        results.suspend(|| ctx.out.note(note));
                    }
                    if let Some((name, value)) = effect.field {
                        done = done.with(name, value);
                    }
                    results.print(ctx, &done)?;
                }
                Err(error) if choice == Choice::Planned && has_changed(&error) => {
                    results.print(ctx, &Done::skipped(&reference, name))?;
                }
                Err(error) if total == 1 => {
                    return Err(error.context(ctx.trying(verb.now, name).with(reference)));
                }
                Err(error) => results.fail(ctx, name, reference, error),
            }
        }
        results.flush(ctx, count as u64)?;
    };
    ended.and(results.end(ctx))
}

async fn signal_before(then: Instant, signals: Option<&mut Signals>) -> Option<Signal> {
    let Some(signals) = signals else {
        tokio::time::sleep_until(then).await;
        return None;
    };
    tokio::select! {
        signal = signals.next() => Some(signal),
        () = tokio::time::sleep_until(then) => signals.pending().await,
    }
}

pub(crate) fn stopped(
    ctx: &Context,
    signal: Signal,
    (left, resume): (String, Suggestion),
) -> anyhow::Error {
    ctx.out.note(format!(
        "stopped with {left} remaining; to continue: `{resume}`"
    ));
    CommandError::Command(code_of(None, Some(signal.as_raw()))).into()
}

pub(crate) fn remaining(
    resume: Option<Suggestion>,
    choice: Choice,
    rest: impl Iterator<Item = Named>,
) -> (String, Suggestion) {
    let rest: Vec<_> = rest.map(|named| named.reference).collect();
    let (left, resume) = (count_jobs(rest.len() as u64), resume.unwrap_or_default());
    let resume = match choice {
        Choice::Named => resume.with(rest),
        Choice::Filtered | Choice::Planned => resume,
    };
    (left, resume)
}

pub(crate) fn has_changed(error: &anyhow::Error) -> bool {
    let is_changed = |error: &BoardError| {
        matches!(
            error,
            BoardError::AlreadyClaimed { .. } | BoardError::NotDelayed
        ) || error.is_about_the_claim()
    };
    matches!(error.downcast_ref(), Some(CommandError::NotHeldBy(_)))
        || error.downcast_ref().is_some_and(is_changed)
}

type Answered = (String, String, anyhow::Result<(Entry, Effect)>);

fn matched(
    batch: Vec<Named>,
    answers: Vec<anyhow::Result<Effect>>,
) -> impl Iterator<Item = Answered> {
    let mut answers = answers.into_iter();
    batch.into_iter().map(move |named| {
        let done = named.entry.and_then(|entry| match answers.next() {
            Some(answer) => Ok((entry, answer?)),
            None => Err(BoardError::NoSuchJob.into()),
        });
        (named.name, named.reference, done)
    })
}
