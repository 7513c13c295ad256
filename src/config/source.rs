//! Where a value of the configuration came from.

use std::{fmt, path::PathBuf};

/// Where a value came from, in words that its author recognises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// An option of the command line, with its dashes.
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
    /// What configures Octavia: a file and a line, or a variable.
    Octavia(String),
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
            Self::Octavia(place) => f.write_str(place),
            Self::Default => f.write_str("default"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

impl<T> Sourced<T> {
    pub(crate) fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    /// Takes a value that nobody chose.
    pub(crate) fn default(value: T) -> Self {
        Self::new(value, Source::Default)
    }
}
