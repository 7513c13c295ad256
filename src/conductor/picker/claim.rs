//! Claims jobs, and forgets none that may have been won.

use std::sync::Arc;

use chrono::Utc;
use tokio::time::Instant;

use super::{Chance, Pick, Won};
use crate::{
    board::{BoardError, ClaimRules},
    conductor::{judgement::Against, passed_over::Such, slots::Slots},
    job::{Aftermath, Entry, JobKey, Owner},
    process::clock::Boottime,
};

/// How many of the first candidates are left to others in the largest crowd.
const WIDEST_SPREAD: usize = 256;

#[derive(Default)]
pub(super) struct ClaimedBatch {
    pub(super) won: Vec<Won>,
    /// What keeps the board from saying of each job whether it is ours.
    pub(super) trouble: Option<BoardError>,
}

impl ClaimedBatch {
    /// Nothing was won, for a reason that says nothing of the jobs.
    pub(super) fn none(trouble: BoardError) -> Self {
        Self {
            won: Vec::new(),
            trouble: Some(trouble),
        }
    }
}

impl Pick<'_> {
    pub(super) async fn claim(&mut self, chance: Chance, slots: &Arc<Slots>) -> ClaimedBatch {
        let Chance { free, keys } = chance;
        let rules = ClaimRules {
            is_attempt: true,
            at_once: slots.at_once(),
            respects_not_before: true,
        };
        let term = match self.lease_term.ask(self.board, &self.shared.reporter).await {
            Ok(term) => term,
            Err(error) => return ClaimedBatch::none(error),
        };
        let asked = Boottime::now();
        let answers = match self.board.claim(&keys, &self.by, free, rules).await {
            Ok(answers) => answers,
            Err(error) => return self.unanswered(&keys, error),
        };
        let heard = Boottime::now();
        // What they are kept by may have ended and begun anew in between, for another time.
        let later = self.lease_term.ask(self.board, &self.shared.reporter).await;
        let term = later.map_or(term, |later| term.min(later));
        let (mut batch, mut missed) = (ClaimedBatch::default(), 0);
        for (key, answer) in keys.into_iter().zip(answers) {
            match answer {
                Ok(claimed) => {
                    self.backlog.remove(&key);
                    self.fruitless = 0;
                    batch.won.push(Won {
                        claimed,
                        asked,
                        heard,
                        term,
                        slot: slots.take(),
                    });
                }
                Err(error) => {
                    // It may be that it must not wait for its turn: then there is to be room for
                    // it to begin at once.
                    if matches!(error, BoardError::Postponed { .. }) {
                        slots.claim_none_ahead();
                    }
                    missed += usize::from(matches!(error, BoardError::AlreadyClaimed { .. }));
                    batch.trouble = self.miss(key, error).or(batch.trouble);
                }
            }
        }
        // The more others are faster, the further apart we begin.
        self.spread = match missed {
            0 => self.spread / 2,
            missed => (self.spread * 2).max(missed * 4).min(WIDEST_SPREAD),
        };
        batch
    }

    /// Notes that nothing was heard of these claims, which may have been made all the same.
    fn unanswered(&mut self, keys: &[JobKey], error: BoardError) -> ClaimedBatch {
        let may_be_made = matches!(
            error,
            BoardError::Unknown { .. } | BoardError::Failed { .. }
        );
        if may_be_made {
            keys.iter().for_each(|key| self.let_slip(key));
        }
        ClaimedBatch::none(error)
    }

    /// Notes that a job was not won; returns an error that says nothing of the job.
    fn miss(&mut self, key: JobKey, error: BoardError) -> Option<BoardError> {
        match error {
            BoardError::Postponed { until } => self.backlog.postpone(&key, until, Utc::now()),
            // Some boards learn only after the claim that a record cannot be read.
            BoardError::Malformed { .. } | BoardError::Unfit { .. } => {
                let against = Against::Record(error.to_string());
                let (passed_over, reporter) = (&self.shared.passed_over, &self.shared.reporter);
                passed_over.heard(&key, &Such::at(&key), &against, reporter);
                self.let_slip(&key);
                self.backlog.remove(&key);
                self.unreadable.insert(key, against);
            }
            // The claim of which we did not hear was made after we had asked whether it was.
            BoardError::AlreadyClaimed { owner: Some(owner) } if owner == self.by.owner => {
                self.let_slip(&key);
                self.backlog.remove(&key);
            }
            BoardError::Unknown { .. }
            | BoardError::Unreachable { .. }
            | BoardError::Misdirected { .. }
            | BoardError::Denied { .. }
            | BoardError::Failed { .. } => {
                self.let_slip(&key);
                return Some(error);
            }
            _ => self.backlog.remove(&key),
        }
        None
    }

    /// Notes of a job that it may have been claimed without our hearing of it.
    fn let_slip(&mut self, key: &JobKey) {
        // Nothing was begun.
        self.shared.in_flight.let_slip(key, Aftermath::Interrupted);
        self.wary_until = Instant::now() + self.lease_term.wanted;
    }

    /// The claim may be ours if the request came late, after we had looked: the network may keep it for as
    /// long as it likes. What comes of it lapses or is told of.
    pub(super) fn heed_claim(&self, key: &JobKey, owner: Option<&Owner>) {
        let is_ours = owner == Some(&self.by.owner) && !self.shared.in_flight.may_have(key);
        if is_ours && Instant::now() < self.wary_until {
            self.shared.in_flight.let_slip(key, Aftermath::Interrupted);
        }
    }

    /// Whether the board has a job as ours that nobody has in his hands.
    pub(super) fn is_left_over(&self, entry: &Entry) -> bool {
        entry.is_owned_by(&self.by.owner) && !self.shared.in_flight.may_have(entry.key())
    }
}
