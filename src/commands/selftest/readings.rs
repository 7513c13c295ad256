//! The measurements of a board test.

use std::time::Duration;

use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(super) struct Readings {
    pub(super) latency: Option<Spread>,
    pub(super) event: Option<Spread>,
    pub(super) expiry: Option<f64>,
    pub(super) rates: Option<BatchRates>,
    pub(super) clock: Option<Clock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) count: usize,
}

impl Spread {
    pub(super) fn of(mut all: Vec<Duration>) -> Option<Self> {
        all.sort_unstable();
        let at = |part: usize| all.get((all.len() * part / 100).min(all.len().checked_sub(1)?));
        Some(Self {
            median: at(50)?.as_secs_f64(),
            p99: at(99)?.as_secs_f64(),
            count: all.len(),
        })
    }

    fn in_words(self) -> String {
        let Self { median, p99, count } = self;
        format!(
            "{:.2} ms median, {:.2} ms p99 of {count} samples",
            median * 1e3,
            p99 * 1e3
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct BatchRates {
    pub(super) post: f64,
    pub(super) claim: f64,
    pub(super) consume: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Clock {
    pub(super) offset: f64,
    /// As a fraction of the local time.
    pub(super) drift: f64,
}

impl Readings {
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let rates = self.rates.map(|it| {
            format!(
                "{:.0} posts, {:.0} claims, {:.0} consumes per second, in batches",
                it.post, it.claim, it.consume
            )
        });
        let clock = self.clock.map(|Clock { offset, drift }| {
            format!(
                "{:.2} ms {} ours, {:.3} % drift",
                offset.abs() * 1e3,
                if offset < 0.0 { "behind" } else { "ahead of" },
                drift.abs() * 1e2
            )
        });
        let expiry = self.expiry;
        let expiry = expiry.map(|late| format!("{:.0} ms late", late * 1e3));
        let all = [
            ("latency", self.latency.map(Spread::in_words)),
            ("rates", rates),
            ("expiry seen", expiry),
            ("events", self.event.map(Spread::in_words)),
            ("clock", clock),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_has_median_and_p99() {
        let all = (1..=200).map(Duration::from_millis).rev().collect();
        let spread = Spread::of(all).unwrap();
        assert_eq!(
            (spread.median, spread.p99, spread.count),
            (0.101, 0.199, 200)
        );
        let one = Spread::of(vec![Duration::from_secs(1)]).unwrap();
        assert_eq!((one.median, one.p99), (1.0, 1.0));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
