//! Decides where to look when the server reports only that a hash has changed.

use std::collections::BTreeSet;

use redis::{Pipeline, Value, from_redis_value};
use tokio::time::{Duration, Instant};

use super::super::keys::Keys;

/// How long after taking its number a job may still be posted.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) jobs: usize,
    pub(super) trashed: usize,
    pub(super) sequence: i64,
}

impl Counts {
    pub(super) fn commands(keys: &Keys) -> Pipeline {
        let mut commands = Pipeline::with_capacity(3);
        commands.cmd("HLEN").arg(keys.listings());
        commands.cmd("HLEN").arg(keys.trash());
        commands.cmd("GET").arg(keys.sequence());
        commands
    }

    pub(super) fn read(answers: Vec<Value>) -> Option<Self> {
        let mut answers = answers.into_iter();
        let jobs = from_redis_value(answers.next()?).ok()?;
        let trashed = from_redis_value(answers.next()?).ok()?;
        // A foreign value numbers no job.
        let sequence: Option<i64> = from_redis_value(answers.next()?).unwrap_or_default();
        Some(Self {
            jobs,
            trashed,
            sequence: sequence.unwrap_or_default(),
        })
    }
}

/// Whether a peer took job numbers, as far as the messages show.
///
/// Our own posts are announced before the server reports the touched number. If it reports several at once, a peer's
/// number among them goes unnoticed; the count of numbers then reveals it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Numbers {
    is_announced: bool,
    /// Whether a peer has numbered a job since the last comparison, which resets it.
    pub(super) are_of_peers: bool,
}

impl Numbers {
    pub(super) fn note(&mut self) {
        self.is_announced = true;
    }

    pub(super) fn touch(&mut self) {
        self.are_of_peers |= !std::mem::take(&mut self.is_announced);
    }
}

#[derive(Debug, Default)]
pub(super) struct AnnouncedNumbers {
    /// Numbers up to this one are settled.
    settled: i64,
    /// The highest number that one of our posts took from the counter.
    given: i64,
    announced: BTreeSet<i64>,
    /// Since when numbers lack a post.
    lacking_since: Option<Instant>,
    /// Whether a touched claim had no job: before the last query for the numbers, and since.
    ghosts: (bool, bool),
}

impl AnnouncedNumbers {
    pub(super) fn at(sequence: i64) -> Self {
        Self {
            settled: sequence,
            ..Self::default()
        }
    }

    pub(super) fn note(&mut self, sequence: i64) {
        if sequence > self.settled {
            self.announced.insert(sequence);
        }
    }

    /// Notes the number of one of our posts. Numbers of other records may not come from the counter.
    pub(super) fn note_given(&mut self, sequence: i64) {
        self.given = self.given.max(sequence);
    }

    /// The counter never goes below this, unless the board was deleted or the server lost data.
    pub(super) fn least_count(&self) -> i64 {
        self.settled.max(self.given)
    }

    pub(super) fn lacks_some(&self, sequence: i64) -> bool {
        let announced = self.announced.range(..=sequence).count();
        let announced = i64::try_from(announced).unwrap_or(i64::MAX);
        sequence.saturating_sub(self.settled) > announced
    }

    /// Returns whether jobs came and went unreported. A number alone proves no post: some posts fail after taking
    /// theirs, and others follow theirs later.
    pub(super) fn settle(&mut self, sequence: i64, now: Instant) -> bool {
        let has_ghosts = self.ghosts.0 || self.ghosts.1;
        let lacks_some = self.lacks_some(sequence);
        if lacks_some && !has_ghosts {
            let since = self.lacking_since.get_or_insert(now);
            if now - *since < LATE {
                return false;
            }
        }
        self.lacking_since = None;
        self.settled = self.settled.max(sequence);
        self.announced = self.announced.split_off(&(self.settled + 1));
        // A job seen since may have a later number.
        self.ghosts = (false, self.ghosts.1 && !lacks_some);
        lacks_some && has_ghosts
    }

    pub(super) fn suspect(&mut self) {
        self.ghosts.1 = true;
    }

    pub(super) fn ask(&mut self) {
        self.ghosts = (self.ghosts.0 || self.ghosts.1, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unannounced_number_is_attributed_to_a_peer() {
        let mut numbers = Numbers::default();
        numbers.note();
        numbers.note();
        numbers.touch();
        assert!(!numbers.are_of_peers);
        numbers.touch();
        numbers.note();
        numbers.touch();
        assert!(numbers.are_of_peers);
    }

    #[test]
    fn unused_number_is_no_job() {
        let (mut numbers, now) = (AnnouncedNumbers::at(5), Instant::now());
        numbers.note(6);
        assert!(!numbers.lacks_some(6));
        assert!(numbers.lacks_some(7));
        assert!(!numbers.settle(7, now));
        assert!(numbers.lacks_some(7));
        assert!(!numbers.settle(7, now + LATE));
        assert!(!numbers.lacks_some(7));
    }

    #[test]
    fn unmatched_number_and_claim_mean_a_short_lived_job() {
        let (mut numbers, now) = (AnnouncedNumbers::at(5), Instant::now());
        // The number comes first and the job follows.
        assert!(!numbers.settle(6, now));
        numbers.suspect();
        assert!(numbers.settle(6, now));
        assert!(!numbers.settle(6, now));
        numbers.ask();
        numbers.suspect();
        assert!(!numbers.settle(6, now));
        // It belonged to a later job.
        numbers.ask();
        assert!(numbers.settle(7, now));
    }
}
