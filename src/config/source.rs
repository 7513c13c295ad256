//! The source of a configuration value.

use std::{fmt, path::PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Variable(&'static str),
    File(PathBuf),
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

    pub(crate) fn default(value: T) -> Self {
        Self::new(value, Source::Default)
    }
}
