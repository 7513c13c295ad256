//! The fields of a job: filters, columns, sorting and counting use this one table.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{ClaimEnd, Entry, Holding, Job, Priority, State, octavia};

/// The type of a field. It determines the operators, the sort key and the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    State,
    Outcome,
    /// Greater is more urgent.
    Priority,
    Number,
    Size,
    /// A growing duration, so equality would never match.
    Span,
    /// The duration since an event.
    Since,
    Details,
}

/// The least data that has the value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSource {
    Event,
    Record,
    Details,
}

#[derive(Debug)]
pub(crate) enum FieldValue<'a> {
    Text(Cow<'a, str>),
    Priority(Priority),
    Number(i128),
    Span(Duration),
    Since(DateTime<Utc>),
    Json(Cow<'a, Value>),
    /// Unknown or meaningless: neither a value nor its absence.
    Unknown,
}

impl FieldValue<'_> {
    pub(crate) fn span(&self, now: DateTime<Utc>) -> Option<Duration> {
        match self {
            Self::Span(span) => Some(*span),
            // Clocks may disagree: a future time counts as now.
            Self::Since(time) => Some((now - *time).to_std().unwrap_or_default()),
            _ => None,
        }
    }
}

macro_rules! fields {
    ($($Field:ident $name:literal $Kind:ident $Source:ident |$entry:ident| $value:expr;)+) => {
        /// All fields but the details, in the order of messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum JobField { $($Field,)+ }

        impl JobField {
            pub(crate) const ALL: &[Self] = &[$(Self::$Field,)+];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$Field => $name,)+ }
            }

            pub(crate) fn kind(self) -> FieldKind {
                match self { $(Self::$Field => FieldKind::$Kind,)+ }
            }

            pub(crate) fn source(self) -> FieldSource {
                match self { $(Self::$Field => FieldSource::$Source,)+ }
            }

            /// Returns the value in a record; `None` matches `none`.
            pub(crate) fn read(self, entry: &Entry) -> Option<FieldValue<'_>> {
                use FieldValue::{Number, Priority, Since, Span, Text};
                Some(match self { $(Self::$Field => { let $entry = entry; $value })+ })
            }
        }
    };
}

// A malformed record has only a state and a size; only messages name it by its key.
fields! {
    Name         "name"      Text     Event   |it| Text(it.job()?.name.as_str().into());
    State        "state"     State    Event   |it| Text(it.state().name().into());
    Owner        "owner"     Text     Event   |it| owner(it.job()?.holding.as_ref()?);
    Priority     "priority"  Priority Event   |it| Priority(it.job()?.priority);
    Sequence     "sequence"  Number   Event   |it| Number(it.job()?.sequence?.into());
    Age          "age"       Since    Record  |it| Since(it.job()?.created_on?);
    Held         "held"      Since    Record  |it| Since(claimed(it)?.held_since()?);
    Expires      "expires"   Span     Record  |it| expires(it)?;
    Attempts     "attempts"  Number   Record  |it| Number(it.job()?.attempts.count.into());
    Size         "size"      Size     Record  |it| Number(it.size().into());
    Trashed      "trashed"   Since    Record  |it| Since(it.job()?.trashed_on?);
    Ended        "ended"     Since    Record  |it| Since(it.job()?.ended.as_ref()?.on);
    Outcome      "outcome"   Outcome  Record  |it| Text(it.job()?.ended.as_ref()?.outcome.name().into());
    By           "by"        Text     Record  |it| Text(it.job()?.by()?);
    Action       "action"    Text     Record  |it| Text(it.job()?.last_action()?.action.as_deref()?.into());
    Reason       "reason"    Text     Record  |it| Text(it.job()?.reason()?);
    Waited       "waited"    Span     Record  |it| Span(it.job()?.waited()?.to_std().ok()?);
    Took         "took"      Span     Record  |it| Span(it.job()?.took()?.to_std().ok()?);
    // A command that was ended by a signal has none.
    ExitCode     "exit_code" Number   Record  |it| Number(it.job()?.last_exit()?.0?.into());
    // As far as the posting states it.
    LoadBalancer "lb"        Text     Details |it| Text(octavia::load_balancer(it.job()?)?);
    Amphora      "amphora"   Text     Details |it| Text(octavia::amphora(it.job()?)?);
}

fn owner(holding: &Holding) -> FieldValue<'_> {
    // An unreadable owner still counts as one.
    let owner = holding.owner.as_ref();
    owner.map_or(FieldValue::Unknown, |it| FieldValue::Text(it.text()))
}

/// Only a claim that never expires has no expiry. Without a claim, or if only the end of a session ends it, the field
/// does not apply.
fn expires(entry: &Entry) -> Option<FieldValue<'_>> {
    match claimed(entry).and_then(|job| job.holding.as_ref()) {
        Some(it) if it.end == ClaimEnd::Never => None,
        holding => Some(
            holding
                .and_then(|it| it.expires_in)
                .map_or(FieldValue::Unknown, FieldValue::Span),
        ),
    }
}

/// Only a claimed job is held: in the trash, a claim is history.
fn claimed(entry: &Entry) -> Option<&Job> {
    entry.job().filter(|job| job.state() == State::Claimed)
}
