//! Pauses between attempts: longer each time, and a part of them chance.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Returns a number from 0 to 1 that nobody can foresee.
pub(crate) fn chance() -> f64 {
    f64::from(RandomState::new().hash_one(0) as u32) / f64::from(u32::MAX)
}

/// Returns the pause after so many others: twice as long each time, up to the longest.
pub(crate) fn doubled((shortest, longest): (Duration, Duration), times: u32) -> Duration {
    let factor = 2_u32.saturating_pow(times);
    shortest.saturating_mul(factor).min(longest)
}

/// Takes up to this part of a pause away, by chance: what failed together must not come back
/// together.
pub(crate) fn jittered(pause: Duration, part: f64) -> Duration {
    pause.mul_f64(1.0 - part * chance())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_limit_whatever_that_is() {
        let bounds = (Duration::from_secs(1), Duration::from_secs(5));
        let pauses = [0, 1, 2, 3, 31, 32, u32::MAX].map(|times| doubled(bounds, times).as_secs());
        assert_eq!(pauses, [1, 2, 4, 5, 5, 5, 5]);
        let longest = Duration::from_millis(u64::MAX);
        assert_eq!(doubled((longest, longest), u32::MAX), longest);
        assert!(jittered(longest, 0.2) >= longest.mul_f64(0.799));
    }

    #[test]
    fn no_two_of_many_come_back_at_the_same_moment() {
        let longest = Duration::from_secs(4);
        let pauses: std::collections::BTreeSet<_> =
            (0..50).map(|_| jittered(longest, 0.5)).collect();
        assert!(pauses.len() > 25, "{pauses:?}");
        assert!(pauses.iter().all(|it| (longest / 2..=longest).contains(it)));
    }
}
