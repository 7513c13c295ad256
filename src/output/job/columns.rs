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
    Reference,
    Key,
    Note,
    Field(JobField),
}

pub(super) static COLUMNS: &[JobColumn] = &[
    column("uuid", "uuid", Fit::Id, None, ColumnContent::Reference),
    field(JobField::Name, Fit::Shrinks, None),
    field(JobField::State, Fit::Whole, Some(9)),
    field(JobField::Priority, Fit::Whole, Some(1)),
    field(JobField::Age, Fit::Number, Some(2)),
    field(JobField::Owner, Fit::KeepsEnds, Some(6)),
    field(JobField::Held, Fit::Number, Some(5)),
    field(JobField::Expires, Fit::Number, Some(0)),
    titled("tries", JobField::Attempts, Fit::Number, Some(4)),
    column("note", "note", Fit::Shrinks, Some(8), ColumnContent::Note),
    column("key", "key", Fit::KeepsEnds, Some(3), ColumnContent::Key),
    field(JobField::Sequence, Fit::Number, Some(3)),
    field(JobField::Size, Fit::Number, Some(3)),
    field(JobField::Trashed, Fit::Number, Some(5)),
    field(JobField::Outcome, Fit::Whole, Some(9)),
    field(JobField::Ended, Fit::Number, Some(7)),
    field(JobField::Waited, Fit::Number, Some(2)),
    field(JobField::Took, Fit::Number, Some(4)),
    field(JobField::By, Fit::KeepsEnds, Some(6)),
    field(JobField::Action, Fit::Whole, Some(7)),
    field(JobField::Reason, Fit::Shrinks, Some(8)),
    field(JobField::ExitCode, Fit::Number, Some(3)),
];

const fn field(field: JobField, fit: Fit, falls: Option<u8>) -> JobColumn {
    titled(field.name(), field, fit, falls)
}

const fn titled(title: &'static str, field: JobField, fit: Fit, falls: Option<u8>) -> JobColumn {
    column(field.name(), title, fit, falls, ColumnContent::Field(field))
}

const fn column(
    name: &'static str,
    title: &'static str,
    fit: Fit,
    falls: Option<u8>,
    content: ColumnContent,
) -> JobColumn {
    JobColumn {
        name,
        shape: Column::new(title, fit).falling(falls),
        content,
    }
}

impl JobColumn {
    pub(super) fn of<'a>(&self, view: JobView<'a>) -> Fact<'a> {
        use ColumnContent::{Field, Key, Note, Reference};
        match (self.content, view.entry) {
            (Reference, Entry::Job(job)) => Fact::Marked(Tone::Strong, job.reference()),
            // In a table, the name column shows the key.
            (Reference, entry) => Fact::Both(Fact::Nothing.cell(view.now), entry.reference()),
            (Field(JobField::Name), Entry::Malformed(_)) => {
                Fact::Aside(Cell::vital(Tone::Bad, view.entry.reference()))
            }
            (Field(JobField::Name), Entry::Job(job)) => {
                let title = octavia::title(job).map(|title| Cell::vital(Tone::Plain, title));
                let name = Cow::Borrowed(&*job.name);
                title.map_or(Fact::text(&job.name), |title| Fact::Both(title, name))
            }
            (Field(JobField::State), entry)
            | (Field(JobField::Outcome), entry @ Entry::Malformed(_)) => {
                let state = entry.state();
                Fact::Marked(Tone::of(state), state.name().into())
            }
            (Key, entry) => Fact::text(entry.key().text()),
            (Note | Field(JobField::Reason), Entry::Malformed(record)) => {
                Fact::Marked(Tone::Bad, (&record.problem).into())
            }
            (Note, Entry::Job(job)) => note(view, job),
            (Field(JobField::Held), Entry::Job(job)) => job
                .held_since()
                .map_or(Fact::Nothing, |since| Fact::Plain(FieldValue::Since(since))),
            (Field(JobField::Expires), Entry::Job(job)) => {
                match job.holding.as_ref().map(|it| (it.lease, it.expires_in)) {
                    Some((ClaimEnd::Timed, Some(left))) => Fact::Plain(FieldValue::Span(left)),
                    Some((ClaimEnd::Session, _)) => Fact::text("session"),
                    Some((ClaimEnd::Never, _)) => Fact::text("never"),
                    Some((ClaimEnd::Timed, None)) | None => Fact::Nothing,
                }
            }
            (Field(JobField::Reason), Entry::Job(job)) => reason(job),
            (Field(field), entry) => match (field, field.read(entry)) {
                (JobField::Owner, Some(FieldValue::Unknown)) => {
                    Fact::Aside(Cell::toned(Tone::Bad, "?"))
                }
                (_, None | Some(FieldValue::Unknown)) => Fact::Nothing,
                (JobField::Outcome, Some(FieldValue::Text(text)))
                    if text == Departure::Failed.name() =>
                {
                    Fact::Marked(Tone::Bad, text)
                }
                (_, Some(value)) => Fact::Plain(value),
            },
        }
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
fn note<'a>(view: JobView<'_>, job: &Job) -> Fact<'a> {
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
fn reason(job: &Job) -> Fact<'_> {
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
