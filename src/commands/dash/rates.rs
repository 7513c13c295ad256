//! Event counts per second over the last minute.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

const SECONDS: usize = 60;

/// The averaging window of a rate in seconds.
const LATELY: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    Posted,
    Finished,
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Rates {
    second: i64,
    counts: VecDeque<[u64; 3]>,
}

impl Rates {
    pub(super) fn count(&mut self, rate: Rate, many: u64, now: DateTime<Utc>) {
        self.advance(now);
        if let Some(count) = self.counts.front_mut() {
            count[rate as usize] += many;
        }
    }

    pub(super) fn advance(&mut self, now: DateTime<Utc>) {
        let ahead = now.timestamp() - self.second;
        // After the clock goes back, counts stay in the latest second.
        let new = match self.counts.is_empty() {
            true => 1,
            false => usize::try_from(ahead).unwrap_or(0).min(SECONDS),
        };
        (0..new).for_each(|_| self.counts.push_front([0; 3]));
        self.counts.truncate(SECONDS);
        self.second = self.second.max(now.timestamp());
    }

    pub(super) fn are_zero(&self) -> bool {
        self.counts.iter().flatten().all(|count| *count == 0)
    }

    pub(super) fn of(&self, rate: Rate) -> f64 {
        let seconds = self.counts.len().clamp(1, LATELY);
        let lately = self.counts.iter().take(seconds);
        lately.map(|count| count[rate as usize]).sum::<u64>() as f64 / seconds as f64
    }

    /// Draws the last seconds, the latest on the right.
    pub(super) fn line(&self, rate: Rate, columns: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let counts = self.counts.iter().map(|count| count[rate as usize]);
        let counts: Vec<_> = counts.take(columns).collect();
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let bar = |count: &u64| BARS[usize::try_from((count * 7).div_ceil(most)).unwrap_or(7)];
        let bars: String = counts.iter().rev().map(bar).collect();
        format!("{bars:>columns$}")
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn rates_shift_left_and_expire() {
        let (mut rates, start) = (Rates::default(), DateTime::UNIX_EPOCH + TimeDelta::days(9));
        rates.count(Rate::Posted, 4, start);
        let second = start + TimeDelta::seconds(1);
        rates.count(Rate::Posted, 8, second);
        assert_eq!(rates.line(Rate::Posted, 4), "  ▅█");
        assert_eq!((rates.of(Rate::Posted), rates.of(Rate::Failed)), (6.0, 0.0));
        // The clock goes back.
        rates.count(Rate::Posted, 1, start - TimeDelta::hours(1));
        rates.advance(second + TimeDelta::seconds(2));
        assert_eq!(rates.line(Rate::Posted, 5), " ▅█▁▁");
        rates.advance(second + TimeDelta::minutes(2));
        assert!(rates.are_zero());
    }
}
