//! Text patterns: globs, regular expressions, order.

use regex::{Regex, RegexBuilder};

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
    /// Reads a text, a glob or a regular expression, as the relation requires.
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

    /// Reads a case-insensitive regular expression.
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
