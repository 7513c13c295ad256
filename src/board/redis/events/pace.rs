//! How often looking at a board is worth its cost.

use tokio::time::{Duration, Instant};

/// So many times as long as a look takes the board is left alone for it.
const REST: u32 = 20;

/// So much of that a board that was left alone for longer may be looked at ahead of: a few cheap looks
/// may follow each other, and of costly ones none the sooner.
const AHEAD: Duration = Duration::from_millis(50);

/// The shortest and the longest pause between looks at a board that does not tell what happens.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Of so many looks the cheapest says what they cost: the others had to wait for a processor.
const SAMPLES: usize = 4;

/// What the last looks of a kind cost, the latest first.
#[derive(Debug, Clone, Copy)]
struct Costs([Duration; SAMPLES]);

impl Costs {
    const NONE: Self = Self([Duration::MAX; SAMPLES]);

    fn add(&mut self, cost: Duration) -> Duration {
        self.0.rotate_right(1);
        self.0[0] = cost;
        self.0.into_iter().min().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// By then the board was left alone for as long as all looks together ask for.
    rested: Instant,
    whole: Costs,
    parts: Costs,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            rested: Instant::now(),
            whole: Costs::NONE,
            parts: Costs::NONE,
        }
    }

    pub(super) fn next(self) -> Instant {
        self.rested.checked_sub(AHEAD).unwrap_or(self.rested)
    }

    pub(super) fn spent(&mut self, began: Instant) {
        let cost = self.whole.add(began.elapsed());
        self.rest(began, cost);
    }

    /// Notes that only a part of a look was needed, which says nothing of what a whole one costs.
    pub(super) fn spared(&mut self, began: Instant) {
        let cost = self.parts.add(began.elapsed());
        self.rest(began, cost);
    }

    fn rest(&mut self, began: Instant, cost: Duration) {
        self.rested = self.rested.max(began) + cost + cost * REST;
    }
}

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
        assert!(pace.next() >= began + 20 * Duration::from_millis(50));
    }

    #[test]
    fn a_few_cheap_looks_follow_each_other_and_many_are_as_rare_as_costly_ones() {
        const COST: Duration = Duration::from_millis(1);
        let mut pace = Pace::new();
        let start = pace.rested;
        let mut now = start;
        let mut looks = Vec::new();
        for _ in 0..100 {
            now = now.max(pace.next());
            looks.push(now - start);
            pace.rest(now, COST);
            now += COST;
        }
        assert_eq!(looks[2], 2 * COST);
        assert!(looks[99] + AHEAD >= 99 * REST * COST, "{:?}", looks[99]);
    }

    #[test]
    fn a_look_that_had_to_wait_itself_does_not_say_what_they_cost() {
        let mut costs = Costs::NONE;
        let cost = |costs: &mut Costs, cost| costs.add(Duration::from_millis(cost)).as_millis();
        assert_eq!([2, 1, 40, 3].map(|it| cost(&mut costs, it)), [2, 1, 1, 1]);
        assert_eq!(
            [30, 30, 20, 30].map(|it| cost(&mut costs, it)),
            [1, 3, 3, 20]
        );
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
