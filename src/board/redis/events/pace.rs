//! Limits the cost of polling a board.

use tokio::time::{Duration, Instant};

/// Pause after a read, as a multiple of its duration.
const REST: u32 = 20;

/// Credit for idle time: a few cheap reads may follow each other, expensive ones may not.
const IDLE_CREDIT: Duration = Duration::from_millis(50);

/// The shortest and the longest pause between reads of a board without pushed events.
const READ_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

const SAMPLES: usize = 4;

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
pub(super) struct ReadPace {
    /// When the pauses of all reads are over.
    rested: Instant,
    whole: Costs,
    parts: Costs,
}

impl ReadPace {
    pub(super) fn new() -> Self {
        Self {
            rested: Instant::now(),
            whole: Costs::NONE,
            parts: Costs::NONE,
        }
    }

    pub(super) fn next(self) -> Instant {
        self.rested.checked_sub(IDLE_CREDIT).unwrap_or(self.rested)
    }

    /// Records a read. A partial one does not show the cost of a whole one.
    pub(super) fn spent(&mut self, began: Instant, is_whole: bool) {
        let costs = match is_whole {
            true => &mut self.whole,
            false => &mut self.parts,
        };
        let cost = costs.add(began.elapsed());
        self.schedule(began, cost);
    }

    fn schedule(&mut self, began: Instant, cost: Duration) {
        self.rested = self.rested.max(began) + cost + cost * REST;
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PollPace {
    pause: Duration,
    next: Instant,
}

impl PollPace {
    pub(super) fn new() -> Self {
        Self {
            pause: READ_PAUSES.0,
            next: Instant::now() + READ_PAUSES.0,
        }
    }

    pub(super) fn next(self) -> Instant {
        self.next
    }

    pub(super) fn done(&mut self, began: Instant, found: usize) {
        let (shortest, longest) = READ_PAUSES;
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
    fn expensive_check_is_followed_by_a_long_pause() {
        let mut pace = ReadPace::new();
        let began = Instant::now() - Duration::from_millis(50);
        pace.spent(began, true);
        assert!(pace.next() >= began + 20 * Duration::from_millis(50));
    }

    #[test]
    fn many_cheap_checks_are_as_rare_as_expensive_ones() {
        const COST: Duration = Duration::from_millis(1);
        let mut pace = ReadPace::new();
        let start = pace.rested;
        let mut now = start;
        let mut looks = Vec::new();
        for _ in 0..100 {
            now = now.max(pace.next());
            looks.push(now - start);
            pace.schedule(now, COST);
            now += COST;
        }
        assert_eq!(looks[2], 2 * COST);
        assert!(
            looks[99] + IDLE_CREDIT >= 99 * REST * COST,
            "{:?}",
            looks[99]
        );
    }

    #[test]
    fn waiting_time_does_not_count_as_cost() {
        let mut costs = Costs::NONE;
        let cost = |costs: &mut Costs, cost| costs.add(Duration::from_millis(cost)).as_millis();
        assert_eq!([2, 1, 40, 3].map(|it| cost(&mut costs, it)), [2, 1, 1, 1]);
        assert_eq!(
            [30, 30, 20, 30].map(|it| cost(&mut costs, it)),
            [1, 3, 3, 20]
        );
    }

    #[test]
    fn rounds_become_rare_without_events() {
        let mut round = PollPace::new();
        for _ in 0..10 {
            round.done(Instant::now(), 0);
        }
        assert_eq!(round.pause, READ_PAUSES.1);
        round.done(Instant::now(), 1);
        assert_eq!(round.pause, READ_PAUSES.0);
    }
}
