//! Quantiles and time lines in bounded memory.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// Twice the relative error of a quantile: two hundredths.
const GROWTH: f64 = 1.02;

/// Quantiles of durations, within one hundredth.
#[derive(Debug, Clone, Default)]
pub(super) struct Quantiles {
    /// Bucket `n` counts the durations in milliseconds between two powers of the growth.
    counts: Vec<u64>,
    count: u64,
    longest: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) longest: f64,
}

impl Quantiles {
    pub(super) fn add(&mut self, span: Option<TimeDelta>) {
        let Some(span) = span else { return };
        let millis = span.num_milliseconds().max(0);
        let at = match millis {
            0 => 0,
            millis => 1 + ((millis as f64).ln() / GROWTH.ln()).floor() as usize,
        };
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.count += 1;
        self.longest = self.longest.max(millis);
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        (self.count > 0).then(|| Percentiles {
            count: self.count,
            p50: self.at(0.5),
            p90: self.at(0.9),
            p99: self.at(0.99),
            longest: self.longest as f64 / 1e3,
        })
    }

    fn at(&self, part: f64) -> f64 {
        let wanted = (self.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        let millis = match at.unwrap_or(0) {
            0 => 0.0,
            at => GROWTH.powf(at as f64 - 0.5),
        };
        // The measured values limit it.
        millis.round().min(self.longest as f64) / 1e3
    }
}

const INTERVALS: usize = 60;

const MINUTE_LEVEL: usize = 3;

const LENGTHS: [i64; 11] = [
    1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedEvent {
    Posted,
    Finished,
    Failed,
}

pub(super) const KINDS: [&str; 3] = ["posted", "finished", "failed"];

/// Events over time, kept for all interval lengths until the suitable one is known.
#[derive(Debug, Clone)]
pub(super) struct EventIntervals {
    at: i64,
    levels: [[[u64; KINDS.len()]; INTERVALS]; LENGTHS.len()],
    first: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
    posted: u64,
    finished: u64,
    failed: u64,
}

impl Interval {
    pub(super) fn counts(&self) -> [u64; KINDS.len()] {
        [self.posted, self.finished, self.failed]
    }
}

impl EventIntervals {
    pub(super) fn new(at: DateTime<Utc>) -> Self {
        Self {
            at: at.timestamp(),
            levels: [[[0; KINDS.len()]; INTERVALS]; LENGTHS.len()],
            first: None,
        }
    }

    pub(super) fn reach(&mut self, time: DateTime<Utc>) {
        let time = time.timestamp();
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
    }

    pub(super) fn add(&mut self, kind: CountedEvent, time: DateTime<Utc>) {
        let time = time.timestamp();
        for (length, level) in LENGTHS.into_iter().zip(&mut self.levels) {
            let back = self.at.div_euclid(length) - time.div_euclid(length);
            let back = usize::try_from(back).ok();
            if let Some(found) = back.and_then(|back| level.get_mut(back)) {
                found[kind as usize] += 1;
            }
        }
    }

    /// Returns the counts of each kind in the last sixty minutes, the latest last.
    pub(super) fn last_hour(&self) -> [Vec<u64>; KINDS.len()] {
        let minutes = self.levels[MINUTE_LEVEL].iter().rev();
        std::array::from_fn(|kind| minutes.clone().map(|counts| counts[kind]).collect())
    }

    /// Returns the intervals since the first recorded end, one hour at least.
    pub(super) fn intervals(&self) -> Vec<Interval> {
        let is_quiet = self.levels[MINUTE_LEVEL] == [[0; KINDS.len()]; INTERVALS];
        if self.first.is_none() && is_quiet {
            return Vec::new();
        }
        let hour = self.at - 59 * LENGTHS[MINUTE_LEVEL];
        let first = self.first.map_or(hour, |first| first.min(hour));
        let back = |length: i64| (self.at.div_euclid(length) - first.div_euclid(length)).max(0);
        let fits = |length: &i64| back(*length) < INTERVALS as i64;
        let at = LENGTHS.iter().position(fits).unwrap_or(LENGTHS.len() - 1);
        let (length, level) = (LENGTHS[at], &self.levels[at]);
        let shown = usize::try_from(back(length)).map_or(INTERVALS, |back| INTERVALS.min(back + 1));
        let last = self.at.div_euclid(length);
        let time = |number: i64| DateTime::from_timestamp(number * length, 0).unwrap_or_default();
        let interval = |(counts, back): (&[u64; KINDS.len()], i64)| {
            let [posted, finished, failed] = *counts;
            Interval {
                from: time(last - back),
                to: time(last - back + 1),
                posted,
                finished,
                failed,
            }
        };
        let intervals = level[..shown].iter().zip(0..).map(interval);
        intervals.collect::<Vec<_>>().into_iter().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_one_percent() {
        let mut spans = Quantiles::default();
        assert_eq!(spans.percentiles(), None);
        for millis in (1..=10_000).rev() {
            spans.add(Some(TimeDelta::milliseconds(millis)));
        }
        let found = spans.percentiles().unwrap();
        for (found, exact) in [(found.p50, 5.0), (found.p90, 9.0), (found.p99, 9.9)] {
            assert!(
                (found / exact - 1.0_f64).abs() < 0.011,
                "{found} is not {exact}"
            );
        }
        assert_eq!((found.count, found.longest), (10_000, 10.0));
        let mut none = Quantiles::default();
        none.add(None);
        none.add(Some(TimeDelta::zero()));
        assert_eq!(none.percentiles().unwrap().p99, 0.0);
    }

    #[test]
    fn interval_length_follows_the_length_of_the_history() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let mut events = EventIntervals::new(at);
        events.add(CountedEvent::Posted, at - TimeDelta::days(4000));
        assert_eq!(events.intervals(), []);
        let mut add = |kind, time| {
            events.add(kind, time);
            events.reach(time);
            events.intervals().len()
        };
        // The numbers of the report cover the last hour, too.
        assert_eq!(add(CountedEvent::Finished, at - TimeDelta::minutes(3)), 60);
        assert_eq!(add(CountedEvent::Failed, at - TimeDelta::hours(4)), 49);
        events.add(CountedEvent::Posted, at - TimeDelta::hours(5));
        let [posted, finished, failed] = events.last_hour();
        assert_eq!((posted[59], finished[56], failed.len()), (0, 1, 60));
        let intervals = events.intervals();
        assert_eq!(intervals.len(), 49);
        assert_eq!(intervals[0].to - intervals[0].from, TimeDelta::minutes(5));
        let all = intervals.iter().map(Interval::counts);
        let all: Vec<_> = all.filter(|it| *it != [0; 3]).collect();
        assert_eq!(all, [[0, 0, 1], [0, 1, 0]]);
        events.reach(at - TimeDelta::days(40_000));
        assert_eq!(events.intervals().len(), INTERVALS);
        // Clocks may disagree.
        events.add(CountedEvent::Finished, at + TimeDelta::days(1));
    }
}
