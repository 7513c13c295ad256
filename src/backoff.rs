//! Back-off with jitter.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Returns a random number from 0 to 1.
pub(crate) fn chance() -> f64 {
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}

/// Returns the pause after this many others: doubled each time, up to the longest.
pub(crate) fn doubled((shortest, longest): (Duration, Duration), times: u32) -> Duration {
    let factor = 2_u32.saturating_pow(times);
    shortest.saturating_mul(factor).min(longest)
}

/// Shortens a pause by a random share up to `part`, so that simultaneous failures do not retry together.
pub(crate) fn jittered(pause: Duration, part: f64) -> Duration {
    pause.mul_f64(1.0 - part * chance())
}

/// Half of each pause is random.
#[derive(Debug)]
pub(crate) struct Backoff {
    bounds: (Duration, Duration),
    /// The number of pauses so far; `None` before the first attempt.
    times: Option<u32>,
}

impl Backoff {
    /// Starts with an attempt without a pause.
    pub(crate) fn at_once(bounds: (Duration, Duration)) -> Self {
        Self {
            bounds,
            times: None,
        }
    }

    pub(crate) fn after_one(bounds: (Duration, Duration)) -> Self {
        Self {
            bounds,
            times: Some(0),
        }
    }

    /// Returns the next pause.
    pub(crate) fn pause(&mut self) -> Duration {
        let times = self
            .times
            .replace(self.times.map_or(0, |it| it.saturating_add(1)));
        times.map_or(Duration::ZERO, |times| {
            jittered(doubled(self.bounds, times), 0.5)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_up_to_its_limit() {
        let bounds = (Duration::from_secs(1), Duration::from_secs(5));
        let pauses = [0, 1, 2, 3, 31, 32, u32::MAX].map(|times| doubled(bounds, times).as_secs());
        assert_eq!(pauses, [1, 2, 4, 5, 5, 5, 5]);
        let longest = Duration::from_millis(u64::MAX);
        assert_eq!(doubled((longest, longest), u32::MAX), longest);
        assert!(jittered(longest, 0.2) >= longest.mul_f64(0.799));
    }

    #[test]
    fn back_off_grows_with_each_attempt() {
        let bounds @ (shortest, longest) = (Duration::from_millis(200), Duration::from_secs(5));
        let mut backoff = Backoff::at_once(bounds);
        assert_eq!(backoff.pause(), Duration::ZERO);
        for mut backoff in [backoff, Backoff::after_one(bounds)] {
            let pauses: Vec<_> = (0..20).map(|_| backoff.pause()).collect();
            assert!((shortest / 2..=shortest).contains(&pauses[0]), "{pauses:?}");
            assert!(
                pauses
                    .iter()
                    .all(|pause| (shortest / 2..=longest).contains(pause))
            );
            assert!(pauses[10..].iter().all(|pause| *pause >= longest / 2));
        }
    }

    #[test]
    fn jitter_spreads_clients() {
        let longest = Duration::from_secs(4);
        let pauses: std::collections::BTreeSet<_> =
            (0..50).map(|_| jittered(longest, 0.5)).collect();
        assert!(pauses.len() > 25, "{pauses:?}");
        assert!(pauses.iter().all(|it| (longest / 2..=longest).contains(it)));
    }
}
