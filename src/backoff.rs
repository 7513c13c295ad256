//! Back-off with jitter.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

pub(crate) fn random_fraction() -> f64 {
    #[cfg(test)]
    if let Some(drawn) = crate::process::simulation::chance() {
        return drawn;
    }
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}

/// Returns the pause after this many others: doubled each time, up to the longest.
pub(crate) fn doubled((shortest, longest): (Duration, Duration), times: u32) -> Duration {
    let factor = 2_u32.saturating_pow(times);
    shortest.saturating_mul(factor).min(longest)
}

/// Shortens a pause by a random share up to `part`, so that simultaneous failures do not retry together.
pub(crate) fn jittered(pause: Duration, part: f64) -> Duration {
    pause.mul_f64(1.0 - part * random_fraction())
}

#[derive(Debug)]
pub(crate) struct Backoff {
    bounds: (Duration, Duration),
    next: Duration,
}

impl Backoff {
    /// Starts with an attempt without a pause.
    pub(crate) fn without_first_pause(bounds: (Duration, Duration)) -> Self {
        let next = Duration::ZERO;
        Self { bounds, next }
    }

    pub(crate) fn after_one(bounds: (Duration, Duration)) -> Self {
        let next = bounds.0;
        Self { bounds, next }
    }

    /// Returns the next pause; half of it is random.
    pub(crate) fn pause(&mut self) -> Duration {
        jittered(self.exact_pause(), 0.5)
    }

    pub(crate) fn exact_pause(&mut self) -> Duration {
        let (shortest, longest) = self.bounds;
        let pause = self.next;
        self.next = pause.saturating_mul(2).clamp(shortest, longest);
        pause
    }

    pub(crate) fn set_bounds(&mut self, bounds: (Duration, Duration)) {
        self.bounds = bounds;
        self.next = self.next.clamp(bounds.0, bounds.1);
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
        let mut backoff = Backoff::without_first_pause(bounds);
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
