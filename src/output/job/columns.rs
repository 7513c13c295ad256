//! The columns of a listing.

use std::{borrow::Cow, time::Duration};

use chrono::TimeDelta;

use super::{JobView, note::note};
use crate::{
    duration,
    job::{Departure, Job, Lease, Malformed, State, octavia},
    output::{Cell, Column, Fit, NOTHING, Tone},
};

#[derive(Debug)]
pub(super) struct JobColumn {
    pub(super) name: &'static str,
    /// The table column; its title may be shorter than its name.
    pub(super) shape: Column,
    read: Read,
}

pub(super) static COLUMNS: [JobColumn; 22] = [
    column("uuid", Fit::Id, None, |_, job| {
        Fact::Marked(Tone::Strong, job.reference())
    }),
    column("name", Fit::Shrinks, None, |_, job| {
        let name = (&job.name).into();
        match octavia::title(job) {
            Some(title) => Fact::Both(Cell::vital(Tone::Plain, title), name),
            None => Fact::Text(name),
        }
    }),
    column("state", Fit::Whole, Some(9), |_, job| state(job.state())),
    column("priority", Fit::Whole, Some(1), |_, job| {
        Fact::Text(job.priority.name().into())
    }),
    column("age", Fit::Number, Some(2), |view, job| {
        Fact::span(job.created_on.map(|time| view.since(time)))
    }),
    column("owner", Fit::KeepsEnds, Some(6), |_, job| {
        match (&job.holding, job.owner()) {
            (_, Some(owner)) => Fact::Text(owner.text()),
            (Some(_), None) => Fact::Aside(Cell::toned(Tone::Bad, "?")),
            (None, None) => Fact::Nothing,
        }
    }),
    column("held", Fit::Number, Some(5), |view, job| {
        Fact::span(job.held_since().map(|time| view.since(time)))
    }),
    column("expires", Fit::Number, Some(0), |_, job| {
        match job.holding.as_ref().map(|it| (it.lease, it.expires_in)) {
            Some((Lease::Timed, left)) => Fact::span(left),
            Some((Lease::Session, _)) => Fact::Text("session".into()),
            Some((Lease::None, _)) => Fact::Text("never".into()),
            None => Fact::Nothing,
        }
    }),
    titled("attempts", "tries", Fit::Number, Some(4), |_, job| {
        Fact::Number(job.history.attempts.into())
    }),
    column("note", Fit::Shrinks, Some(8), |view, job| {
        note(view, job).map_or(Fact::Nothing, |note| match job.problem {
            Some(_) => Fact::Marked(Tone::Bad, note.into()),
            None => Fact::Text(note.into()),
        })
    }),
    column("key", Fit::KeepsEnds, Some(3), |_, job| {
        Fact::Text(job.key.text())
    }),
    column("sequence", Fit::Number, Some(3), |_, job| {
        job.sequence
            .map_or(Fact::Nothing, |it| Fact::Number(it.into()))
    }),
    column("size", Fit::Number, Some(3), |_, job| {
        Fact::Number(job.size.into())
    }),
    column("trashed", Fit::Number, Some(5), |view, job| {
        Fact::span(job.trashed_on.map(|time| view.since(time)))
    }),
    column("outcome", Fit::Whole, Some(9), |_, job| {
        match job.ended.as_ref().map(|ended| ended.departure) {
            Some(Departure::Failed) => Fact::Marked(Tone::Bad, Departure::Failed.name().into()),
            Some(ending) => Fact::Text(ending.name().into()),
            None => Fact::Nothing,
        }
    }),
    column("ended", Fit::Number, Some(7), |view, job| {
        Fact::span(job.ended.as_ref().map(|ended| view.since(ended.on)))
    }),
    column("waited", Fit::Number, Some(2), |_, job| {
        Fact::span(job.waited().and_then(positive))
    }),
    column("took", Fit::Number, Some(4), |_, job| {
        Fact::span(job.took().and_then(positive))
    }),
    column("by", Fit::KeepsEnds, Some(6), |_, job| {
        let remark = job.history.remark.as_ref();
        remark.map_or(Fact::Nothing, |remark| Fact::Text((&remark.by).into()))
    }),
    column("action", Fit::Whole, Some(7), |_, job| {
        let action = job
            .history
            .remark
            .as_ref()
            .and_then(|it| it.action.as_ref());
        action.map_or(Fact::Nothing, |action| Fact::Text(action.into()))
    }),
    column("reason", Fit::Shrinks, Some(8), |_, job| reason(job)),
    column("exit_code", Fit::Number, Some(3), |_, job| {
        let code = job.last_exit().and_then(|(code, _)| code);
        code.map_or(Fact::Nothing, |code| Fact::Number(code.into()))
    }),
];

type Read = for<'a> fn(JobView<'a>, &'a Job) -> Fact<'a>;

const fn column(name: &'static str, fit: Fit, falls: Option<u8>, read: Read) -> JobColumn {
    titled(name, name, fit, falls, read)
}

const fn titled(
    name: &'static str,
    title: &'static str,
    fit: Fit,
    falls: Option<u8>,
    read: Read,
) -> JobColumn {
    JobColumn {
        name,
        shape: Column::new(title, fit).falling(falls),
        read,
    }
}

impl JobColumn {
    pub(super) fn of<'a>(&self, view: JobView<'a>, job: &'a Job) -> Fact<'a> {
        (self.read)(view, job)
    }

    pub(super) fn of_malformed<'a>(&self, record: &'a Malformed) -> Fact<'a> {
        match self.name {
            // In a table, the name column shows the key.
            "uuid" => Fact::Both(Fact::Nothing.cell(), format!("key:{}", record.key).into()),
            "name" => Fact::Aside(Cell::vital(Tone::Bad, format!("key:{}", record.key))),
            "state" | "outcome" => state(State::Malformed),
            "key" => Fact::Text(record.key.text()),
            "size" => Fact::Number(record.size.into()),
            "note" | "reason" => Fact::Marked(Tone::Bad, (&record.problem).into()),
            _ => Fact::Nothing,
        }
    }
}

/// A value before it is formatted for people or programs.
#[derive(Debug)]
pub(super) enum Fact<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Marked(Tone, Cow<'a, str>),
    Number(i128),
    Span(Duration),
    /// For people, and for programs.
    Both(Cell, Cow<'a, str>),
    /// Only for people.
    Aside(Cell),
}

impl Fact<'_> {
    fn span(span: Option<Duration>) -> Self {
        span.map_or(Self::Nothing, Self::Span)
    }

    pub(super) fn cell(self) -> Cell {
        match self {
            Self::Nothing => Cell::toned(Tone::Faint, NOTHING),
            Self::Text(text) => Cell::new(text),
            Self::Marked(tone, text) => Cell::toned(tone, text),
            Self::Number(number) => Cell::new(number.to_string()),
            Self::Span(span) => Cell::new(duration::brief(span)),
            Self::Both(cell, _) | Self::Aside(cell) => cell,
        }
    }

    /// Formats it for programs: durations in seconds.
    pub(super) fn field(self) -> String {
        match self {
            Self::Nothing | Self::Aside(_) => String::new(),
            Self::Text(text) | Self::Marked(_, text) | Self::Both(_, text) => text.into_owned(),
            Self::Number(number) => number.to_string(),
            Self::Span(span) => span.as_secs().to_string(),
        }
    }
}

fn state(state: State) -> Fact<'static> {
    Fact::Marked(Tone::of(state), state.name().into())
}

fn positive(span: TimeDelta) -> Option<Duration> {
    span.to_std().ok()
}

/// Returns the reason of the last action; people see the action too, unless it ended or trashed the job. Without a
/// reason, returns the last failure or the problem of the record.
fn reason(job: &Job) -> Fact<'_> {
    if let (Some(remark), Some(reason)) = (&job.history.remark, job.history.reason()) {
        return match &remark.action {
            Some(action) if job.sent_by().is_none() => {
                Fact::Both(Cell::new(format!("{action}: {reason}")), reason)
            }
            _ => Fact::Text(reason),
        };
    }
    let has_failed = job.ended.as_ref().map(|ended| ended.departure) != Some(Departure::Consumed);
    let failure = job.history.failures.last().filter(|_| has_failed);
    match (failure, &job.problem) {
        (Some(failure), _) => Fact::Text(failure.headline().into()),
        (None, Some(problem)) => Fact::Marked(Tone::Bad, problem.into()),
        (None, None) => Fact::Nothing,
    }
}
