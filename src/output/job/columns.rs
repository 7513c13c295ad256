//! The columns of a listing.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};

use super::JobView;
use crate::{
    duration,
    job::{
        ClaimEnd, Departure, Entry, FieldValue, Job, JobField, LONGEST_TEXT, State, octavia,
        shortened,
    },
    output::{ABSENT, Cell, Column, Fit, Text, Tone},
    problem::Code,
};

#[derive(Debug)]
pub(super) struct JobColumn {
    pub(super) name: &'static str,
    /// The table column; its title may be shorter than its name.
    pub(super) shape: Column,
    content: ColumnContent,
}

#[derive(Debug, Clone, Copy)]
enum ColumnContent {
    Field(JobField),
    /// Prints a field differently, or prints more than a field.
    Special(for<'a> fn(JobView<'a>) -> Fact<'a>),
}

pub(super) static COLUMNS: &[JobColumn] = &[
    special("uuid", Fit::Id, None, reference),
    special("name", Fit::Shrinks, None, name),
    special("state", Fit::Whole, Some(9), state),
    field(JobField::Priority, Fit::Whole, Some(1)),
    field(JobField::Age, Fit::Number, Some(2)),
    special("owner", Fit::KeepsEnds, Some(6), owner),
    special("held", Fit::Number, Some(5), held),
    special("expires", Fit::Number, Some(0), expires),
    titled("tries", JobField::Attempts, Fit::Number, Some(4)),
    special("note", Fit::Shrinks, Some(8), note),
    special("key", Fit::KeepsEnds, Some(3), key),
    field(JobField::Sequence, Fit::Number, Some(3)),
    field(JobField::Size, Fit::Number, Some(3)),
    field(JobField::Trashed, Fit::Number, Some(5)),
    special("outcome", Fit::Whole, Some(9), outcome),
    field(JobField::Ended, Fit::Number, Some(7)),
    field(JobField::Waited, Fit::Number, Some(2)),
    field(JobField::Took, Fit::Number, Some(4)),
    field(JobField::By, Fit::KeepsEnds, Some(6)),
    field(JobField::Action, Fit::Whole, Some(7)),
    special("reason", Fit::Shrinks, Some(8), reason),
    field(JobField::ExitCode, Fit::Number, Some(3)),
];

const fn field(field: JobField, fit: Fit, falls: Option<u8>) -> JobColumn {
    titled(field.name(), field, fit, falls)
}

const fn titled(title: &'static str, field: JobField, fit: Fit, falls: Option<u8>) -> JobColumn {
    JobColumn {
        name: field.name(),
        shape: Column::new(title, fit).falling(falls),
        content: ColumnContent::Field(field),
    }
}

const fn special(
    name: &'static str,
    fit: Fit,
    falls: Option<u8>,
    content: for<'a> fn(JobView<'a>) -> Fact<'a>,
) -> JobColumn {
    JobColumn {
        name,
        shape: Column::new(name, fit).falling(falls),
        content: ColumnContent::Special(content),
    }
}

impl JobColumn {
    pub(super) fn of<'a>(&self, view: JobView<'a>) -> Fact<'a> {
        match self.content {
            ColumnContent::Field(field) => Fact::of(field, view.entry),
            ColumnContent::Special(content) => content(view),
        }
    }
}

fn reference(view: JobView<'_>) -> Fact<'_> {
    let reference = view.entry.reference();
    match view.entry {
        Entry::Job(_) => Fact::Marked(Tone::Strong, reference),
        // In a table, the name column shows the key.
        Entry::Malformed(_) => Fact::Both(Fact::Nothing.cell(view.now), reference),
    }
}

fn name(view: JobView<'_>) -> Fact<'_> {
    let Some(job) = view.entry.job() else {
        return Fact::Aside(Cell::vital(Tone::Bad, view.entry.reference()));
    };
    match octavia::title(job) {
        Some(title) => Fact::Both(Cell::vital(Tone::Plain, title), Cow::Borrowed(&job.name)),
        None => Fact::text(&job.name),
    }
}

fn state(view: JobView<'_>) -> Fact<'_> {
    let state = view.entry.state();
    Fact::Marked(Tone::of(state), state.name().into())
}

fn key(view: JobView<'_>) -> Fact<'_> {
    Fact::text(view.entry.key().text())
}

fn owner(view: JobView<'_>) -> Fact<'_> {
    match JobField::Owner.read(view.entry) {
        Some(FieldValue::Unknown) => Fact::Aside(Cell::toned(Tone::Bad, "?")),
        owner => owner.map_or(Fact::Nothing, Fact::Plain),
    }
}

/// Unlike the field, shows the claim of a trashed job, too.
fn held(view: JobView<'_>) -> Fact<'_> {
    let since = view.entry.job().and_then(Job::held_since);
    since.map_or(Fact::Nothing, |it| Fact::Plain(FieldValue::Since(it)))
}

fn expires(view: JobView<'_>) -> Fact<'_> {
    let holding = view.entry.job().and_then(|job| job.holding.as_ref());
    match holding.map(|it| (it.lease, it.expires_in)) {
        Some((ClaimEnd::Timed, Some(left))) => Fact::Plain(FieldValue::Span(left)),
        Some((ClaimEnd::Session, _)) => Fact::text("session"),
        Some((ClaimEnd::Never, _)) => Fact::text("never"),
        Some((ClaimEnd::Timed, None)) | None => Fact::Nothing,
    }
}

fn outcome(view: JobView<'_>) -> Fact<'_> {
    let Some(job) = view.entry.job() else {
        return state(view);
    };
    match job.ended.as_ref().map(|ended| ended.departure) {
        Some(Departure::Failed) => Fact::Marked(Tone::Bad, Departure::Failed.name().into()),
        departure => departure.map_or(Fact::Nothing, |it| Fact::text(it.name())),
    }
}

/// In columns.
const WIDEST_CELL: usize = 200;

/// A value before it is formatted for people or programs.
#[derive(Debug)]
pub(super) enum Fact<'a> {
    Nothing,
    Plain(FieldValue<'a>),
    Marked(Tone, Cow<'a, str>),
    /// For people, and for programs.
    Both(Cell, Cow<'a, str>),
    Aside(Cell),
}

impl<'a> Fact<'a> {
    fn of(field: JobField, entry: &'a Entry) -> Self {
        match field.read(entry) {
            None | Some(FieldValue::Unknown) => Self::Nothing,
            Some(value) => Self::Plain(value),
        }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Plain(FieldValue::Text(text.into()))
    }

    pub(super) fn cell(self, now: DateTime<Utc>) -> Cell {
        match self {
            Self::Nothing => Cell::toned(Tone::Faint, ABSENT),
            Self::Plain(value) => Cell::new(narrow(formatted(value, now, duration::brief))),
            Self::Marked(tone, text) => Cell::toned(tone, narrow(text)),
            Self::Both(cell, _) | Self::Aside(cell) => cell,
        }
    }

    /// Formats it for programs: durations in seconds.
    pub(super) fn field(self, now: DateTime<Utc>) -> String {
        let seconds = |span: Duration| span.as_secs().to_string();
        match self {
            Self::Nothing | Self::Aside(_) => String::new(),
            Self::Plain(value) => short(formatted(value, now, seconds)),
            Self::Marked(_, text) | Self::Both(_, text) => short(text),
        }
    }
}

/// One huge text must not widen its column in every row.
fn narrow(text: Cow<'_, str>) -> Text {
    match text.len() > WIDEST_CELL {
        true => Text::from(text).shortened(WIDEST_CELL),
        false => Text::from(text),
    }
}

fn short(text: Cow<'_, str>) -> String {
    match text.len() > LONGEST_TEXT {
        true => shortened(&text),
        false => text.into_owned(),
    }
}

fn formatted(
    value: FieldValue<'_>,
    now: DateTime<Utc>,
    span: impl Fn(Duration) -> String,
) -> Cow<'_, str> {
    match value {
        FieldValue::Text(text) => text,
        FieldValue::Priority(priority) => priority.name().into(),
        FieldValue::Number(number) => number.to_string().into(),
        value => value.span(now).map(span).unwrap_or_default().into(),
    }
}

/// Explains why a job is unusual or stuck; the worst reason comes first.
fn note(view: JobView<'_>) -> Fact<'_> {
    let Entry::Job(job) = view.entry else {
        return reason(view);
    };
    let state = job.state();
    let left = |until: DateTime<Utc>| (until - view.now).to_std().ok();
    let paused = view.pause.map(|pause| {
        let left = pause.until.and_then(left).map(duration::brief);
        left.map_or("paused".to_owned(), |left| format!("paused {left}"))
    });
    let lease = job.holding.as_ref().map(|holding| holding.lease);
    let is_endless = state == State::Claimed && lease == Some(ClaimEnd::Never);
    let delay = job.history.not_before.and_then(left);
    let delay = delay.filter(|left| state == State::Unclaimed && !left.is_zero());
    let notes = [
        job.problem.clone(),
        (view.has_invalid_command).then(|| Code::InvalidCommand.name().to_owned()),
        paused,
        is_endless.then(|| "never expires".to_owned()),
        delay.map(|left| format!("retry in {}", duration::brief(left))),
    ];
    let notes: Vec<_> = notes.into_iter().flatten().collect();
    match (notes.is_empty(), &job.problem) {
        (true, _) => Fact::Nothing,
        (false, Some(_)) => Fact::Marked(Tone::Bad, notes.join("; ").into()),
        (false, None) => Fact::text(notes.join("; ")),
    }
}

/// Returns the reason of the last action; people see the action too, unless it ended or trashed the job. Without a
/// reason, returns the last failure or the problem of the record.
fn reason(view: JobView<'_>) -> Fact<'_> {
    let job = match view.entry {
        Entry::Job(job) => job,
        Entry::Malformed(record) => return Fact::Marked(Tone::Bad, (&record.problem).into()),
    };
    if let (Some(remark), Some(reason)) = (&job.history.remark, job.history.reason()) {
        return match &remark.action {
            Some(action) if job.sent_by().is_none() => {
                Fact::Both(Cell::new(format!("{action}: {reason}")), reason)
            }
            _ => Fact::text(reason),
        };
    }
    let has_failed = job.ended.as_ref().map(|ended| ended.departure) != Some(Departure::Consumed);
    let failure = job.history.failures.last().filter(|_| has_failed);
    match (failure, &job.problem) {
        (Some(failure), _) => Fact::text(failure.headline()),
        (None, Some(problem)) => Fact::Marked(Tone::Bad, problem.into()),
        (None, None) => Fact::Nothing,
    }
}
