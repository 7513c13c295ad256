//! Words and numbers as reports have them, in whichever form.

use std::time::Duration;

use super::{
    facts::Facts,
    measure::{Bucket, EDGES},
};
use crate::{commands::parts::tally::Standing, duration};

/// Says how many jobs there are.
pub(super) fn jobs(count: u64) -> String {
    match count {
        1 => "1 job".to_owned(),
        count => format!("{} jobs", grouped(count)),
    }
}

/// Says how many jobs there are somewhere.
pub(super) fn are(count: u64) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{verb} {}", jobs(count))
}

/// Writes a number so that thousands can be seen: `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number in few characters: `12k`, `1.2M`.
pub(super) fn compact(number: u64) -> String {
    let tenths = |unit: u64, name: &str| match number / (unit / 10) {
        tenths if tenths < 100 && tenths % 10 > 0 => {
            format!("{}.{}{name}", tenths / 10, tenths % 10)
        }
        tenths => format!("{}{name}", tenths / 10),
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        1_000_000..1_000_000_000 => tenths(1_000_000, "M"),
        _ => tenths(1_000_000_000, "G"),
    }
}

/// Writes a span of so many seconds, of a short one two digits.
pub(super) fn seconds(seconds: f64) -> String {
    // What rounds up to ten has two digits without a point.
    if (1.0..9.95).contains(&seconds) {
        return format!("{seconds:.1}s").replace(".0s", "s");
    }
    duration::brief(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Names a bucket of spans of time.
pub(super) fn span(bucket: &Bucket) -> String {
    let name = |edge: i64| {
        let found = EDGES.iter().find(|(it, _)| *it == edge);
        found.map_or("", |(_, name)| name)
    };
    match (bucket.from, bucket.to) {
        (0, Some(to)) => format!("below {}", name(to)),
        (from, Some(to)) => format!("{} to {}", name(from), name(to)),
        (from, None) => format!("{} and more", name(from)),
    }
}

/// Names a bucket of attempts.
pub(super) fn attempts(bucket: &Bucket) -> String {
    match (bucket.from, bucket.to) {
        (0, _) => "never".to_owned(),
        (1, Some(_)) => "once".to_owned(),
        (times, Some(_)) => format!("{times} times"),
        (times, None) => format!("{times} times and more"),
    }
}

impl Facts {
    /// Returns how long ago a time was.
    pub(super) fn ago(&self, time: chrono::DateTime<chrono::Utc>) -> String {
        duration::between(time, self.at)
    }

    /// Returns the figures of the board, each with its name.
    pub(super) fn counts(&self) -> Vec<(&'static str, String)> {
        let figures = &self.figures;
        let conductors = match (self.conductors, self.silent) {
            (None, _) => "not seen".to_owned(),
            (Some(alive), 0) => alive.to_string(),
            (Some(alive), silent) => format!("{alive}, and {silent} silent"),
        };
        let some = |count: u64| (count > 0).then(|| grouped(count));
        let counts = [
            ("unclaimed", Some(grouped(figures.unclaimed))),
            ("  held back", some(figures.held_back)),
            (
                "  the oldest",
                self.standing(figures.oldest_unclaimed.as_ref()),
            ),
            ("claimed", Some(grouped(figures.claimed))),
            ("  never lapse", some(figures.never_lapsing)),
            ("  orphaned", some(figures.orphaned)),
            (
                "  the longest",
                self.standing(figures.longest_held.as_ref()),
            ),
            ("in the trash", Some(grouped(self.trashed))),
            ("  failed", some(self.lost)),
            ("malformed", some(figures.malformed)),
            ("poison", some(figures.poison)),
            ("conductors", Some(conductors)),
            ("not settled", some(self.unsettled)),
        ];
        let counts = counts.into_iter();
        counts
            .filter_map(|(name, fact)| Some((name, fact?)))
            .collect()
    }

    fn standing(&self, job: Option<&Standing>) -> Option<String> {
        Some(job?.told(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (number, long, short) in [
            (0, "0", "0"),
            (999, "999", "999"),
            (1_000, "1,000", "1k"),
            (1_250, "1,250", "1.2k"),
            (99_999, "99,999", "99k"),
            (1_234_567, "1,234,567", "1.2M"),
        ] {
            assert_eq!(
                (grouped(number).as_str(), compact(number).as_str()),
                (long, short)
            );
        }
    }
}
