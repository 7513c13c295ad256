//! The fields of a filter, and what can be asked of each.

use std::{borrow::Cow, fmt::Display, str::FromStr, time::Duration};

use chrono::{DateTime, Utc};
use strsim::levenshtein;

use super::{
    details::{Check, Path},
    error::Fault,
    number,
    operator::{self, Comparison, Operator, Relation},
    reading::{self, Found},
    text::Pattern,
};
use crate::{
    duration,
    job::{Departure, Entry, Priority, State},
};

/// All fields but the details, and where their values come from.
const FIELDS: [(&str, Kind); 21] = [
    ("name", Kind::Text(reading::name)),
    ("state", Kind::Name(reading::state, known::<State>)),
    ("owner", Kind::Text(reading::owner)),
    ("priority", Kind::Priority),
    ("sequence", Kind::Number(reading::sequence, number::whole)),
    ("age", Kind::Since(reading::age)),
    ("held", Kind::Since(reading::held)),
    ("expires", Kind::Span(reading::expires)),
    ("attempts", Kind::Number(reading::attempts, number::whole)),
    ("size", Kind::Number(reading::size, number::size)),
    ("trashed", Kind::Since(reading::trashed)),
    ("ended", Kind::Since(reading::ended)),
    ("outcome", Kind::Name(reading::outcome, known::<Departure>)),
    ("by", Kind::Text(reading::by)),
    ("action", Kind::Text(reading::action)),
    ("reason", Kind::Text(reading::reason)),
    ("waited", Kind::Span(reading::waited)),
    ("took", Kind::Span(reading::took)),
    ("exit_code", Kind::Number(reading::exit_code, number::whole)),
    (BALANCER, Kind::Text(reading::load_balancer)),
    (AMPHORA, Kind::Text(reading::amphora)),
];

/// What a job of Octavia is about, which its details say.
pub(super) const BALANCER: &str = "lb";
pub(super) const AMPHORA: &str = "amphora";

/// The field that has fields of its own.
const DETAILS: &str = "details";

/// The value that means that there is none; a text of that name is reached by a glob, `[n]one`.
const NONE: &str = "none";

/// Returns the names of all fields, without what is inside the details.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FIELDS.into_iter().map(|(name, _)| name).chain([DETAILS])
}

type ReadText = fn(&Entry) -> Found<Cow<'_, str>>;
type ReadNumber = fn(&Entry) -> Found<i128>;
type ReadSpan = fn(&Entry, DateTime<Utc>) -> Found<Duration>;

/// The type of a field, which decides what can be asked of it.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Text(ReadText),
    /// One of a few names, and what finds the one that is meant.
    Name(ReadText, fn(&str) -> Result<String, Fault>),
    /// One of a few names, the more urgent the greater.
    Priority,
    /// A number, and how an expression writes it.
    Number(ReadNumber, fn(&str) -> Result<i128, Fault>),
    /// A time that passes, so that asking for exactly one would find nothing.
    Span(ReadSpan),
    /// Such a time since something was.
    Since(ReadSpan),
    /// Whatever JSON can be.
    Details(Path),
}

impl Kind {
    /// Says which operators go with the type.
    fn operators(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Details(_) => "= != ~ !~ < <= > >=",
            Self::Name(..) => "= != ~ !~",
            Self::Priority | Self::Number(..) => "= != < <= > >=",
            Self::Span(_) | Self::Since(_) => "< <= > >=, or = and != with `none`",
        }
    }

    /// Whether an empty value means the empty text, rather than that somebody forgot it.
    fn knows_empty(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Details(_))
    }

    /// Whether an entry is sure to have no such value.
    fn is_absent(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        match self {
            Self::Text(read) | Self::Name(read, _) => read(entry).is_nothing(),
            Self::Priority => reading::priority(entry).is_nothing(),
            Self::Number(read, _) => read(entry).is_nothing(),
            Self::Span(read) | Self::Since(read) => read(entry, now).is_nothing(),
            Self::Details(path) => reading::details(entry, path).is_nothing(),
        }
    }
}

/// A field as an expression names it.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

impl Field {
    /// Finds a field by its name, such as `owner` or `details.a.0.b`.
    pub(super) fn named(text: &str) -> Result<Self, Fault> {
        let (name, kind) = match text.split_once('.') {
            Some((DETAILS, path)) => (DETAILS, Kind::Details(Path::read(path)?)),
            None if text == DETAILS => (DETAILS, Kind::Details(Path::WHOLE)),
            _ => FIELDS
                .into_iter()
                .find(|(name, _)| *name == text)
                .ok_or_else(|| Fault::UnknownField {
                    name: text.to_owned(),
                    perhaps: perhaps(text),
                    fields: fields(),
                })?,
        };
        Ok(Self { name, kind })
    }

    /// Returns the operators that go with it, the usual one first.
    pub(crate) fn operators(&self) -> Vec<&'static str> {
        let words = self.kind.operators().split([' ', ',']);
        let mut operators: Vec<_> = words.filter(|it| it.starts_with(operator::CHARS)).collect();
        // What has lasted long is what is looked for.
        let usual = operators.iter().position(|it| *it == ">=");
        if let (Kind::Span(_) | Kind::Since(_), Some(usual)) = (&self.kind, usual) {
            operators.rotate_left(usual);
        }
        operators
    }

    /// Whether it has fields of its own, which have to be named behind a dot.
    pub(crate) fn has_fields(&self) -> bool {
        self.name == DETAILS
    }

    /// Whether the value is inside the details, so that they have to be fetched.
    pub(crate) fn needs_details(&self) -> bool {
        matches!(self.name, DETAILS | BALANCER | AMPHORA)
    }

    /// Whether an event has the value, so that the job need not be looked up.
    pub(super) fn is_told_by_events(&self) -> bool {
        matches!(
            self.name,
            "name" | "state" | "owner" | "priority" | "sequence"
        )
    }

    /// Makes a test of the operator and the value, as far as the type of the field allows.
    pub(super) fn test(self, operator: Operator, value: &str) -> Result<Test, Fault> {
        let Operator { relation, name, .. } = operator;
        let is_same = matches!(relation, Relation::Is);
        if value.is_empty() && !(is_same && self.kind.knows_empty()) {
            return Err(Fault::NoValue(name));
        }
        if value == NONE && is_same && self.name != "state" {
            return Ok(Test::Nothing(self.kind));
        }
        let unfit = Fault::Unfit {
            operator: name,
            field: self.name,
            fitting: self.kind.operators(),
        };
        Ok(match self.kind {
            Kind::Text(read) => Test::Text(read, Pattern::new(relation, value)?),
            Kind::Name(read, known) => Test::Text(
                read,
                match relation {
                    Relation::Is => Pattern::Exact(known(value)?),
                    Relation::Like => Pattern::caseless(value)?,
                    Relation::Order(_) => return Err(unfit),
                },
            ),
            Kind::Priority => {
                let order = relation.order().ok_or(unfit)?;
                Test::Priority(Comparison::new(order, value.parse()?))
            }
            Kind::Number(read, parse) => {
                let order = relation.order().ok_or(unfit)?;
                Test::Number(read, Comparison::new(order, parse(value)?))
            }
            Kind::Span(read) | Kind::Since(read) => {
                let order = relation.strict_order().ok_or(unfit)?;
                Test::Span(read, Comparison::new(order, duration::parse(value)?))
            }
            Kind::Details(path) => Test::Details(path, Check::new(relation, value)?),
        })
    }
}

/// What is asked of an entry.
#[derive(Debug, Clone)]
pub(super) enum Test {
    /// Not to have the field.
    Nothing(Kind),
    Text(ReadText, Pattern),
    Priority(Comparison<Priority>),
    Number(ReadNumber, Comparison<i128>),
    Span(ReadSpan, Comparison<Duration>),
    Details(Path, Check),
}

impl Test {
    /// Whether an entry has what is asked; without the value, it has not.
    pub(super) fn holds(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        match self {
            Self::Nothing(kind) => kind.is_absent(entry, now),
            Self::Text(read, pattern) => {
                let text = read(entry).value();
                text.is_some_and(|text| pattern.fits(&text))
            }
            Self::Priority(comparison) => {
                let priority = reading::priority(entry).value();
                priority.is_some_and(|priority| comparison.fits(&priority))
            }
            Self::Number(read, comparison) => {
                let number = read(entry).value();
                number.is_some_and(|number| comparison.fits(&number))
            }
            Self::Span(read, comparison) => {
                let span = read(entry, now).value();
                span.is_some_and(|span| comparison.fits(&span))
            }
            Self::Details(path, check) => {
                let value = reading::details(entry, path).value();
                value.is_some_and(|value| check.fits(value))
            }
        }
    }

    /// Whether the answer changes by itself as time goes by.
    pub(super) fn changes_with_time(&self) -> bool {
        matches!(self, Self::Span(..))
    }
}

/// Returns the name that is meant, as it is written.
fn known<T>(name: &str) -> Result<String, Fault>
where
    T: FromStr + Display,
    Fault: From<T::Err>,
{
    Ok(name.parse::<T>()?.to_string())
}

/// Lists the fields.
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
