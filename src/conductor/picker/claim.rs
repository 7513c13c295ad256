//! Claims jobs, and forgets none that may have been won.

use std::sync::Arc;

use chrono::Utc;

use super::{Chance, Pick, Won, look::unvetted};
use crate::{
    board::{BoardError, ClaimRules, JobRef, Result},
    conductor::{clock::Boottime, outage::is_unknown, rooms::Rooms},
    job::{Aftermath, Authority, Entry, JobKey, Outcome, Settlement, Shelf},
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

/// A job that the board may have as ours though it is not in our hands.
pub(super) struct Doubt {
    key: JobKey,
    /// What giving it back says of the attempt.
    aftermath: Aftermath,
}

/// A job that may have been claimed without our hearing of it, so that nothing was begun.
fn unheard(key: JobKey) -> Doubt {
    Doubt {
        key,
        aftermath: Aftermath::Interrupted,
    }
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
            at_once: rooms.at_once(),
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
                    self.doubtful.extend(keys.into_iter().map(unheard));
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
                    // It may be that it must not wait for its turn: then there is to be room for
                    // it to begin at once.
                    if matches!(error, BoardError::Postponed { .. }) {
                        rooms.claim_none_ahead();
                    }
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
                self.doubtful.push(unheard(key));
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

    /// Whether the board has a job as ours that is not in our hands.
    ///
    /// A claim may have been won unheard; or it was given up when the board was silent for too
    /// long, and then the session by which it is held came back all the same.
    pub(super) fn is_left_over(&self, entry: &Entry) -> bool {
        let owner = entry.holding().and_then(|holding| holding.owner.as_ref());
        owner == Some(&self.by.owner) && !self.crew.hands.hold(entry.key())
    }

    /// Notes that a job was begun, and has been left to itself since.
    pub(super) fn doubt(&mut self, key: JobKey) {
        // It counts as if the claim had lapsed, as it was given up because it could have.
        let aftermath = Aftermath::None;
        self.doubtful.push(Doubt { key, aftermath });
    }

    /// Gives back what the board has as ours and is not in our hands.
    pub(super) async fn release_doubtful(&mut self) -> Result<()> {
        if self.doubtful.is_empty() {
            return Ok(());
        }
        let keys = self.doubtful.iter().map(|doubt| doubt.key.clone());
        let wanted: Vec<_> = keys.map(JobRef::Key).collect();
        let found = self.board.find(Shelf::Board, &wanted).await?;
        let found = self.doubtful.iter().zip(found);
        let mut ours: Vec<_> = found
            .filter_map(|(doubt, mut found)| Some((doubt.aftermath.clone(), found.pop()?)))
            .collect();
        ours.retain(|(_, entry)| self.is_left_over(entry));
        let abandon = |(aftermath, entry): &(Aftermath, Entry)| {
            Some(Settlement {
                key: entry.key().clone(),
                outcome: Outcome::Abandon(aftermath.clone()),
                authority: Authority::Claim(self.by.owner.clone(), entry.holding()?.fence.clone()?),
            })
        };
        let settlements: Vec<_> = ours.iter().filter_map(abandon).collect();
        if !settlements.is_empty() {
            // One that is refused is not ours any more, which is as good.
            self.board.settle(&settlements).await?;
        }
        self.doubtful.clear();
        for (_, entry) in ours {
            if let Entry::Job(job) = entry {
                self.backlog.offer(unvetted(&job), Utc::now());
            }
        }
        Ok(())
    }
}
