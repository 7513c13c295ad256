//! What an entry has of each field.
//!
//! Of a record that cannot be read, only the state and the size are known; it has nothing else.

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
    /// It cannot be known, or the question makes no sense: neither a value nor the lack of one.
    Unknown,
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// Returns what an entry has of a field; `None` is what `none` asks for.
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
    // Clocks may disagree: what seems to lie ahead was just now.
    let since = |time: DateTime<Utc>| Value::Span((now - time).to_std().unwrap_or_default());
    Some(match name {
        // A record that cannot be read has no name, though people call it by its key.
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
        // Every record takes some bytes, readable or not.
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
        // A command that a signal ended has none.
        FieldName::ExitCode => Value::Number(entry.job()?.last_exit()?.0?.into()),
        // As far as the posting says.
        FieldName::LoadBalancer => Value::Text(octavia::load_balancer(entry.job()?)?),
        FieldName::Amphora => Value::Text(octavia::amphora(entry.job()?)?),
    })
}

/// Returns the texts by which people remember a job.
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

/// Only a claim that never lapses by itself has no expiry; where there is no claim, or only the
/// end of a session ends it, there is nothing to expire.
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

/// Only a claimed job is held: in the trash, a claim is a thing of the past.
fn claimed(entry: &Entry) -> Option<&Job> {
    entry.job().filter(|job| job.state() == State::Claimed)
}
