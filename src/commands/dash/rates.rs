//! Event counts of the last minute.

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};

use crate::output::sparkline;

const SECONDS: usize = 60;

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

    pub(super) fn of(&self, rate: Rate) -> u64 {
        let sum: u64 = self.counts.iter().map(|count| count[rate as usize]).sum();
        sum * SECONDS as u64 / self.counts.len().max(1) as u64
    }

    /// Returns the time until these jobs have ended, at the present rates; `None` if their number does not fall.
    pub(super) fn time_until_empty(&self, jobs: u64) -> Option<Duration> {
        let [posted, finished, failed] =
            [Rate::Posted, Rate::Finished, Rate::Failed].map(|rate| self.of(rate));
        let falls = (finished + failed)
            .checked_sub(posted)
            .filter(|it| *it > 0)?;
        (jobs > 0).then(|| Duration::from_secs(jobs * 60 / falls))
    }

    /// Draws the last seconds, the latest on the right.
    pub(super) fn line(&self, rate: Rate, columns: usize) -> String {
        let counts = self.counts.iter().map(|count| count[rate as usize]);
        let counts: Vec<_> = counts.take(columns).collect();
        format!("{:<columns$}", sparkline(counts.into_iter().rev()))
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
        assert_eq!(rates.line(Rate::Posted, 4), "▅█  ");
        assert_eq!((rates.of(Rate::Posted), rates.of(Rate::Failed)), (360, 0));
        assert_eq!(rates.time_until_empty(7), None);
        rates.count(Rate::Finished, 32, second);
        assert_eq!(rates.time_until_empty(20), Some(Duration::from_secs(2)));
        // The clock goes back.
        rates.count(Rate::Posted, 1, start - TimeDelta::hours(1));
        rates.advance(second + TimeDelta::seconds(2));
        assert_eq!(rates.line(Rate::Posted, 5), "▅█▁▁ ");
        rates.advance(second + TimeDelta::minutes(2));
        assert!(rates.are_zero());
    }
}
