//! The states and priorities of jobs, with TaskFlow's names.

use serde::{Deserialize, Serialize};

use crate::names::named;

named! {
    #[derive(
        Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
    )]
    pub(crate) enum Priority ("priority", str::eq_ignore_ascii_case) {
        VeryHigh = 4 => "VERY_HIGH",
        High = 3 => "HIGH",
        #[default]
        Normal = 2 => "NORMAL",
        Low = 1 => "LOW",
        VeryLow = 0 => "VERY_LOW",
    }
}

named! {
    /// What a job is doing, as TaskFlow names it, and the two states that only we tell apart.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub(crate) enum State ("state", str::eq_ignore_ascii_case) {
        Unclaimed => "UNCLAIMED",
        Claimed => "CLAIMED",
        /// Gone from the board: consumed, or never there.
        Complete => "COMPLETE",
        Trashed => "TRASHED",
        /// There is a record, but it cannot be read.
        Malformed => "MALFORMED",
    }
}
