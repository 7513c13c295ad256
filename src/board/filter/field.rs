//! The fields of a filter, and the operators of each.

use std::{fmt::Display, str::FromStr};

use chrono::{DateTime, Utc};
use serde::Serialize;
use strsim::levenshtein;

use super::{
    details::{self, Path},
    error::Fault,
    number,
    operator::{self, Comparison, Operator, Relation},
    reading::{Value, read, searched},
    text::Pattern,
};
use crate::{
    duration,
    job::{Departure, Entry, Priority, State},
    names::named,
};

named! {
    /// All fields but the details.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum FieldName ("field", str::eq) {
        Name => "name",
        State => "state",
        Owner => "owner",
        Priority => "priority",
        Sequence => "sequence",
        Age => "age",
        Held => "held",
        Expires => "expires",
        Attempts => "attempts",
        Size => "size",
        Trashed => "trashed",
        Ended => "ended",
        Outcome => "outcome",
        By => "by",
        Action => "action",
        Reason => "reason",
        Waited => "waited",
        Took => "took",
        ExitCode => "exit_code",
        LoadBalancer => "lb",
        Amphora => "amphora",
    }
}

/// The field that has subfields.
pub(super) const DETAILS: &str = "details";

/// The value of a missing field; the glob `[n]one` matches that text.
const NONE: &str = "none";

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FieldName::ALL.iter().map(|it| it.name()).chain([DETAILS])
}

/// The type of a field, which determines its operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    State,
    Departure,
    /// Greater is more urgent.
    Priority,
    Number,
    Size,
    /// A growing duration, so equality would never match.
    Span,
    /// The duration since an event.
    Since,
    /// Any JSON value.
    Details,
}

impl Kind {
    /// Lists the operators of the type.
    fn operators(self) -> &'static str {
        match self {
            Self::Text | Self::Details => "= != ~ !~ < <= > >=",
            Self::State | Self::Departure => "= != ~ !~",
            Self::Priority | Self::Number | Self::Size => "= != < <= > >=",
            Self::Span | Self::Since => "< <= > >=, or = and != with `none`",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Field {
    Named(FieldName),
    Details(Path),
}

impl Field {
    /// Finds a field by its name, such as `owner` or `details.a.0.b`.
    pub(super) fn named(text: &str) -> Result<Self, Fault> {
        match text.split_once('.') {
            Some((DETAILS, path)) => Ok(Self::Details(Path::read(path)?)),
            None if text == DETAILS => Ok(Self::Details(Path::WHOLE)),
            _ => match text.parse() {
                Ok(name) => Ok(Self::Named(name)),
                Err(_) => Err(Fault::UnknownField {
                    name: text.to_owned(),
                    perhaps: perhaps(text),
                    fields: fields(),
                }),
            },
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Details(_) => Kind::Details,
            Self::Named(name) => match name {
                FieldName::Name
                | FieldName::Owner
                | FieldName::LoadBalancer
                | FieldName::Amphora => Kind::Text,
                FieldName::By | FieldName::Action | FieldName::Reason => Kind::Text,
                FieldName::State => Kind::State,
                FieldName::Outcome => Kind::Departure,
                FieldName::Priority => Kind::Priority,
                FieldName::Sequence | FieldName::Attempts | FieldName::ExitCode => Kind::Number,
                FieldName::Size => Kind::Size,
                FieldName::Expires | FieldName::Waited | FieldName::Took => Kind::Span,
                FieldName::Age | FieldName::Held | FieldName::Trashed | FieldName::Ended => {
                    Kind::Since
                }
            },
        }
    }

    /// Returns its operators, the most common first.
    pub(crate) fn operators(&self) -> Vec<&'static str> {
        let words = self.kind().operators().split([' ', ',']);
        let mut operators: Vec<_> = words.filter(|it| it.starts_with(operator::CHARS)).collect();
        // Users usually look for long durations.
        let usual = operators.iter().position(|it| *it == ">=");
        if let (Kind::Span | Kind::Since, Some(usual)) = (self.kind(), usual) {
            operators.rotate_left(usual);
        }
        operators
    }

    /// Whether it has subfields, which follow a dot.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self, Self::Details(_))
    }

    pub(crate) fn needs_details(&self) -> bool {
        let is_inside = matches!(
            self,
            Self::Named(FieldName::LoadBalancer | FieldName::Amphora)
        );
        is_inside || self.has_fields()
    }

    /// Whether events carry the value, so that the job need not be read.
    pub(super) fn is_told_by_events(&self) -> bool {
        use FieldName::{Owner, Priority, Sequence, State};
        matches!(
            self,
            Self::Named(FieldName::Name | State | Owner | Priority | Sequence)
        )
    }

    /// Fails if the type of the field does not allow the operator or the value.
    pub(super) fn test(self, operator: Operator, value: &str) -> Result<Test, Fault> {
        let Operator { relation, name, .. } = operator;
        let is_same = matches!(relation, Relation::Is);
        let kind = self.kind();
        // For other fields an empty value is a mistake.
        let knows_empty = matches!(kind, Kind::Text | Kind::Details);
        if value.is_empty() && !(is_same && knows_empty) {
            return Err(Fault::NoValue(name));
        }
        if value == NONE && is_same && kind != Kind::State {
            return Ok(Test::new(self, Check::Nothing));
        }
        let unfit = Fault::Unfit {
            operator: name,
            field: match &self {
                Self::Named(name) => name.name(),
                Self::Details(_) => DETAILS,
            },
            fitting: kind.operators(),
        };
        let check = match (kind, relation) {
            (Kind::Text, relation) => Check::Text(Pattern::new(relation, value)?),
            (Kind::State, Relation::Is) => Check::Text(known::<State>(value)?),
            (Kind::Departure, Relation::Is) => Check::Text(known::<Departure>(value)?),
            (Kind::State | Kind::Departure, Relation::Like) => {
                Check::Text(Pattern::caseless(value)?)
            }
            (Kind::State | Kind::Departure, Relation::Order(_)) => return Err(unfit),
            (Kind::Priority, relation) => {
                let order = relation.order().ok_or(unfit)?;
                Check::Priority(Comparison::new(order, value.parse()?))
            }
            (Kind::Number | Kind::Size, relation) => {
                let order = relation.order().ok_or(unfit)?;
                let number = match kind {
                    Kind::Size => number::size(value)?,
                    _ => number::whole(value)?,
                };
                Check::Number(Comparison::new(order, number))
            }
            (Kind::Span | Kind::Since, relation) => {
                let order = relation.strict_order().ok_or(unfit)?;
                Check::Span(Comparison::new(order, duration::parse(value)?))
            }
            (Kind::Details, relation) => Check::Json(details::Check::new(relation, value)?),
        };
        Ok(Test::new(self, check))
    }
}

/// A condition on an entry.
#[derive(Debug, Clone)]
pub(super) struct Test {
    field: Field,
    check: Check,
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    /// The field is missing.
    Nothing,
    Text(Pattern),
    Priority(Comparison<Priority>),
    Number(Comparison<i128>),
    Span(Comparison<std::time::Duration>),
    Json(details::Check),
    /// The text occurs in a searchable field.
    Search(Pattern),
}

impl Test {
    pub(super) fn new(field: Field, check: Check) -> Self {
        Self { field, check }
    }

    /// Whether the condition holds; false if the value is missing.
    pub(super) fn holds(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        if let Check::Search(pattern) = &self.check {
            return searched(entry).any(|text| pattern.fits(&text));
        }
        match (&self.check, read(&self.field, entry, now)) {
            (Check::Nothing, value) => value.is_none(),
            (Check::Text(pattern), Some(Value::Text(text))) => pattern.fits(&text),
            (Check::Priority(comparison), Some(Value::Priority(it))) => comparison.fits(&it),
            (Check::Number(comparison), Some(Value::Number(it))) => comparison.fits(&it),
            (Check::Span(comparison), Some(Value::Span(it))) => comparison.fits(&it),
            (Check::Json(check), Some(Value::Json(value))) => check.fits(&value),
            _ => false,
        }
    }

    pub(super) fn changes_with_time(&self) -> bool {
        matches!(self.check, Check::Span(_))
    }
}

/// Matches a known name literally.
fn known<T>(name: &str) -> Result<Pattern, Fault>
where
    T: FromStr + Display,
    Fault: From<T::Err>,
{
    Ok(Pattern::Exact(name.parse::<T>()?.to_string()))
}

pub(super) fn fields() -> String {
    let names: Vec<_> = names().collect();
    format!("{}.PATH", names.join(" "))
}

/// Suggests the field that was probably meant; empty if none is close.
fn perhaps(wrong: &str) -> String {
    /// Maximum number of wrong, missing or extra letters.
    const SLIPS: usize = 2;

    let wrong = wrong.to_ascii_lowercase();
    names()
        .map(|name| (levenshtein(&wrong, name), name))
        .min()
        .filter(|(distance, _)| *distance <= SLIPS && 2 * distance <= wrong.len())
        .map_or_else(String::new, |(_, name)| format!(" (perhaps `{name}`)"))
}
