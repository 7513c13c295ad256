//! Sorting and grouping entries by a field.

use std::{
    cmp::{Ordering, Reverse},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::Value as Json;

use super::{
    details::text_of,
    field::{self, DETAILS, Field, Kind},
    number::Number,
    reading::{Value, read},
};
use crate::{
    duration,
    job::{Entry, Priority},
};

/// The bounds of the duration groups, in seconds.
const STEPS: [u64; 6] = [0, 60, 10 * 60, 3600, 24 * 3600, 7 * 24 * 3600];

/// A sort order: a field, ascending or descending.
#[derive(Debug, Clone)]
pub(crate) struct FieldOrder {
    field: Field,
    is_descending: bool,
}

impl FieldOrder {
    /// Parses a field name; a leading `-` sorts the greatest value first.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('-');
        Ok(Self {
            field: Field::read(name.unwrap_or(text))?,
            is_descending: name.is_some(),
        })
    }

    pub(crate) fn needs_details(&self) -> bool {
        self.field.needs_details()
    }

    /// Returns an entry's sort key; `None` without a value.
    pub(crate) fn key(&self, entry: &Entry, now: DateTime<Utc>) -> Option<Key> {
        self.field.key(entry, now)
    }

    /// Compares two sort keys; a missing one comes last in either direction.
    pub(crate) fn compare(&self, one: &Option<Key>, other: &Option<Key>) -> Ordering {
        match (one, other) {
            (Some(one), Some(other)) if self.is_descending => other.cmp(one),
            (Some(one), Some(other)) => one.cmp(other),
            (one, other) => one.is_none().cmp(&other.is_none()),
        }
    }
}

/// A sort key. The keys of one field have one type, except in details.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Span(Duration),
    /// The earliest start has the longest duration.
    Since(Reverse<Duration>),
    Priority(Priority),
    Number((i64, i128)),
    Text(String),
}

impl Field {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        Self::named(text).map_err(|fault| fault.to_string())
    }

    pub(crate) fn names() -> Vec<&'static str> {
        field::names().collect()
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Details(path) => path.name(DETAILS),
            Self::Named(name) => name.to_string(),
        }
    }

    fn key(&self, entry: &Entry, now: DateTime<Utc>) -> Option<Key> {
        Some(match read(self, entry, now)? {
            Value::Text(text) => Key::Text(text.into_owned()),
            Value::Priority(priority) => Key::Priority(priority),
            Value::Number(number) => Key::Number(Number::Whole(number).place()),
            Value::Span(span) if self.kind() == Kind::Since => Key::Since(Reverse(span)),
            Value::Span(span) => Key::Span(span),
            Value::Json(value) => key_of(&value),
            Value::Unknown => return None,
        })
    }

    /// Returns the value for grouping; `null` if missing.
    ///
    /// A duration becomes the seconds of the longest step that it reaches, since exact durations hardly ever repeat.
    pub(crate) fn value(&self, entry: &Entry, now: DateTime<Utc>) -> Json {
        match read(self, entry, now) {
            None | Some(Value::Unknown) => Json::Null,
            Some(Value::Text(text)) => text.into(),
            Some(Value::Priority(priority)) => priority.name().into(),
            Some(Value::Number(number)) => i64::try_from(number).map_or(Json::Null, Json::from),
            Some(Value::Span(span)) => {
                let mut steps = STEPS.into_iter().rev();
                let step = steps.find(|step| *step <= span.as_secs());
                step.unwrap_or_default().into()
            }
            Some(Value::Json(value)) => value.into_owned(),
        }
    }

    /// Formats a value for people; `None` if missing.
    pub(crate) fn in_words(&self, value: &Json) -> Option<String> {
        let brief = |seconds| duration::brief(Duration::from_secs(seconds));
        match (self.kind(), value) {
            (_, Json::Null) => None,
            (Kind::Span | Kind::Since, value) => {
                let step = value.as_u64().unwrap_or_default();
                Some(match STEPS.into_iter().find(|next| *next > step) {
                    Some(next) if step == 0 => format!("under {}", brief(next)),
                    Some(next) => format!("{} to {}", brief(step), brief(next)),
                    None => format!("{} or more", brief(step)),
                })
            }
            (_, value) => Some(text_of(value).into_owned()),
        }
    }
}

/// Compares values as [`FieldOrder`] does those of details.
pub(crate) fn compare_values(one: &Json, other: &Json) -> Ordering {
    (one.is_null(), key_of(one)).cmp(&(other.is_null(), key_of(other)))
}

fn key_of(value: &Json) -> Key {
    match value {
        Json::Number(number) => Key::Number(Number::from(number).place()),
        value => Key::Text(text_of(value).into_owned()),
    }
}
