//! Repeatable chance: the same seed yields the same numbers.

use std::time::Duration;

#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // The mixing function SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns a random number of tenths of a duration.
    pub(super) fn tenths(&mut self, of: Duration, from: u64, to: u64) -> Duration {
        let hundredths = from * 10 + self.below((to - from) * 10 + 1);
        of.mul_f64(hundredths as f64 / 100.0)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Returns a random non-empty subset.
    pub(super) fn some<'a, T>(&mut self, of: &'a [T]) -> Vec<&'a T> {
        let mut some: Vec<_> = of.iter().filter(|_| self.coin()).collect();
        if some.is_empty() {
            some.push(&of[self.below(of.len() as u64) as usize]);
        }
        some
    }
}
