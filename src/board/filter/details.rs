//! Values inside the details of a job.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    error::Fault,
    number::Number,
    operator::{Comparison, Relation},
    text::Pattern,
};

/// Names and array indexes that lead to a value; an empty path means the details whole.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<String>);

impl Path {
    pub(super) const WHOLE: Self = Self(Vec::new());

    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        let parts: Vec<_> = text.split('.').map(str::to_owned).collect();
        if parts.iter().any(String::is_empty) {
            return Err(Fault::BrokenPath(text.to_owned()));
        }
        Ok(Self(parts))
    }

    /// Returns the path in text form, after the field's name.
    pub(super) fn name(&self, field: &str) -> String {
        let parts = self.0.iter().map(String::as_str);
        [field]
            .into_iter()
            .chain(parts)
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Follows the path; a missing value and `null` are the same.
    pub(super) fn find<'a>(&self, details: &'a Value) -> Option<&'a Value> {
        self.0
            .iter()
            .try_fold(details, |value, part| match value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                value => value.get(part),
            })
            .filter(|value| !value.is_null())
    }
}

/// A condition on a value inside the details.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pattern: Pattern,
    /// Used if the value is a number.
    number: Option<Comparison<Number>>,
}

impl Check {
    /// Reads the value to compare with: a text, and often a number as well.
    pub(super) fn new(relation: Relation, text: &str) -> Result<Self, Fault> {
        let number = match relation {
            Relation::Order(order) => {
                Number::read(text).map(|operand| Comparison::new(order, operand))
            }
            Relation::Is | Relation::Like => None,
        };
        let pattern = Pattern::new(relation, text)?;
        Ok(Self { pattern, number })
    }

    /// Compares numerically if both are numbers, else as text.
    pub(super) fn fits(&self, value: &Value) -> bool {
        match (value, &self.number) {
            (Value::Number(value), Some(number)) => number.fits(&Number::from(value)),
            _ => self.pattern.fits(&text_of(value)),
        }
    }
}

/// Returns a text itself, and anything else as compact JSON.
pub(super) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}
