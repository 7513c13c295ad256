//! Sorts a listing of the board into candidates and skipped jobs.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    board::{
        backlog::{Backlog, CAPACITY, Candidate},
        filter::Filters,
    },
    conductor::{
        admission::{Rejection, admit_now, is_meant},
        policy::ExecutionPolicy,
        skipped::{SkipReasons, SkippedJob},
    },
    job::{Entry, JobKey, Pauses},
    process::clock,
};

pub(super) struct SortedListing<'a> {
    backlog: &'a mut Backlog,
    filters: &'a Filters,
    pauses: &'a Pauses,
    policy: Arc<ExecutionPolicy>,
    /// Records that were unreadable before. The listing forgets deleted ones.
    before: HashMap<JobKey, Rejection>,
    pub(super) unreadable: HashMap<JobKey, Rejection>,
    pub(super) reasons: SkipReasons,
    taken: usize,
    has_enough: bool,
    pub(super) is_whole: bool,
    now: DateTime<Utc>,
}

impl<'a> SortedListing<'a> {
    pub(super) fn new(
        backlog: &'a mut Backlog,
        filters: &'a Filters,
        pauses: &'a Pauses,
        policy: Arc<ExecutionPolicy>,
        unreadable: HashMap<JobKey, Rejection>,
    ) -> Self {
        Self {
            backlog,
            filters,
            pauses,
            policy,
            before: unreadable,
            unreadable: HashMap::new(),
            reasons: SkipReasons::default(),
            taken: 0,
            has_enough: false,
            is_whole: true,
            now: clock::wall(),
        }
    }

    /// Takes an unclaimed record. Breaks once the backlog has no room for lower ranks.
    pub(super) fn see(&mut self, entry: Entry) -> ControlFlow<()> {
        // Some boards list all records, unordered.
        self.is_whole |= self.has_enough;
        if let Entry::Job(job) = entry
            && let Some(job) = is_meant(self.filters, *job, self.now)
        {
            if let Some(against) = self.before.remove(&job.key) {
                self.reasons.add(&SkippedJob::of(&job), &against);
                self.unreadable.insert(job.key, against);
            } else {
                match admit_now(&self.policy, self.pauses, &job) {
                    Ok(()) => self.take(Candidate::unverified(&job)),
                    Err(against) => self.reasons.add(&SkippedJob::of(&job), &against),
                }
            }
        }
        match self.taken > CAPACITY {
            false => ControlFlow::Continue(()),
            true => {
                self.is_whole = self.has_enough;
                self.has_enough = true;
                ControlFlow::Break(())
            }
        }
    }

    fn take(&mut self, candidate: Candidate) {
        self.taken += 1;
        let candidate = Candidate {
            is_verified: true,
            ..candidate
        };
        self.backlog.offer(candidate, self.now);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job::Job;

    fn entry(sequence: usize, details: serde_json::Value) -> Entry {
        Entry::Job(Box::new(Job {
            key: JobKey::new(sequence.to_string()),
            sequence: i64::try_from(sequence).ok(),
            details: Some(details.into()),
            ..Job::named("a")
        }))
    }

    /// Lists jobs with these numbers, in this order; a ranked listing may end early.
    fn show(backlog: &mut Backlog, numbers: impl Iterator<Item = usize>, is_ranked: bool) -> bool {
        let policy = ExecutionPolicy::unrestricted();
        let (filters, pauses) = (Filters::default(), Pauses::default());
        let unreadable = HashMap::new();
        let mut listing =
            SortedListing::new(backlog, &filters, &pauses, Arc::new(policy), unreadable);
        for number in numbers {
            let details = match number % 2 {
                0 => json!({"command": ["true"]}),
                _ => json!({}),
            };
            if listing.see(entry(number, details)).is_break() && is_ranked {
                break;
            }
        }
        listing.is_whole
    }

    #[test]
    fn best_jobs_are_kept_in_any_order() {
        let mut best = Vec::new();
        for is_ranked in [true, false] {
            let mut backlog = Backlog::new(CAPACITY);
            let numbers = 0..CAPACITY * 3;
            let is_whole = match is_ranked {
                true => show(&mut backlog, numbers, true),
                false => show(&mut backlog, numbers.rev(), false),
            };
            assert_eq!(is_whole, !is_ranked);
            assert!(backlog.is_full());
            assert_eq!(backlog.count(), (CAPACITY, true));
            best.push(backlog.best(CAPACITY, 0));
        }
        assert_eq!(best[0], best[1]);
        assert_eq!(
            best[0][CAPACITY - 1].key,
            JobKey::new(((CAPACITY - 1) * 2).to_string())
        );
    }
}
