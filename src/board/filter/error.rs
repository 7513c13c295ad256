//! What can be wrong with a filter, and what would be right.

use thiserror::Error;

use crate::{duration::InvalidDuration, glob::InvalidGlob, names::UnknownName};

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

#[derive(Debug, Error)]
pub(super) enum Fault {
    #[error("a field needs an operator and a value: FIELD OP VALUE with one of {operators}")]
    NoOperator { operators: String },
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
    #[error("it lacks a field before `{operator}`: write one of {fields}")]
    NoField { operator: String, fields: String },
    #[error("unknown field `{name}`{perhaps}: it is one of {fields}")]
    UnknownField {
        name: String,
        perhaps: String,
        fields: String,
    },
    #[error("`details.{0}` has an empty part: write names and array indexes with dots between")]
    BrokenPath(String),
    #[error(
        "unknown operator `{name}`: it is one of {operators}; a value that begins with such a \
         character takes a space before it"
    )]
    UnknownOperator { name: String, operators: String },
    #[error("`{operator}` does not go with {field}: use {fitting}")]
    Unfit {
        field: &'static str,
        operator: &'static str,
        fitting: &'static str,
    },
    #[error("it lacks a value behind `{0}`")]
    NoValue(&'static str),
    #[error(transparent)]
    Name(#[from] UnknownName),
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
