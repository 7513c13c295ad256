//! The fields of a filter, and what can be asked of each.

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

/// The field that has fields of its own.
pub(super) const DETAILS: &str = "details";

/// The value that means that there is none; a text of that name is reached by a glob, `[n]one`.
const NONE: &str = "none";

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FieldName::ALL.iter().map(|it| it.name()).chain([DETAILS])
}

/// The type of a field, which decides what can be asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    State,
    Departure,
    /// The more urgent the greater.
    Priority,
    Number,
    Size,
    /// A time that passes, so that asking for exactly one would find nothing.
    Span,
    /// Such a time since something was.
    Since,
    /// Whatever JSON can be.
    Details,
}

impl Kind {
    /// Says which operators go with the type.
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

    /// Returns the operators that go with it, the usual one first.
    pub(crate) fn operators(&self) -> Vec<&'static str> {
        let words = self.kind().operators().split([' ', ',']);
        let mut operators: Vec<_> = words.filter(|it| it.starts_with(operator::CHARS)).collect();
        // What has lasted long is what is looked for.
        let usual = operators.iter().position(|it| *it == ">=");
        if let (Kind::Span | Kind::Since, Some(usual)) = (self.kind(), usual) {
            operators.rotate_left(usual);
        }
        operators
    }

    /// Whether it has fields of its own, which have to be named behind a dot.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self, Self::Details(_))
    }

    /// Whether the value is inside the details, so that they have to be fetched.
    pub(crate) fn needs_details(&self) -> bool {
        let is_inside = matches!(
            self,
            Self::Named(FieldName::LoadBalancer | FieldName::Amphora)
        );
        is_inside || self.has_fields()
    }

    /// Whether an event has the value, so that the job need not be looked up.
    pub(super) fn is_told_by_events(&self) -> bool {
        use FieldName::{Owner, Priority, Sequence, State};
        matches!(
            self,
            Self::Named(FieldName::Name | State | Owner | Priority | Sequence)
        )
    }

    /// Makes a test of the operator and the value, as far as the type of the field allows.
    pub(super) fn test(self, operator: Operator, value: &str) -> Result<Test, Fault> {
        let Operator { relation, name, .. } = operator;
        let is_same = matches!(relation, Relation::Is);
        let kind = self.kind();
        // For other fields somebody forgot the value.
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

/// What is asked of an entry.
#[derive(Debug, Clone)]
pub(super) struct Test {
    field: Field,
    check: Check,
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    /// Not to have the field.
    Nothing,
    Text(Pattern),
    Priority(Comparison<Priority>),
    Number(Comparison<i128>),
    Span(Comparison<std::time::Duration>),
    Json(details::Check),
    /// To have it in one of the fields by which people remember a job.
    Search(Pattern),
}

impl Test {
    pub(super) fn new(field: Field, check: Check) -> Self {
        Self { field, check }
    }

    /// Whether an entry has what is asked; without the value, it has not.
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

    /// Whether the answer changes by itself as time goes by.
    pub(super) fn changes_with_time(&self) -> bool {
        matches!(self.check, Check::Span(_))
    }
}

/// Asks for the name that is meant, as it is written.
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

/// Returns the field that was probably meant, as an aside, or nothing if that is a mere guess.
fn perhaps(wrong: &str) -> String {
    /// How many letters may be wrong, missing or too many.
    const SLIPS: usize = 2;

    let wrong = wrong.to_ascii_lowercase();
    names()
        .map(|name| (levenshtein(&wrong, name), name))
        .min()
        .filter(|(distance, _)| *distance <= SLIPS && 2 * distance <= wrong.len())
        .map_or_else(String::new, |(_, name)| format!(" (perhaps `{name}`)"))
}
