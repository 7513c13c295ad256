//! Filter errors, with corrections.

use thiserror::Error;

use crate::{duration::InvalidDuration, glob::InvalidGlob, names::UnknownName};

#[derive(Debug, Error)]
#[error("invalid filter `{text}`: {fault}")]
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
    #[error(
        "the operator and the value are missing; write FIELD OP VALUE, where OP is one of {operators}"
    )]
    NoOperator { operators: String },
    #[error("write FIELD OP VALUE, for example held>10m")]
    Nothing,
    #[error("only {1} search for a bare word; write name={0}")]
    Word(String, &'static str),
    #[error("the condition after the last `and` is missing")]
    Dangling,
    #[error("`{0}` has no closing quote; double a quote to include it in the value")]
    OpenQuote(String),
    #[error("filters have no `or`; run the command once per condition")]
    Or,
    #[error(
        "unexpected `{rest}` after `{part}`; join two conditions with `and`{}",
        alternatively(whole.as_deref())
    )]
    LeftOver {
        part: String,
        rest: String,
        whole: Option<String>,
    },
    #[error("the field before `{operator}` is missing; the fields are {fields}")]
    NoField { operator: String, fields: String },
    #[error("unknown field `{name}`{did_you_mean}; the fields are {fields}")]
    UnknownField {
        name: String,
        did_you_mean: String,
        fields: String,
    },
    #[error("`details.{0}` has an empty part; separate names and array indexes with single dots")]
    BrokenPath(String),
    #[error(
        "unknown operator `{name}`; use one of {operators}, and put a space before a value that \
         begins with such a character"
    )]
    UnknownOperator { name: String, operators: String },
    #[error("`{operator}` does not work with {field}; use {fitting}")]
    WrongOperator {
        field: &'static str,
        operator: &'static str,
        fitting: &'static str,
    },
    #[error("the value after `{0}` is missing")]
    NoValue(&'static str),
    #[error(transparent)]
    Name(#[from] UnknownName),
    #[error(transparent)]
    Duration(#[from] InvalidDuration),
    #[error("`{0}` is not a whole number")]
    Number(String),
    #[error("`{0}` is not a size; use a whole number of bytes, kB, MB, GB, KiB, MiB or GiB")]
    Size(String),
    #[error("invalid glob: {0}")]
    Glob(#[from] InvalidGlob),
    #[error("invalid regular expression: {0}")]
    Regex(String),
}

fn alternatively(whole: Option<&str>) -> String {
    whole.map_or_else(String::new, |whole| {
        format!(", or write {whole} if it belongs to the value")
    })
}
