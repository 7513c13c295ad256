//! Claims jobs, and remembers every claim that may have succeeded.

use std::sync::Arc;

use super::{Picker, WonClaim};
use crate::{
    board::{BoardError, ClaimRules},
    conductor::{admission::Rejection, skipped::SkippedJob, slots::Slots},
    job::{Aftermath, Entry, JobKey, Owner},
    process::clock::{self, Boottime},
};

/// The most top candidates that a conductor skips when many compete.
const MAX_SPREAD: usize = 256;

/// Maximum number of unanswered claims to remember.
const MAX_UNANSWERED: usize = 10_000;

/// The claims that succeeded, and an error that is unrelated to the jobs.
type ClaimedBatch = (Vec<WonClaim>, Option<BoardError>);

impl Picker<'_> {
    /// Claims up to `free` of these jobs.
    pub(super) async fn claim(
        &mut self,
        free: usize,
        keys: Vec<JobKey>,
        slots: &Arc<Slots>,
    ) -> ClaimedBatch {
        let rules = ClaimRules {
            is_attempt: true,
            starting: slots.starting(),
            respects_delay: true,
        };
        let term = match self.lease_term.ask(self.shared).await {
            Ok(term) => term,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let asked = Boottime::now();
        let answers = match self.shared.board.claim(&keys, &self.by, free, rules).await {
            Ok(answers) => answers,
            Err(error) => return self.unanswered(&keys, error),
        };
        let heard = Boottime::now();
        // The server may have restarted with another lease term.
        let later = self.lease_term.ask(self.shared).await;
        let term = later.map_or(term, |later| term.min(later));
        let (mut won, mut failure, mut missed) = (Vec::new(), None, 0);
        for (key, answer) in keys.into_iter().zip(answers) {
            match answer {
                Ok(claimed) => {
                    self.backlog.remove(&key);
                    self.fruitless = 0;
                    won.push(WonClaim {
                        claimed,
                        asked,
                        heard,
                        term,
                        slot: slots.take(),
                    });
                }
                Err(error) => {
                    // The job may have to start immediately, so keep a slot free for it.
                    if matches!(error, BoardError::Delayed { .. }) {
                        slots.stop_claiming_ahead();
                    }
                    missed += usize::from(matches!(error, BoardError::AlreadyClaimed { .. }));
                    failure = self.record_failed_claim(key, error).or(failure);
                }
            }
        }
        // The more claims other conductors win, the wider we spread.
        self.spread = match missed {
            0 => self.spread / 2,
            missed => (self.spread * 2).max(missed * 4).min(MAX_SPREAD),
        };
        (won, failure)
    }

    fn unanswered(&mut self, keys: &[JobKey], error: BoardError) -> ClaimedBatch {
        if error.may_have_taken_effect() {
            keys.iter().for_each(|key| self.mark_unreleased(key));
        }
        (Vec::new(), Some(error))
    }

    /// Records a failed claim. Returns an error that is unrelated to the job.
    fn record_failed_claim(&mut self, key: JobKey, error: BoardError) -> Option<BoardError> {
        match error {
            BoardError::Delayed { until } => self.backlog.delay(&key, until, clock::wall()),
            // Some boards detect an unreadable record only after the claim.
            BoardError::Malformed { .. } | BoardError::Unclaimable { .. } => {
                let against = Rejection::Record(error.to_string());
                (self.shared.status.skipped).update(&key, &SkippedJob::at(&key), &against);
                self.mark_unreleased(&key);
                self.backlog.remove(&key);
                self.unreadable.insert(key, against);
            }
            // The unanswered claim succeeded after we had checked it.
            BoardError::AlreadyClaimed { owner: Some(owner) } if owner == self.by.owner => {
                self.mark_unreleased(&key);
                self.backlog.remove(&key);
            }
            error if error.is_about_the_board() => {
                self.mark_unreleased(&key);
                return Some(error);
            }
            _ => self.backlog.remove(&key),
        }
        None
    }

    fn mark_unreleased(&mut self, key: &JobKey) {
        if planted!(NoticesNoLateClaim) {
            return;
        }
        // No attempt has started.
        self.shared
            .in_flight
            .mark_unreleased(key, Aftermath::Interrupted);
        if self.unanswered.len() >= MAX_UNANSWERED {
            self.unanswered.pop_first();
        }
        self.unanswered.insert(key.clone());
    }

    /// An unanswered request may still claim the job after our check: the network may delay it for any time.
    pub(super) fn check_claim_event(&self, key: &JobKey, owner: Option<&Owner>) {
        let is_ours =
            owner.is_some_and(|it| it.is(&self.by.owner)) && !planted!(NoticesNoLateClaim);
        if is_ours && self.unanswered.contains(key) {
            self.check_unanswered([key]);
        }
    }

    pub(super) fn check_unanswered<'k>(&self, keys: impl IntoIterator<Item = &'k JobKey>) {
        let in_flight = &self.shared.in_flight;
        let keys = keys.into_iter().filter(|key| !in_flight.may_have(key));
        keys.for_each(|key| in_flight.mark_unreleased(key, Aftermath::Interrupted));
    }

    /// Whether the board lists a job as ours although no attempt holds it.
    pub(super) fn is_left_over(&self, entry: &Entry) -> bool {
        entry.is_owned_by(&self.by.owner)
            && !self.shared.in_flight.may_have(entry.key())
            && !planted!(NoticesNoLateClaim)
    }
}
