//! What an entry has of each field.
//!
//! Of a record that cannot be read, only the state and the size are known; it has nothing else.

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::details::Path;
use crate::job::{Entry, Holding, Job, Lease, Priority, Remark, State, octavia};

/// What was found where a value may be.
#[derive(Debug)]
pub(super) enum Found<T> {
    Value(T),
    /// There is none, which is what `none` asks for.
    Nothing,
    /// It cannot be known, or the question makes no sense: neither a value nor the lack of one.
    Unknown,
}

impl<T> Found<T> {
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Returns the value that comparisons are about.
    pub(super) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

impl<T> From<Option<T>> for Found<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Self::Value)
    }
}

/// A record that cannot be read has no name, though people call it by its key.
pub(super) fn name(entry: &Entry) -> Found<Cow<'_, str>> {
    let name = entry.job().map(|job| job.name.as_str());
    name.map(Cow::Borrowed).into()
}

pub(super) fn state(entry: &Entry) -> Found<Cow<'_, str>> {
    Found::Value(Cow::Borrowed(entry.state().name()))
}

/// A claim whose owner cannot be read is somebody's: such a job is not nobody's.
pub(super) fn owner(entry: &Entry) -> Found<Cow<'_, str>> {
    match entry.job().and_then(|job| job.holding.as_ref()) {
        None => Found::Nothing,
        Some(Holding { owner: None, .. }) => Found::Unknown,
        Some(Holding {
            owner: Some(owner), ..
        }) => Found::Value(owner.text()),
    }
}

pub(super) fn priority(entry: &Entry) -> Found<Priority> {
    entry.job().map(|job| job.priority).into()
}

pub(super) fn sequence(entry: &Entry) -> Found<i128> {
    entry
        .job()
        .and_then(|job| job.sequence)
        .map(i128::from)
        .into()
}

pub(super) fn attempts(entry: &Entry) -> Found<i128> {
    let attempts = entry.job().map(|job| job.history.attempts);
    attempts.map(i128::from).into()
}

/// Every record takes some bytes, readable or not.
pub(super) fn size(entry: &Entry) -> Found<i128> {
    Found::Value(i128::from(match entry {
        Entry::Job(job) => job.size,
        Entry::Malformed(record) => record.size,
    }))
}

pub(super) fn age(entry: &Entry, now: DateTime<Utc>) -> Found<Duration> {
    let created_on = entry.job().and_then(|job| job.created_on);
    created_on.map(|time| elapsed(time, now)).into()
}

/// Only a claimed job is held: in the trash, a claim is a thing of the past.
pub(super) fn held(entry: &Entry, now: DateTime<Utc>) -> Found<Duration> {
    let held_since = claimed(entry).and_then(Job::held_since);
    held_since.map(|time| elapsed(time, now)).into()
}

/// Only a claim that never lapses by itself has no expiry; where there is no claim, or only the
/// end of a session ends it, there is nothing to expire.
pub(super) fn expires(entry: &Entry, _now: DateTime<Utc>) -> Found<Duration> {
    match claimed(entry).and_then(|job| job.holding.as_ref()) {
        Some(Holding {
            lease: Lease::None, ..
        }) => Found::Nothing,
        Some(Holding {
            expires_in: Some(left),
            ..
        }) => Found::Value(*left),
        Some(_) | None => Found::Unknown,
    }
}

pub(super) fn trashed(entry: &Entry, now: DateTime<Utc>) -> Found<Duration> {
    let trashed_on = entry.job().and_then(|job| job.trashed_on);
    trashed_on.map(|time| elapsed(time, now)).into()
}

/// Returns how long ago a job left its board.
pub(super) fn ended(entry: &Entry, now: DateTime<Utc>) -> Found<Duration> {
    let ended = entry.job().and_then(|job| job.ended.as_ref());
    ended.map(|ended| elapsed(ended.on, now)).into()
}

pub(super) fn outcome(entry: &Entry) -> Found<Cow<'_, str>> {
    let ended = entry.job().and_then(|job| job.ended.as_ref());
    ended
        .map(|ended| Cow::Borrowed(ended.departure.name()))
        .into()
}

pub(super) fn by(entry: &Entry) -> Found<Cow<'_, str>> {
    let remark = remark(entry);
    remark
        .map(|remark| Cow::Borrowed(remark.by.as_str()))
        .into()
}

pub(super) fn action(entry: &Entry) -> Found<Cow<'_, str>> {
    let action = remark(entry).and_then(|remark| remark.action.as_deref());
    action.map(Cow::Borrowed).into()
}

pub(super) fn reason(entry: &Entry) -> Found<Cow<'_, str>> {
    let reason = remark(entry).and_then(|remark| remark.reason.as_deref());
    reason.map(Cow::Borrowed).into()
}

pub(super) fn waited(entry: &Entry, _now: DateTime<Utc>) -> Found<Duration> {
    let waited = entry.job().and_then(Job::waited);
    waited.and_then(|span| span.to_std().ok()).into()
}

pub(super) fn took(entry: &Entry, _now: DateTime<Utc>) -> Found<Duration> {
    let took = entry.job().and_then(Job::took);
    took.and_then(|span| span.to_std().ok()).into()
}

/// A command that a signal ended has no exit code.
pub(super) fn exit_code(entry: &Entry) -> Found<i128> {
    let last = entry.job().and_then(Job::last_exit);
    last.and_then(|(code, _)| code).map(i128::from).into()
}

/// Of a job of Octavia, as far as its posting says.
pub(super) fn load_balancer(entry: &Entry) -> Found<Cow<'_, str>> {
    let id = entry.job().and_then(octavia::load_balancer);
    id.map(Cow::Borrowed).into()
}

pub(super) fn amphora(entry: &Entry) -> Found<Cow<'_, str>> {
    let id = entry.job().and_then(octavia::amphora);
    id.map(Cow::Borrowed).into()
}

fn remark(entry: &Entry) -> Option<&Remark> {
    entry.job()?.history.remark.as_ref()
}

/// Details that were not fetched are missing like any others.
pub(super) fn details<'a>(entry: &'a Entry, path: &Path) -> Found<&'a Value> {
    let details = entry.job().and_then(|job| job.details.as_ref());
    details.and_then(|details| path.find(details)).into()
}

fn claimed(entry: &Entry) -> Option<&Job> {
    entry.job().filter(|job| job.state() == State::Claimed)
}

/// Clocks may disagree: what seems to lie ahead was just now.
fn elapsed(since: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - since).to_std().unwrap_or_default()
}
