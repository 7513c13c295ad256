//! A conductor's cache of claimable jobs: the best ones, ranked and updated by events.
//!
//! The cache may be stale at any moment. It saves reads of the board; only the claim decides who gets a job.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{Event, EventKind, event::Subject};
use crate::job::{Job, JobKey, Rank};

/// Maximum number of candidates. Refilling costs a read of the whole board.
pub(crate) const CAPACITY: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) key: JobKey,
    pub(crate) rank: Rank,
    pub(crate) not_before: Option<DateTime<Utc>>,
    /// Whether the conductor read its posting and accepted its kind.
    pub(crate) is_verified: bool,
}

impl Candidate {
    pub(crate) fn unverified(job: &Job) -> Self {
        Self {
            key: job.key.clone(),
            rank: job.rank(),
            not_before: job.attempts.not_before,
            is_verified: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BacklogChange {
    Nothing,
    /// There may be more to claim.
    More,
    /// A job is gone or taken.
    Less,
    /// The backlog may be wrong: read the board again.
    Resync,
}

#[derive(Debug, Default)]
pub(crate) struct Backlog {
    capacity: usize,
    known: HashMap<JobKey, Candidate>,
    ready: BTreeSet<(Rank, JobKey)>,
    delayed: BTreeSet<(DateTime<Utc>, JobKey)>,
    /// Whether the board has candidates that did not fit.
    has_left_out: bool,
}

impl Backlog {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// Whether new candidates would hardly fit.
    pub(crate) fn is_full(&self) -> bool {
        self.has_left_out && self.ready.len() > self.capacity / 4
    }

    /// Whether most candidates are used up while the board has more.
    pub(crate) fn is_low(&self) -> bool {
        self.has_left_out && self.known.len() <= self.capacity / 4
    }

    pub(crate) fn has_none_ready(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns the number of candidates, and whether the board has more.
    pub(crate) fn count(&self) -> (usize, bool) {
        (self.known.len(), self.has_left_out)
    }

    pub(crate) fn knows(&self, key: &JobKey) -> bool {
        self.known.contains_key(key)
    }

    pub(crate) fn next_not_before(&self) -> Option<DateTime<Utc>> {
        self.delayed.first().map(|(time, _)| *time)
    }

    pub(crate) fn offer(&mut self, candidate: Candidate, now: DateTime<Utc>) {
        self.remove(&candidate.key);
        let key = candidate.key.clone();
        match candidate.not_before.filter(|time| *time > now) {
            Some(time) => _ = self.delayed.insert((time, key)),
            None => _ = self.ready.insert((candidate.rank, key)),
        }
        self.known.insert(candidate.key.clone(), candidate);
        if self.known.len() > self.capacity {
            self.leave_one_out();
        }
    }

    /// Drops one candidate: the latest delayed one, or else the lowest ranked.
    fn leave_one_out(&mut self) {
        self.has_left_out = true;
        let last = self.delayed.pop_last().map(|(_, key)| key);
        let worst = last.or_else(|| self.ready.pop_last().map(|(_, key)| key));
        if let Some(key) = worst {
            self.known.remove(&key);
        }
    }

    pub(crate) fn remove(&mut self, key: &JobKey) {
        let Some(candidate) = self.known.remove(key) else {
            return;
        };
        self.ready.remove(&(candidate.rank, key.clone()));
        if let Some(time) = candidate.not_before {
            self.delayed.remove(&(time, key.clone()));
        }
    }

    pub(crate) fn delay(&mut self, key: &JobKey, until: DateTime<Utc>, now: DateTime<Utc>) {
        if let Some(mut candidate) = self.known.get(key).cloned() {
            candidate.not_before = Some(until);
            self.offer(candidate, now);
        }
    }

    pub(crate) fn mark_verified(&mut self, key: &JobKey) {
        if let Some(candidate) = self.known.get_mut(key) {
            candidate.is_verified = true;
        }
    }

    pub(crate) fn release_delayed(&mut self, now: DateTime<Utc>) {
        while let Some((time, _)) = self.delayed.first()
            && *time <= now
            && let Some((_, key)) = self.delayed.pop_first()
        {
            if let Some(candidate) = self.known.get_mut(&key) {
                candidate.not_before = None;
                self.ready.insert((candidate.rank, key));
            }
        }
    }

    /// Returns the best claimable candidates, best first.
    ///
    /// Of the equally urgent ones, the first `skip` come last, so that competing conductors start with different
    /// jobs.
    pub(crate) fn best(&self, most: usize, skip: usize) -> Vec<Candidate> {
        let Some((first, _)) = self.ready.first() else {
            return Vec::new();
        };
        let urgent = first.priority();
        let equals = |(rank, _): &&(Rank, JobKey)| rank.priority() == urgent;
        // Skip no more than exist, so that the order stays fixed when few remain.
        let there = self.ready.iter().take_while(equals).take(skip + most);
        let skip = skip.min(there.count().saturating_sub(most));
        let (early, late) = (self.ready.iter().take(skip), self.ready.iter().skip(skip));
        late.take(most)
            .chain(early)
            .take(most)
            .filter_map(|(_, key)| self.known.get(key).cloned())
            .collect()
    }

    pub(crate) fn apply(&mut self, event: &Event, now: DateTime<Utc>) -> BacklogChange {
        match (event.kind, &event.subject) {
            (EventKind::Resync | EventKind::Paused | EventKind::Resumed, _) => {
                BacklogChange::Resync
            }
            (EventKind::Posted | EventKind::Restored, Some(subject)) => {
                self.offer(unverified(subject), now);
                BacklogChange::More
            }
            (EventKind::Abandoned | EventKind::Expired, Some(subject)) => {
                // An event without a delay must not shorten a local delay.
                if !self.waits(&subject.key, now) || subject.not_before.is_some() {
                    self.offer(unverified(subject), now);
                }
                BacklogChange::More
            }
            (
                EventKind::Claimed | EventKind::Consumed | EventKind::Trashed | EventKind::Purged,
                Some(subject),
            ) => {
                self.remove(&subject.key);
                BacklogChange::Less
            }
            (EventKind::Extended | EventKind::ConductorJoined | EventKind::ConductorLeft, _)
            | (_, None) => BacklogChange::Nothing,
        }
    }

    fn waits(&self, key: &JobKey, now: DateTime<Utc>) -> bool {
        let candidate = self.known.get(key);
        candidate.is_some_and(|candidate| candidate.not_before.is_some_and(|time| time > now))
    }
}

fn unverified(subject: &Subject) -> Candidate {
    Candidate {
        key: subject.key.clone(),
        rank: subject.rank,
        not_before: subject.not_before,
        is_verified: false,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::job::Priority;

    fn candidate(name: &str, priority: Priority, sequence: i64) -> Candidate {
        Candidate {
            key: JobKey::new(name),
            rank: Rank::new(priority, Some(sequence)),
            not_before: None,
            is_verified: true,
        }
    }

    fn normal(names: &[&str], capacity: usize) -> Backlog {
        let mut backlog = Backlog::new(capacity);
        for (sequence, name) in (1..).zip(names) {
            backlog.offer(candidate(name, Priority::Normal, sequence), Utc::now());
        }
        backlog
    }

    fn names(candidates: &[Candidate]) -> Vec<String> {
        candidates.iter().map(|it| it.key.to_string()).collect()
    }

    fn event(kind: EventKind, of: &Candidate) -> Event {
        Event {
            subject: Some(Subject {
                key: of.key.clone(),
                uuid: of.key.to_string(),
                name: String::new(),
                sequence: None,
                rank: of.rank,
                not_before: of.not_before,
            }),
            ..Event::now(kind)
        }
    }

    #[test]
    fn urgent_jobs_come_first_then_older_ones() {
        let mut backlog = normal(&["a", "b"], 10);
        backlog.offer(candidate("c", Priority::High, 3), Utc::now());
        assert_eq!(names(&backlog.best(10, 0)), ["c", "a", "b"]);
    }

    #[test]
    fn full_backlog_drops_the_worst_candidate() {
        let mut backlog = normal(&["a", "b", "c", "d"], 4);
        assert!(!backlog.is_full());
        backlog.offer(candidate("e", Priority::High, 5), Utc::now());
        assert!(backlog.is_full() && !backlog.is_low());
        assert_eq!(names(&backlog.best(10, 0)), ["e", "a", "b", "c"]);
        for name in ["e", "a", "b"] {
            backlog.remove(&JobKey::new(name));
        }
        assert!(backlog.is_low() && !backlog.is_full());
    }

    #[test]
    fn delayed_candidate_waits_for_its_time() {
        let now = Utc::now();
        let until = now + TimeDelta::seconds(5);
        let mut backlog = normal(&["a", "b"], 10);
        backlog.delay(&JobKey::new("a"), until, now);
        assert_eq!(names(&backlog.best(10, 0)), ["b"]);
        assert_eq!(backlog.next_not_before(), Some(until));
        backlog.release_delayed(now);
        assert_eq!(names(&backlog.best(10, 0)), ["b"]);
        backlog.release_delayed(until);
        assert_eq!(names(&backlog.best(10, 0)), ["a", "b"]);
        assert_eq!(backlog.next_not_before(), None);
    }

    #[test]
    fn abandonment_without_a_time_does_not_shorten_the_delay() {
        let now = Utc::now();
        let mut backlog = normal(&["a"], 10);
        backlog.delay(&JobKey::new("a"), now + TimeDelta::seconds(5), now);
        let abandoned = event(EventKind::Abandoned, &candidate("a", Priority::Normal, 1));
        backlog.apply(&abandoned, now);
        assert!(backlog.has_none_ready());
    }

    #[test]
    fn events_add_and_remove_candidates() {
        let now = Utc::now();
        let mut backlog = normal(&["a"], 10);
        let new = candidate("b", Priority::High, 2);
        assert_eq!(
            backlog.apply(&event(EventKind::Posted, &new), now),
            BacklogChange::More
        );
        let best = backlog.best(10, 0);
        assert_eq!(names(&best), ["b", "a"]);
        assert!(!best[0].is_verified && best[1].is_verified);
        assert_eq!(
            backlog.apply(&event(EventKind::Claimed, &new), now),
            BacklogChange::Less
        );
        assert_eq!(names(&backlog.best(10, 0)), ["a"]);
    }

    #[test]
    fn skipping_in_a_crowd_is_limited_to_equal_candidates() {
        let mut backlog = normal(&["a", "b", "c", "d", "e"], 10);
        assert_eq!(names(&backlog.best(2, 2)), ["c", "d"]);
        assert_eq!(names(&backlog.best(2, 100)), ["d", "e"]);
        assert_eq!(names(&backlog.best(5, 3)), ["a", "b", "c", "d", "e"]);
        backlog.offer(candidate("f", Priority::High, 6), Utc::now());
        assert_eq!(names(&backlog.best(2, 3)), ["f", "a"]);
    }
}
