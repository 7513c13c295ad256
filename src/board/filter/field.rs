//! The fields of a filter, and the operators of each.

use std::{borrow::Cow, fmt::Display, str::FromStr, time::Duration};

use chrono::{DateTime, Utc};
use strsim::levenshtein;

use super::{
    error::Fault,
    operator::{self, Comparison, Operator, Relation},
    values::{DetailsCheck, Path, Pattern, whole},
};
use crate::{
    duration,
    job::{Entry, FieldKind, FieldSource, FieldValue, Job, JobField, Outcome, Priority, State},
    size,
};

const DETAILS: &str = "details";

/// The value of a missing field; the glob `[n]one` matches that text.
const NONE: &str = "none";

impl FieldKind {
    fn operators(self) -> &'static str {
        match self {
            Self::Text | Self::Details => "= != ~ !~ < <= > >=",
            Self::State | Self::Outcome => "= != ~ !~",
            Self::Priority | Self::Number | Self::Size => "= != < <= > >=",
            Self::Span | Self::Since => "< <= > >=, or = and != with `none`",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum FieldPath {
    Named(JobField),
    Details(Path),
}

impl FieldPath {
    /// Finds a field by its name, such as `owner` or `details.a.0.b`.
    pub(super) fn named(text: &str) -> Result<Self, Fault> {
        match text.split_once('.') {
            Some((DETAILS, path)) => Ok(Self::Details(Path::read(path)?)),
            None if text == DETAILS => Ok(Self::Details(Path::WHOLE)),
            _ => match JobField::ALL.iter().find(|it| it.name() == text) {
                Some(field) => Ok(Self::Named(*field)),
                None => Err(Fault::UnknownField {
                    name: text.to_owned(),
                    did_you_mean: did_you_mean(text),
                    fields: fields(),
                }),
            },
        }
    }

    pub(crate) fn read(text: &str) -> Result<Self, String> {
        Self::named(text).map_err(|fault| fault.to_string())
    }

    pub(crate) fn names() -> Vec<&'static str> {
        let fields = JobField::ALL.iter().map(|it| it.name());
        fields.chain([DETAILS]).collect()
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Details(path) => path.name(DETAILS),
            Self::Named(field) => field.name().to_owned(),
        }
    }

    pub(super) fn kind(&self) -> FieldKind {
        match self {
            Self::Details(_) => FieldKind::Details,
            Self::Named(field) => field.kind(),
        }
    }

    /// Returns the value in a record; `None` matches `none`.
    pub(super) fn value<'a>(&self, entry: &'a Entry) -> Option<FieldValue<'a>> {
        let path = match self {
            Self::Named(field) => return field.read(entry),
            Self::Details(path) => path,
        };
        // Details that were not fetched are missing like any others.
        let value = match entry.job()?.details()? {
            Cow::Borrowed(details) => path.find(details).map(Cow::Borrowed),
            Cow::Owned(details) => path.find(&details).cloned().map(Cow::Owned),
        };
        value.map(FieldValue::Json)
    }

    pub(crate) fn operators(&self) -> Vec<&'static str> {
        let words = self.kind().operators().split([' ', ',']);
        let mut operators: Vec<_> = words.filter(|it| it.starts_with(operator::CHARS)).collect();
        // Users usually look for long durations.
        let usual = operators.iter().position(|it| *it == ">=");
        if let (FieldKind::Span | FieldKind::Since, Some(usual)) = (self.kind(), usual) {
            operators.rotate_left(usual);
        }
        operators
    }

    pub(crate) fn needs_details(&self) -> bool {
        self.source() == FieldSource::Details
    }

    fn source(&self) -> FieldSource {
        match self {
            Self::Details(_) => FieldSource::Details,
            Self::Named(field) => field.source(),
        }
    }

    pub(super) fn test(self, operator: Operator, value: &str) -> Result<Test, Fault> {
        let Operator { relation, name, .. } = operator;
        let is_same = matches!(relation, Relation::Is);
        let kind = self.kind();
        // For other fields an empty value is a mistake.
        let allows_empty = matches!(kind, FieldKind::Text | FieldKind::Details);
        if value.is_empty() && !(is_same && allows_empty) {
            return Err(Fault::NoValue(name));
        }
        if value == NONE && is_same && kind != FieldKind::State {
            return Ok(Test::new(self, Predicate::Missing));
        }
        let unfit = Fault::WrongOperator {
            operator: name,
            field: match &self {
                Self::Named(field) => field.name(),
                Self::Details(_) => DETAILS,
            },
            fitting: kind.operators(),
        };
        let predicate = match (kind, relation) {
            (FieldKind::Text, relation) => Predicate::Text(Pattern::new(relation, value)?),
            (FieldKind::State, Relation::Is) => Predicate::Text(literal::<State>(value)?),
            (FieldKind::Outcome, Relation::Is) => Predicate::Text(literal::<Outcome>(value)?),
            (FieldKind::State | FieldKind::Outcome, Relation::Like) => {
                Predicate::Text(Pattern::caseless(value)?)
            }
            (FieldKind::Priority, relation) => {
                let order = relation.order().ok_or(unfit)?;
                Predicate::Priority(Comparison::new(order, value.parse()?))
            }
            (FieldKind::Number | FieldKind::Size, relation) => {
                let order = relation.order().ok_or(unfit)?;
                let number = match kind {
                    FieldKind::Size => {
                        let size = size::parse(value);
                        size.ok_or_else(|| Fault::Size(value.to_owned()))?.into()
                    }
                    _ => whole(value)?,
                };
                Predicate::Number(Comparison::new(order, number))
            }
            (FieldKind::Span | FieldKind::Since, Relation::Order(order)) => {
                Predicate::Span(Comparison::new(order, duration::parse(value)?))
            }
            (FieldKind::Span | FieldKind::Since, Relation::Is | Relation::Like)
            | (FieldKind::State | FieldKind::Outcome, Relation::Order(_)) => return Err(unfit),
            (FieldKind::Details, relation) => Predicate::Json(DetailsCheck::new(relation, value)?),
        };
        Ok(Test::new(self, predicate))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Test {
    field: FieldPath,
    predicate: Predicate,
}

#[derive(Debug, Clone)]
pub(super) enum Predicate {
    Missing,
    Text(Pattern),
    Priority(Comparison<Priority>),
    Number(Comparison<i128>),
    Span(Comparison<Duration>),
    Json(DetailsCheck),
    Search(Pattern),
}

impl Test {
    pub(super) fn new(field: FieldPath, predicate: Predicate) -> Self {
        Self { field, predicate }
    }

    pub(super) fn holds(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        if let Predicate::Search(pattern) = &self.predicate {
            return searched(entry).any(|text| pattern.fits(&text));
        }
        match (&self.predicate, self.field.value(entry)) {
            (Predicate::Missing, value) => value.is_none(),
            (Predicate::Text(pattern), Some(FieldValue::Text(text))) => pattern.fits(&text),
            (Predicate::Priority(comparison), Some(FieldValue::Priority(it))) => {
                comparison.fits(&it)
            }
            (Predicate::Number(comparison), Some(FieldValue::Number(it))) => comparison.fits(&it),
            (Predicate::Span(comparison), Some(value)) => {
                value.span(now).is_some_and(|it| comparison.fits(&it))
            }
            (Predicate::Json(predicate), Some(FieldValue::Json(value))) => predicate.fits(&value),
            _ => false,
        }
    }

    /// Returns the least data that decides it.
    pub(super) fn source(&self) -> FieldSource {
        match self.predicate {
            Predicate::Search(_) => FieldSource::Record,
            _ => self.field.source(),
        }
    }

    pub(super) fn changes_with_time(&self) -> bool {
        matches!(self.predicate, Predicate::Span(_))
    }
}

fn searched(entry: &Entry) -> impl Iterator<Item = Cow<'_, str>> {
    let job = entry.job();
    let failure = job.and_then(|job| job.attempts.failures.last());
    let texts = [
        job.map(|job| job.name.as_str().into()),
        Some(entry.reference()),
        job.and_then(Job::owner).map(|owner| owner.text()),
        job.and_then(|job| job.reason()),
        failure.map(|failure| failure.reason.as_str().into()),
        failure.map(|failure| failure.stderr.as_str().into()),
    ];
    texts.into_iter().flatten()
}

/// Matches a name of a closed list literally.
fn literal<T>(name: &str) -> Result<Pattern, Fault>
where
    T: FromStr + Display,
    Fault: From<T::Err>,
{
    Ok(Pattern::Exact(name.parse::<T>()?.to_string()))
}

pub(super) fn fields() -> String {
    format!("{}.PATH", FieldPath::names().join(", "))
}

/// Suggests the field that was probably meant; empty if none is close.
fn did_you_mean(wrong: &str) -> String {
    /// Maximum number of wrong, missing or extra letters.
    const SLIPS: usize = 2;

    let wrong = wrong.to_ascii_lowercase();
    let names = FieldPath::names().into_iter();
    names
        .map(|name| (levenshtein(&wrong, name), name))
        .min()
        .filter(|(distance, _)| *distance <= SLIPS && 2 * distance <= wrong.len())
        .map_or_else(String::new, |(_, name)| {
            format!(" (did you mean `{name}`?)")
        })
}
