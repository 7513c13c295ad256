//! Parsers of option values that commands share.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};

use crate::board::filter::{Filter, InvalidFilter};

/// Parses a filter without bare words, for commands that act on its jobs.
pub(crate) fn of_fields(text: &str) -> Result<Filter, InvalidFilter> {
    Filter::of_fields(text, "`list`, `watch`, `dash` and `dump`")
}

/// Parses a value from a word list, for help and completions; it may differ from the listed words, for example `-WORD`.
#[derive(Debug, Clone)]
pub(crate) struct Words<T> {
    pub(crate) all: fn() -> Vec<&'static str>,
    pub(crate) read: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Words<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let read = self.read;
        let parser = StringValueParser::new().try_map(move |text| read(&text));
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.all)().into_iter().map(PossibleValue::new)))
    }
}
