//! Values to compare with: texts, numbers, and values inside the details of a job.

use std::{borrow::Cow, cmp::Ordering};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::{
    error::Fault,
    operator::{Comparison, Relation},
};
use crate::glob::translate;

#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Exact(String),
    /// A text also matches an equal glob, so that JSON needs no escapes: `[1,2]`.
    Glob {
        text: String,
        regex: Regex,
    },
    Regex(Regex),
    Ordered(Comparison<String>),
}

impl Pattern {
    pub(super) fn new(relation: Relation, text: &str) -> Result<Self, Fault> {
        Ok(match relation {
            Relation::Is if !text.contains(['*', '?', '[']) => Self::Exact(text.to_owned()),
            Relation::Is => Self::Glob {
                text: text.to_owned(),
                regex: compile(RegexBuilder::new(&translate(text)?))?,
            },
            Relation::Like => Self::Regex(compile(RegexBuilder::new(text))?),
            Relation::Order(order) => Self::Ordered(Comparison::new(order, text.to_owned())),
        })
    }

    pub(super) fn caseless(text: &str) -> Result<Self, Fault> {
        let mut builder = RegexBuilder::new(text);
        builder.case_insensitive(true);
        Ok(Self::Regex(compile(builder)?))
    }

    /// Whether a text matches; allocates nothing.
    pub(super) fn fits(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Glob { text, regex } => text == value || regex.is_match(value),
            Self::Regex(regex) => regex.is_match(value),
            Self::Ordered(comparison) => comparison.fits(value),
        }
    }
}

fn compile(builder: RegexBuilder) -> Result<Regex, Fault> {
    builder.build().map_err(|error| {
        // The error spans several lines; the last one states the problem.
        let picture = error.to_string();
        let reason = picture.lines().last().unwrap_or_default();
        let reason = reason.trim_start_matches("error: ").trim_end_matches('.');
        Fault::Regex(reason.to_owned())
    })
}

pub(super) fn whole(text: &str) -> Result<i128, Fault> {
    text.parse().map_err(|_| Fault::Number(text.to_owned()))
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    pub(super) fn read(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return Some(Self::Whole(number));
        }
        let number: f64 = text.parse().ok()?;
        number.is_finite().then_some(Self::Float(number))
    }

    pub(super) fn place(self) -> (i64, i128) {
        let bits = self.as_f64().to_bits().cast_signed();
        // Negative ones grow the other way, see `f64::total_cmp`.
        let place = bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed();
        match self {
            Self::Whole(number) => (place, number),
            Self::Float(_) => (place, i128::MAX),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        match number.as_i128() {
            Some(number) => Self::Whole(number),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            // As floats, neighbouring large numbers would be equal.
            (Self::Whole(number), Self::Whole(other)) => Some(number.cmp(other)),
            _ => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

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

    pub(super) fn name(&self, field: &str) -> String {
        let mut name = field.to_owned();
        for part in &self.0 {
            name.push('.');
            name.push_str(part);
        }
        name
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

#[derive(Debug, Clone)]
pub(super) struct DetailsCheck {
    pattern: Pattern,
    number: Option<Comparison<Number>>,
}

impl DetailsCheck {
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
