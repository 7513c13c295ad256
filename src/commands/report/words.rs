//! Formats words and numbers of reports, for every format.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{duration, output::grouped};

/// Counts jobs, with groups of thousands as in the tables of a report.
pub(super) fn jobs_grouped(count: u64) -> String {
    match count {
        1 => "1 job".to_owned(),
        count => format!("{} jobs", grouped(count)),
    }
}

/// Formats a duration in seconds; a short one has two digits.
pub(super) fn seconds(seconds: f64) -> String {
    // A value that rounds to ten has two digits without a point.
    if (1.0..9.95).contains(&seconds) {
        return format!("{seconds:.1}s").replace(".0s", "s");
    }
    duration::brief(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

pub(super) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Remainder {
    pub(super) count: u64,
    /// Whether the number is a lower limit, since rare entries were dropped.
    pub(super) at_least: bool,
}

impl Remainder {
    pub(super) fn than<T>(all: &mut Vec<T>, most: usize, at_least: bool) -> Self {
        let count = all.len().saturating_sub(most) as u64;
        all.truncate(most);
        Self { count, at_least }
    }
}

impl fmt::Display for Remainder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.at_least { "at least " } else { "" };
        write!(f, "{least}{}", grouped(self.count))
    }
}
