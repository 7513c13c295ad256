//! Counting in memory that does not grow: histograms over logarithmic buckets, quantiles, and what happened when.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// Where the buckets of spans of time end, in seconds, and how people call these ends.
pub(super) const EDGES: [(i64, &str); 9] = [
    (1, "1s"),
    (10, "10s"),
    (60, "1m"),
    (600, "10m"),
    (3_600, "1h"),
    (21_600, "6h"),
    (86_400, "1d"),
    (604_800, "7d"),
    (2_592_000, "30d"),
];

/// From so many attempts on they are counted together.
pub(super) const MANY_ATTEMPTS: usize = 8;

/// One bar of a histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Bucket {
    /// The least that is in it.
    pub(super) from: i64,
    /// More than the most that is in it; `None`: all above.
    pub(super) to: Option<i64>,
    pub(super) jobs: u64,
    /// How many of these are marked.
    pub(super) marked: u64,
}

impl Bucket {
    fn add(&mut self, is_marked: bool) {
        self.jobs += 1;
        self.marked += u64::from(is_marked);
    }
}

/// Returns empty buckets for spans of time.
pub(super) fn spans() -> Vec<Bucket> {
    let from = [0].into_iter().chain(EDGES.map(|(edge, _)| edge));
    let to = EDGES.map(|(edge, _)| Some(edge)).into_iter().chain([None]);
    buckets(from.zip(to))
}

/// Returns empty buckets for numbers of attempts.
pub(super) fn attempts() -> Vec<Bucket> {
    let from = 0..=MANY_ATTEMPTS as i64;
    let to = (1..=MANY_ATTEMPTS as i64).map(Some).chain([None]);
    buckets(from.zip(to))
}

fn buckets(bounds: impl Iterator<Item = (i64, Option<i64>)>) -> Vec<Bucket> {
    let empty = |(from, to)| Bucket {
        from,
        to,
        ..Bucket::default()
    };
    bounds.map(empty).collect()
}

/// Adds a span of time, or a number of attempts, to the bucket that it belongs into.
pub(super) fn count(buckets: &mut [Bucket], value: i64, is_marked: bool) {
    let fits = |bucket: &&mut Bucket| bucket.to.is_none_or(|to| value < to);
    if let Some(bucket) = buckets.iter_mut().find(fits) {
        bucket.add(is_marked);
    }
}

/// By how much what is said of a quantile may be wrong, twice: two hundredths.
const GROWTH: f64 = 1.02;

/// Spans of time of which half, nine tenths and so on are known to be shorter, within a hundredth.
#[derive(Debug, Clone, Default)]
pub(super) struct Quantiles {
    /// How many milliseconds lie between two neighbouring powers of the growth.
    counts: Vec<u64>,
    count: u64,
    longest: i64,
}

/// What is told of them, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) longest: f64,
}

impl Quantiles {
    pub(super) fn add(&mut self, span: TimeDelta) {
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

    /// Adds a span that may not be known.
    pub(super) fn extend(&mut self, span: Option<TimeDelta>) {
        if let Some(span) = span {
            self.add(span);
        }
    }

    /// Returns the percentiles; none of nothing.
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
        // No more is known of it than that.
        millis.round().min(self.longest as f64) / 1e3
    }
}

/// How many intervals of time are shown.
pub(super) const INTERVALS: usize = 60;

/// How long these may be, in seconds.
const LENGTHS: [i64; 8] = [60, 300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000];

/// What happened in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Happened {
    pub(super) posted: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
}

/// Each of these by its name.
pub(super) const COUNTS: [(&str, Count); 3] = [
    ("posted", |it| it.posted),
    ("finished", |it| it.finished),
    ("failed", |it| it.failed),
];

/// Takes one of the numbers of what happened.
pub(super) type Count = fn(&Happened) -> u64;

/// What may happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Posted,
    Finished,
    Failed,
}

/// What happened when, over intervals of all lengths at once, until it is known which suits.
#[derive(Debug, Clone)]
pub(super) struct Course {
    at: i64,
    levels: [[Happened; INTERVALS]; LENGTHS.len()],
    /// From when on it is told.
    first: Option<i64>,
}

/// An interval of time, and what happened in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
    #[serde(flatten)]
    pub(super) happened: Happened,
}

impl Course {
    pub(super) fn new(at: DateTime<Utc>) -> Self {
        Self {
            at: at.timestamp(),
            levels: [[Happened::default(); INTERVALS]; LENGTHS.len()],
            first: None,
        }
    }

    /// Has it told from this time on, or from an earlier one.
    pub(super) fn reach(&mut self, time: DateTime<Utc>) {
        let time = time.timestamp();
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
    }

    pub(super) fn add(&mut self, kind: Kind, time: DateTime<Utc>) {
        let time = time.timestamp();
        for (length, level) in LENGTHS.into_iter().zip(&mut self.levels) {
            let back = self.at.div_euclid(length) - time.div_euclid(length);
            let Some(found) = usize::try_from(back).ok().and_then(|it| level.get_mut(it)) else {
                continue;
            };
            *match kind {
                Kind::Posted => &mut found.posted,
                Kind::Finished => &mut found.finished,
                Kind::Failed => &mut found.failed,
            } += 1;
        }
    }

    /// Returns the intervals that it reaches to, or as many as there are.
    pub(super) fn intervals(&self) -> Vec<Interval> {
        let Some(first) = self.first else {
            return Vec::new();
        };
        let back = |length: i64| (self.at.div_euclid(length) - first.div_euclid(length)).max(0);
        let fits = |length: &i64| back(*length) < INTERVALS as i64;
        let at = LENGTHS.iter().position(fits).unwrap_or(LENGTHS.len() - 1);
        let (length, level) = (LENGTHS[at], &self.levels[at]);
        let shown = usize::try_from(back(length)).map_or(INTERVALS, |back| INTERVALS.min(back + 1));
        let last = self.at.div_euclid(length);
        let time = |number: i64| DateTime::from_timestamp(number * length, 0).unwrap_or_default();
        let intervals = level[..shown]
            .iter()
            .zip(0..)
            .map(|(happened, back)| Interval {
                from: time(last - back),
                to: time(last - back + 1),
                happened: *happened,
            });
        let mut intervals: Vec<_> = intervals.collect();
        intervals.reverse();
        intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_has_its_bucket() {
        let mut buckets = spans();
        for seconds in [0, 1, 9, 3_600, 86_399, i64::MAX] {
            count(&mut buckets, seconds, seconds == 1);
        }
        let jobs: Vec<_> = buckets.iter().map(|it| it.jobs).collect();
        assert_eq!(jobs, [1, 2, 0, 0, 0, 1, 1, 0, 0, 1]);
        assert_eq!((buckets[1].marked, buckets[1].to), (1, Some(10)));
        let mut tried = attempts();
        count(&mut tried, 3, false);
        count(&mut tried, 4_000_000_000, false);
        assert_eq!((tried[3].jobs, tried[8].jobs, tried.len()), (1, 1, 9));
    }

    #[test]
    fn quantiles_are_right_within_a_hundredth() {
        let mut spans = Quantiles::default();
        assert_eq!(spans.percentiles(), None);
        for millis in (1..=10_000).rev() {
            spans.add(TimeDelta::milliseconds(millis));
        }
        let told = spans.percentiles().unwrap();
        for (told, exact) in [(told.p50, 5.0), (told.p90, 9.0), (told.p99, 9.9)] {
            assert!(
                (told / exact - 1.0_f64).abs() < 0.011,
                "{told} is not {exact}"
            );
        }
        assert_eq!((told.count, told.longest), (10_000, 10.0));
        let mut none = Quantiles::default();
        none.add(TimeDelta::zero());
        assert_eq!(none.percentiles().unwrap().p99, 0.0);
    }

    #[test]
    fn intervals_are_as_long_as_what_is_remembered_asks_for() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let mut course = Course::new(at);
        course.add(Kind::Posted, at - TimeDelta::days(4000));
        assert_eq!(course.intervals(), []);
        let mut add = |kind, time| {
            course.add(kind, time);
            course.reach(time);
            course.intervals().len()
        };
        assert_eq!(add(Kind::Finished, at - TimeDelta::minutes(3)), 4);
        assert_eq!(add(Kind::Failed, at - TimeDelta::hours(4)), 49);
        course.add(Kind::Posted, at - TimeDelta::hours(5));
        let intervals = course.intervals();
        assert_eq!(intervals.len(), 49);
        assert_eq!(intervals[0].to - intervals[0].from, TimeDelta::minutes(5));
        let all = intervals.iter().map(|it| it.happened);
        let all: Vec<_> = all.filter(|it| *it != Happened::default()).collect();
        let [failed, finished] = &all[..] else {
            panic!("{all:?}")
        };
        assert_eq!((failed.failed, finished.finished), (1, 1));
        course.reach(at - TimeDelta::days(40_000));
        assert_eq!(course.intervals().len(), INTERVALS);
        // Clocks may disagree.
        course.add(Kind::Finished, at + TimeDelta::days(1));
    }
}
