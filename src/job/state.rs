//! The states and priorities of jobs, by the names that TaskFlow gives them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How urgent a job is; the greater is the more urgent.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Priority {
    VeryLow,
    Low,
    #[default]
    Normal,
    High,
    VeryHigh,
}

impl Priority {
    pub(crate) const ALL: [Self; 5] = [
        Self::VeryHigh,
        Self::High,
        Self::Normal,
        Self::Low,
        Self::VeryLow,
    ];

    /// Returns the name as it is stored, in upper case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::VeryHigh => "VERY_HIGH",
            Self::High => "HIGH",
            Self::Normal => "NORMAL",
            Self::Low => "LOW",
            Self::VeryLow => "VERY_LOW",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Says which priorities there are, to somebody who named another.
#[derive(Debug, Error)]
#[error("unknown priority `{0}`: it is one of VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW")]
pub(crate) struct UnknownPriority(String);

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, UnknownPriority> {
        Self::ALL
            .into_iter()
            .find(|priority| text.eq_ignore_ascii_case(priority.name()))
            .ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}

/// What a job is doing, as TaskFlow names it, and the two states that only we tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    Unclaimed,
    Claimed,
    /// Gone from the board: consumed, or never there.
    Complete,
    Trashed,
    /// There is a record, but it cannot be read.
    Malformed,
}

impl State {
    pub(crate) const ALL: [Self; 5] = [
        Self::Unclaimed,
        Self::Claimed,
        Self::Complete,
        Self::Trashed,
        Self::Malformed,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unclaimed => "UNCLAIMED",
            Self::Claimed => "CLAIMED",
            Self::Complete => "COMPLETE",
            Self::Trashed => "TRASHED",
            Self::Malformed => "MALFORMED",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Says which states there are, to somebody who named another.
#[derive(Debug, Error)]
#[error("unknown state `{0}`: it is one of UNCLAIMED, CLAIMED, COMPLETE, TRASHED, MALFORMED")]
pub(crate) struct UnknownState(String);

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL
            .into_iter()
            .find(|state| text.eq_ignore_ascii_case(state.name()))
            .ok_or_else(|| UnknownState(text.to_owned()))
    }
}
