//! Claims jobs, and forgets none that may have been won.

use std::sync::Arc;

use chrono::Utc;

use super::{Chance, Pick, Won};
use crate::{
    board::{BoardError, ClaimRules, JobRef, Result},
    conductor::{clock::Boottime, outage::is_unknown, rooms::Rooms},
    job::{Aftermath, Authority, JobKey, Outcome, Settlement, Shelf},
};

/// How many of the first candidates are left to others in the largest crowd.
const WIDEST_SPREAD: usize = 256;

/// What came of asking for some jobs.
#[derive(Default)]
pub(super) struct Haul {
    pub(super) won: Vec<Won>,
    /// What keeps the board from saying of each job whether it is ours.
    pub(super) trouble: Option<BoardError>,
}

impl Haul {
    /// Nothing was won, for a reason that says nothing of the jobs.
    pub(super) fn none(trouble: BoardError) -> Self {
        Self {
            won: Vec::new(),
            trouble: Some(trouble),
        }
    }
}

impl Pick<'_> {
    /// Claims as many of these jobs as there is room for.
    pub(super) async fn claim(&mut self, chance: Chance, rooms: &Arc<Rooms>) -> Haul {
        let Chance { room, keys } = chance;
        let rules = ClaimRules {
            is_attempt: true,
            respects_not_before: true,
        };
        let term = match self.terms.ask(self.board, &self.crew.reporter).await {
            Ok(term) => term,
            Err(error) => return Haul::none(error),
        };
        let asked = Boottime::now();
        let answers = match self.board.claim(&keys, &self.by, room, rules).await {
            Ok(answers) => answers,
            Err(error) => {
                if is_unknown(&error) {
                    self.doubtful.extend(keys);
                }
                return Haul::none(error);
            }
        };
        // What they are kept by may have ended and begun anew in between, for another time.
        let later = self.terms.ask(self.board, &self.crew.reporter).await;
        let term = later.map_or(term, |later| term.min(later));
        let (mut haul, mut missed) = (Haul::default(), 0);
        for (key, answer) in keys.into_iter().zip(answers) {
            match answer {
                Ok(claimed) => {
                    self.backlog.remove(&key);
                    haul.won.push(Won {
                        claimed,
                        asked,
                        term,
                        room: rooms.take(),
                    });
                }
                Err(error) => {
                    missed += usize::from(matches!(error, BoardError::AlreadyClaimed { .. }));
                    haul.trouble = self.miss(key, error).or(haul.trouble);
                }
            }
        }
        // The more others are faster, the further apart we begin.
        self.spread = match missed {
            0 => self.spread / 2,
            missed => (self.spread * 2).max(missed * 4).min(WIDEST_SPREAD),
        };
        haul
    }

    /// Notes that a job was not won; returns an error that says nothing of the job.
    fn miss(&mut self, key: JobKey, error: BoardError) -> Option<BoardError> {
        match error {
            BoardError::Postponed { until } => self.backlog.postpone(&key, until, Utc::now()),
            BoardError::Malformed { .. } => {
                self.backlog.remove(&key);
                self.unreadable.insert(key);
            }
            BoardError::Unknown { .. } => {
                self.doubtful.push(key);
                return Some(error);
            }
            BoardError::Unreachable { .. }
            | BoardError::Misdirected { .. }
            | BoardError::Denied { .. }
            | BoardError::Failed { .. } => return Some(error),
            _ => self.backlog.remove(&key),
        }
        None
    }

    /// Gives back what we turn out to have claimed without hearing of it.
    pub(super) async fn release_doubtful(&mut self) -> Result<()> {
        if self.doubtful.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = self.doubtful.iter().cloned().map(JobRef::Key).collect();
        let found = self.board.find(Shelf::Board, &wanted).await?;
        let ours = found.into_iter().flatten().filter_map(|entry| {
            let holding = entry.holding()?;
            let is_ours = holding.owner.as_ref() == Some(&self.by.owner);
            let is_lost = is_ours && !self.crew.hands.hold(entry.key());
            let fence = holding.fence.clone().filter(|_| is_lost)?;
            Some(Settlement {
                key: entry.key().clone(),
                outcome: Outcome::Abandon(Aftermath::Interrupted),
                authority: Authority::Claim(self.by.owner.clone(), fence),
            })
        });
        let ours: Vec<_> = ours.collect();
        if !ours.is_empty() {
            // One that is refused is not ours any more, which is as good.
            self.board.settle(&ours).await?;
        }
        self.doubtful.clear();
        Ok(())
    }
}
