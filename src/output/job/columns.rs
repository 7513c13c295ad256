//! The columns of a listing.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};

use super::JobView;
use crate::{
    duration,
    job::{
        ClaimEnd, Entry, FieldValue, Job, JobField, MAX_TEXT_BYTES, Outcome, State, octavia,
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
    source: CellSource,
}

#[derive(Debug)]
enum CellSource {
    Field(JobField),
    Computed(for<'a> fn(JobView<'a>) -> Fact<'a>),
}

impl JobColumn {
    pub(super) fn read<'a>(&self, view: JobView<'a>) -> Fact<'a> {
        match self.source {
            CellSource::Field(field) => Fact::of(field, view),
            CellSource::Computed(read) => read(view),
        }
    }
}

/// Lists the columns: name, title, fit, the order in which they leave a narrow table (if at all), and source.
macro_rules! columns {
    ($($name:literal $title:literal $fit:ident ($($falls:literal)?) $source:ident($of:path);)*) => {
        pub(super) static COLUMNS: &[JobColumn] = &[$(JobColumn {
            name: $name,
            shape: Column::new($title, Fit::$fit)$(.falling(Some($falls)))?,
            source: CellSource::$source($of),
        },)*];
    };
}

columns! {
    "uuid"      "uuid"      Id        ()  Computed(reference);
    "name"      "name"      Shrinks   ()  Computed(name);
    "state"     "state"     Whole     (9) Computed(state);
    "priority"  "priority"  Whole     (1) Field(JobField::Priority);
    "age"       "age"       Number    (2) Field(JobField::Age);
    "owner"     "owner"     KeepsEnds (6) Computed(owner);
    "held"      "held"      Number    (5) Computed(held);
    "expires"   "expires"   Number    (0) Computed(expires);
    "attempts"  "tries"     Number    (4) Field(JobField::Attempts);
    "note"      "note"      Shrinks   (8) Computed(note);
    "key"       "key"       KeepsEnds (3) Computed(key);
    "sequence"  "sequence"  Number    (3) Field(JobField::Sequence);
    "size"      "size"      Number    (3) Field(JobField::Size);
    "trashed"   "trashed"   Number    (5) Field(JobField::Trashed);
    "outcome"   "outcome"   Whole     (9) Computed(outcome);
    "ended"     "ended"     Number    (7) Field(JobField::Ended);
    "waited"    "waited"    Number    (2) Field(JobField::Waited);
    "took"      "took"      Number    (4) Field(JobField::Took);
    "by"        "by"        KeepsEnds (6) Field(JobField::By);
    "action"    "action"    Whole     (7) Field(JobField::Action);
    "reason"    "reason"    Shrinks   (8) Computed(reason);
    "exit_code" "exit_code" Number    (3) Field(JobField::ExitCode);
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
    match holding.map(|it| (it.end, it.expires_in)) {
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
    match job.ended.as_ref().map(|ended| ended.outcome) {
        Some(Outcome::Failed) => Fact::Marked(Tone::Bad, Outcome::Failed.name().into()),
        outcome => outcome.map_or(Fact::Nothing, |it| Fact::text(it.name())),
    }
}

/// In columns.
const MAX_CELL: usize = 200;

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
    fn of(field: JobField, view: JobView<'a>) -> Self {
        match field.read(view.entry) {
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
    pub(super) fn field(self, now: DateTime<Utc>) -> Cow<'a, str> {
        let seconds = |span: Duration| span.as_secs().to_string();
        match self {
            Self::Nothing | Self::Aside(_) => Cow::default(),
            Self::Plain(value) => short(formatted(value, now, seconds)),
            Self::Marked(_, text) | Self::Both(_, text) => short(text),
        }
    }
}

/// One huge text must not widen its column in every row.
fn narrow(text: Cow<'_, str>) -> Text {
    match text.len() > MAX_CELL {
        true => Text::from(text).shortened(MAX_CELL),
        false => Text::from(text),
    }
}

fn short(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.len() > MAX_TEXT_BYTES {
        true => shortened(&text).into(),
        false => text,
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
    let end = job.holding.as_ref().map(|holding| holding.end);
    let is_endless = state == State::Claimed && end == Some(ClaimEnd::Never);
    let delay = job.attempts.not_before.and_then(left);
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
    if let (Some(audit), Some(reason)) = (&job.attempts.audit, job.reason()) {
        return match &audit.action {
            Some(action) if job.sent_by().is_none() => {
                Fact::Both(Cell::new(format!("{action}: {reason}")), reason)
            }
            _ => Fact::text(reason),
        };
    }
    let outcome = job.ended.as_ref().map(|ended| ended.outcome);
    let has_failed = matches!(outcome, None | Some(Outcome::Failed | Outcome::Purged));
    let failure = job.attempts.failures.last().filter(|_| has_failed);
    match (failure, &job.problem) {
        (Some(failure), _) => Fact::text(failure.headline()),
        (None, Some(problem)) => Fact::Marked(Tone::Bad, problem.into()),
        (None, None) => Fact::Nothing,
    }
}
