//! What can be wrong with a filter, and what would be right.

use std::mem;

use thiserror::Error;

use super::{field, operator, text::InvalidGlob};
use crate::{
    duration::InvalidDuration,
    job::{UnknownPriority, UnknownState},
};

/// Says why an expression is not a filter.
///
/// Its message holds everything there is to say; there is no source to go on reading.
#[derive(Debug, Error)]
#[error("{} is not a filter: {fault}", quoted(text))]
pub(crate) struct InvalidFilter {
    text: String,
    fault: Fault,
}

impl InvalidFilter {
    pub(super) fn new(text: &str, fault: Fault) -> Self {
        Self {
            text: text.to_owned(),
            fault,
        }
    }
}

/// What is wrong with a part of an expression.
#[derive(Debug, Error)]
pub(super) enum Fault {
    #[error(
        "it lacks an operator: write FIELD OP VALUE with one of {}",
        operator::names()
    )]
    NoOperator,
    #[error("write FIELD OP VALUE, such as held>10m")]
    Nothing,
    #[error("nothing stands behind its last `and`")]
    Dangling,
    #[error("the quotes of `{0}` are not closed: a quote that is meant as such is doubled in them")]
    OpenQuote(String),
    #[error(
        "`{rest}` is left over behind `{part}`: `and` joins two parts{}",
        alternatively(whole.as_deref())
    )]
    LeftOver {
        part: String,
        rest: String,
        /// The part with all of it in its value.
        whole: Option<String>,
    },
    #[error("it lacks a field before `{operator}`: write one of {}", fields())]
    NoField { operator: String },
    #[error("unknown field `{name}`{}: it is one of {}", perhaps(name), fields())]
    UnknownField { name: String },
    #[error("`details.{0}` has an empty part: write names and array indexes with dots between")]
    BrokenPath(String),
    #[error(
        "unknown operator `{name}`: it is one of {}; a value that begins with such a character takes \
         a space before it",
        operator::names()
    )]
    UnknownOperator { name: String },
    #[error("`{operator}` does not go with {field}: use {fitting}")]
    Unfit {
        field: &'static str,
        operator: &'static str,
        fitting: &'static str,
    },
    #[error("it lacks a value behind `{0}`")]
    NoValue(&'static str),
    #[error(transparent)]
    State(#[from] UnknownState),
    #[error(transparent)]
    Priority(#[from] UnknownPriority),
    #[error(transparent)]
    Duration(#[from] InvalidDuration),
    #[error("`{0}` is not a whole number")]
    Number(String),
    #[error("`{0}` is not a size: write bytes, or whole kB, MB, GB, KiB, MiB or GiB")]
    Size(String),
    #[error("the glob is wrong: {0}")]
    Glob(#[from] InvalidGlob),
    #[error("the regular expression is wrong: {0}")]
    Regex(String),
}

/// Repeats an expression, if there is any.
fn quoted(text: &str) -> String {
    match text {
        "" => "an empty text".to_owned(),
        text => format!("`{text}`"),
    }
}

/// Says how a value is written that has spaces or commas.
fn alternatively(whole: Option<&str>) -> String {
    whole.map_or_else(String::new, |whole| {
        format!(", and if it belongs to the value, write {whole}")
    })
}

/// Lists the fields.
fn fields() -> String {
    let names: Vec<_> = field::names().collect();
    format!("{}.PATH", names.join(" "))
}

/// Returns the field that was probably meant, as an aside, or nothing if that is a mere guess.
fn perhaps(wrong: &str) -> String {
    /// How many letters may be wrong, missing or too many.
    const SLIPS: usize = 2;

    let wrong = wrong.to_ascii_lowercase();
    field::names()
        .map(|name| (distance(&wrong, name), name))
        .min()
        .filter(|(distance, _)| *distance <= SLIPS && 2 * distance <= wrong.len())
        .map_or_else(String::new, |(_, name)| format!(" (perhaps `{name}`)"))
}

/// Counts the letters to change, add or remove to make one word of another.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.bytes().enumerate() {
        let mut diagonal = mem::replace(&mut row[0], at + 1);
        for (column, other) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
