//! How often looking at a board is worth its cost.

use tokio::time::{Duration, Instant};

/// So many times as long as a look takes the board is left alone behind it.
const REST: u32 = 20;

/// The shortest and the longest pause between looks at a board that does not tell what happens.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Of so many looks the cheapest says what they cost: the others had to wait for a processor.
const SAMPLES: usize = 4;

/// Says when the next look may be taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    next: Instant,
    /// What the last looks cost, the latest first.
    costs: [Duration; SAMPLES],
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            costs: [Duration::MAX; SAMPLES],
        }
    }

    pub(super) fn next(self) -> Instant {
        self.next
    }

    /// Notes what a look cost that began then.
    pub(super) fn spent(&mut self, began: Instant) {
        let now = Instant::now();
        self.costs.rotate_right(1);
        self.costs[0] = now - began;
        let cost = self.costs.into_iter().min().unwrap_or_default();
        self.next = now + cost * REST;
    }

    /// Notes that only a part of a look was needed, which says nothing of what a whole one costs.
    pub(super) fn spared(&mut self, began: Instant) {
        let now = Instant::now();
        self.next = now + (now - began) * REST;
    }
}

/// Says when to look at a board that does not tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pause: Duration,
    next: Instant,
}

impl Round {
    pub(super) fn new() -> Self {
        Self {
            pause: PAUSES.0,
            next: Instant::now() + PAUSES.0,
        }
    }

    pub(super) fn next(self) -> Instant {
        self.next
    }

    /// Notes what a round cost that began then, and how many events it was worth.
    pub(super) fn done(&mut self, began: Instant, found: usize) {
        let (shortest, longest) = PAUSES;
        self.pause = match found {
            0 => (self.pause * 2).min(longest),
            _ => shortest,
        };
        let now = Instant::now();
        self.next = now + self.pause.max((now - began) * REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_costly_look_is_followed_by_a_long_rest() {
        let mut pace = Pace::new();
        let began = Instant::now() - Duration::from_millis(50);
        pace.spent(began);
        assert!(pace.next() >= Instant::now() + Duration::from_millis(900));
    }

    #[test]
    fn rounds_become_rare_where_nothing_happens() {
        let mut round = Round::new();
        for _ in 0..10 {
            round.done(Instant::now(), 0);
        }
        assert_eq!(round.pause, PAUSES.1);
        round.done(Instant::now(), 1);
        assert_eq!(round.pause, PAUSES.0);
    }
}
