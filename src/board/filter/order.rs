//! Sorting and grouping entries by a field.

use std::{cmp::Ordering, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    field::FieldPath,
    values::{Number, text_of},
};
use crate::{
    duration,
    job::{Entry, FieldKind, FieldValue, MAX_BRIEF, Priority, cut},
};

/// The bounds of the duration groups, in seconds.
const STEPS: [u64; 6] = [0, 60, 10 * 60, 3600, 24 * 3600, 7 * 24 * 3600];

#[derive(Debug, Clone)]
pub(crate) struct FieldOrder {
    field: FieldPath,
    is_descending: bool,
}

impl FieldOrder {
    /// Parses a field name; a leading `-` sorts the greatest value first.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix('-');
        Ok(Self {
            field: FieldPath::read(name.unwrap_or(text))?,
            is_descending: name.is_some(),
        })
    }

    pub(crate) fn needs_details(&self) -> bool {
        self.field.needs_details()
    }

    pub(crate) fn key(&self, entry: &Entry, now: DateTime<Utc>) -> Option<SortKey> {
        self.field.key(entry, now)
    }

    /// Compares two sort keys; a missing one comes last in either direction.
    pub(crate) fn compare(&self, one: &Option<SortKey>, other: &Option<SortKey>) -> Ordering {
        match (one, other) {
            (Some(one), Some(other)) if self.is_descending => other.cmp(one),
            (Some(one), Some(other)) => one.cmp(other),
            (one, other) => one.is_none().cmp(&other.is_none()),
        }
    }
}

/// A sort key. The keys of one field have one type, except in details. Only the beginning of a text counts, so that many
/// keys fit into memory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortKey {
    Span(Duration),
    Since(DateTime<Utc>),
    Priority(Priority),
    Number((i64, i128)),
    Text(String),
}

impl FieldPath {
    fn key(&self, entry: &Entry, now: DateTime<Utc>) -> Option<SortKey> {
        Some(match self.value(entry)? {
            FieldValue::Text(text) => SortKey::Text(cut(&text, MAX_BRIEF)),
            FieldValue::Priority(priority) => SortKey::Priority(priority),
            FieldValue::Number(number) => SortKey::Number(Number::Whole(number).place()),
            FieldValue::Span(span) => SortKey::Span(span),
            FieldValue::Since(time) => SortKey::Since(time.min(now)),
            FieldValue::Json(value) => key_of(&value),
            FieldValue::Unknown => return None,
        })
    }

    /// Returns the value for grouping; `null` if missing.
    ///
    /// A duration becomes the seconds of the longest step that it reaches, since exact durations hardly ever repeat.
    pub(crate) fn group(&self, entry: &Entry, now: DateTime<Utc>) -> Value {
        let Some(value) = self.value(entry) else {
            return Value::Null;
        };
        if let Some(span) = value.span(now) {
            let mut steps = STEPS.into_iter().rev();
            let step = steps.find(|step| *step <= span.as_secs());
            return step.unwrap_or_default().into();
        }
        match value {
            FieldValue::Text(text) => text.into(),
            FieldValue::Priority(priority) => priority.name().into(),
            FieldValue::Number(number) => i64::try_from(number).map_or(Value::Null, Value::from),
            FieldValue::Json(value) => value.into_owned(),
            FieldValue::Span(_) | FieldValue::Since(_) | FieldValue::Unknown => Value::Null,
        }
    }

    pub(crate) fn in_words(&self, value: &Value) -> Option<String> {
        let brief = |seconds| duration::brief(Duration::from_secs(seconds));
        match (self.kind(), value) {
            (_, Value::Null) => None,
            (FieldKind::Span | FieldKind::Since, value) => {
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
pub(crate) fn compare_values(one: &Value, other: &Value) -> Ordering {
    (one.is_null(), key_of(one)).cmp(&(other.is_null(), key_of(other)))
}

fn key_of(value: &Value) -> SortKey {
    match value {
        Value::Number(number) => SortKey::Number(Number::from(number).place()),
        value => SortKey::Text(cut(&text_of(value), MAX_BRIEF)),
    }
}
