//! The style of the output: format, colours and extras.

use std::fmt;

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and text for people
    Table,
    /// Tab-separated lines
    Tsv,
    /// JSON
    Json,
    /// One JSON object per line
    Jsonl,
    /// Only references, one per line: uuids, or key:TEXT for records without one
    Uuid,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    pub(super) fn applies(self, is_terminal: bool, is_plain: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_terminal && !is_plain,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    #[default]
    Normal,
    Verbose,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    pub(crate) format: Option<Format>,
    pub(crate) color: ColorChoice,
    pub(crate) verbosity: Verbosity,
    pub(crate) is_plain: bool,
}
