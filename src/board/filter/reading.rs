//! The value of each field in an entry.
//!
//! A malformed record has only a state and a size.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value as Json;

use super::field::{Field, FieldName};
use crate::job::{Entry, Holding, Job, Lease, Priority, Remark, State, octavia};

#[derive(Debug)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Priority(Priority),
    Number(i128),
    Span(Duration),
    Json(Cow<'a, Json>),
    /// Unknown or meaningless: neither a value nor its absence.
    Unknown,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// Returns an entry's value; `None` matches `none`.
pub(super) fn read<'a>(field: &Field, entry: &'a Entry, now: DateTime<Utc>) -> Option<Value<'a>> {
    let name = match field {
        Field::Named(name) => name,
        // Details that were not fetched are missing like any others.
        Field::Details(path) => {
            let found = match entry.job()?.details()? {
                Cow::Borrowed(details) => path.find(details).map(Cow::Borrowed),
                Cow::Owned(details) => path.find(&details).cloned().map(Cow::Owned),
            };
            return found.map(Value::Json);
        }
    };
    // Clocks may disagree: a future time counts as now.
    let since = |time: DateTime<Utc>| Value::Span((now - time).to_std().unwrap_or_default());
    Some(match name {
        // A malformed record has no name; only messages name it by its key.
        FieldName::Name => entry.job()?.name.as_str().into(),
        FieldName::State => entry.state().name().into(),
        FieldName::Owner => match &entry.job()?.holding.as_ref()?.owner {
            Some(owner) => Value::Text(owner.text()),
            // An unreadable owner still counts as one.
            None => Value::Unknown,
        },
        FieldName::Priority => Value::Priority(entry.job()?.priority),
        FieldName::Sequence => Value::Number(entry.job()?.sequence?.into()),
        FieldName::Age => since(entry.job()?.created_on?),
        FieldName::Held => since(claimed(entry)?.held_since()?),
        FieldName::Expires => return expires(entry),
        FieldName::Attempts => Value::Number(entry.job()?.history.attempts.into()),
        // Every record has a size, readable or not.
        FieldName::Size => Value::Number(i128::from(match entry {
            Entry::Job(job) => job.size,
            Entry::Malformed(record) => record.size,
        })),
        FieldName::Trashed => since(entry.job()?.trashed_on?),
        FieldName::Ended => since(entry.job()?.ended.as_ref()?.on),
        FieldName::Outcome => entry.job()?.ended.as_ref()?.departure.name().into(),
        FieldName::By => remark(entry)?.by.as_str().into(),
        FieldName::Action => remark(entry)?.action.as_deref()?.into(),
        FieldName::Reason => Value::Text(entry.job()?.history.reason()?),
        FieldName::Waited => Value::Span(entry.job()?.waited()?.to_std().ok()?),
        FieldName::Took => Value::Span(entry.job()?.took()?.to_std().ok()?),
        // A command ended by a signal has no exit code.
        FieldName::ExitCode => Value::Number(entry.job()?.last_exit()?.0?.into()),
        // As far as the posting states it.
        FieldName::LoadBalancer => Value::Text(octavia::load_balancer(entry.job()?)?),
        FieldName::Amphora => Value::Text(octavia::amphora(entry.job()?)?),
    })
}

/// Returns the searchable texts.
pub(super) fn searched(entry: &Entry) -> impl Iterator<Item = Cow<'_, str>> {
    let job = entry.job();
    let failure = job.and_then(|job| job.history.failures.last());
    let texts = [
        job.map(|job| job.name.as_str().into()),
        Some(entry.reference()),
        job.and_then(Job::owner).map(|owner| owner.text()),
        job.and_then(|job| job.history.reason()),
        failure.map(|failure| failure.reason.as_str().into()),
        failure.map(|failure| failure.stderr.as_str().into()),
    ];
    texts.into_iter().flatten()
}

/// Only a claim that never expires has no expiry. Without a claim, or if only the end of a session ends it, the field
/// does not apply.
fn expires(entry: &Entry) -> Option<Value<'_>> {
    match claimed(entry).and_then(|job| job.holding.as_ref()) {
        Some(Holding {
            lease: Lease::None, ..
        }) => None,
        Some(Holding {
            expires_in: Some(left),
            ..
        }) => Some(Value::Span(*left)),
        Some(_) | None => Some(Value::Unknown),
    }
}

fn remark(entry: &Entry) -> Option<&Remark> {
    entry.job()?.history.remark.as_ref()
}

/// Only a claimed job is held: in the trash, a claim is history.
fn claimed(entry: &Entry) -> Option<&Job> {
    entry.job().filter(|job| job.state() == State::Claimed)
}
