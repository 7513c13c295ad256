//! A minimal model of a job: posted, claimed, released, trashed, gone.

use std::{sync::Arc, time::Duration};

use super::{Act, Answer, By, How, SLACK, Sight, What};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) on_board: Option<Free>,
    pub(super) is_in_trash: bool,
    /// Of the last claim.
    fence: u64,
    /// Claims ended by an operator. Their commands learn of it later.
    forced: Vec<u64>,
}

/// Whether a job on the board can be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Free {
    Yes,
    No(Holding),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    pub(super) owner: Arc<str>,
    pub(super) fence: Option<u64>,
    /// The earliest time of its expiry.
    pub(super) lapses: Option<Duration>,
}

impl Job {
    /// Returns the possible states after an act at a time, with their earliest times; empty if the act or its answer
    /// is impossible.
    pub(super) fn after(&self, act: &Act, at: Duration) -> Vec<(Self, Duration)> {
        let next = self.then(act, at);
        // An answer that is possible while claimed is possible with a later expiry too.
        match self.holding().and_then(|holding| holding.lapses) {
            Some(lapses) if next.is_empty() => {
                let at = at.max(lapses);
                let next = self.but(Some(Free::Yes)).then(act, at);
                next.into_iter().map(|next| (next, at)).collect()
            }
            _ => next.into_iter().map(|next| (next, at)).collect(),
        }
    }

    /// Returns the state without times, and the expiry of its claim.
    pub(super) fn timeless(mut self) -> (Self, Duration) {
        let lapses = match &mut self.on_board {
            Some(Free::No(holding)) => holding.lapses.replace(Duration::ZERO),
            Some(Free::Yes) | None => None,
        };
        (self, lapses.unwrap_or(Duration::MAX))
    }

    /// Forgets forced claims whose commands cannot report any more.
    pub(super) fn forget(&mut self, may_tell: impl Fn(u64) -> bool) {
        self.forced.retain(|fence| may_tell(*fence));
        self.forced.sort_unstable();
        self.forced.dedup();
    }

    fn then(&self, act: &Act, at: Duration) -> Vec<Self> {
        let is_there = self.on_board.is_some();
        let is_right = match (&act.answer, &act.what) {
            (Answer::Done | Answer::Unknown, what) => return self.done(what, at),
            (Answer::NoSuchJob, What::Restore | What::Purge) => !self.is_in_trash,
            (Answer::NoSuchJob, What::Retry) => !is_there || !self.is_in_trash,
            (Answer::NoSuchJob, _) => !is_there,
            // Trashed by force: its former owner may still run it.
            (Answer::Claimed(None), What::Retry | What::Restore) => is_there || self.is_in_trash,
            (Answer::Exists | Answer::Claimed(None), _) => is_there,
            (Answer::Claimed(Some(owner)), _) => self.is_held_by(owner),
            (Answer::NotTheirs, What::End(By::Name(owner), _) | What::Extend { owner, .. }) => {
                !self.is_held_by(owner)
            }
            // There may be unrecorded claims.
            (Answer::NotTheirs, _) => true,
        };
        is_right.then(|| self.clone()).into_iter().collect()
    }

    fn done(&self, what: &What, at: Duration) -> Vec<Self> {
        let only = |is_right: bool, next: Self| is_right.then_some(next).into_iter().collect();
        let is_there = self.on_board.is_some();
        let lapses = |term: Duration| (at + term).saturating_sub(SLACK);
        match what {
            What::Post => only(!is_there, self.but(Some(Free::Yes))),
            What::Claim { owner, fence, term } => {
                let is_right = self.on_board == Some(Free::Yes);
                let is_newer = fence.is_none_or(|fence| fence > self.fence);
                let mut next = self.but(Some(Free::No(Holding {
                    owner: Arc::clone(owner),
                    fence: *fence,
                    lapses: term.map(lapses),
                })));
                next.fence = fence.unwrap_or(self.fence);
                only(is_right && is_newer, next)
            }
            What::Extend { owner, term } => match self.holding() {
                Some(holding) if holding.owner == *owner => {
                    vec![self.but(Some(Free::No(Holding {
                        lapses: Some(lapses(*term)),
                        ..holding.clone()
                    })))]
                }
                _ => Vec::new(),
            },
            What::End(by, how) => self.end(by, *how),
            What::Restore => only(self.is_in_trash && !is_there, self.restored()),
            What::Retry if is_there => vec![self.clone()],
            What::Retry => only(self.is_in_trash, self.restored()),
            What::Purge => {
                let mut next = self.clone();
                next.is_in_trash = false;
                only(self.is_in_trash, next)
            }
            What::Runs(fence) => {
                let holds = |it: &Holding| it.fence == Some(*fence);
                let holds = self.holding().is_some_and(holds) || self.forced.contains(fence);
                only(holds, self.clone())
            }
            What::Seen(sight) => only(self.looks(sight), self.clone()),
        }
    }

    fn end(&self, by: &By, how: How) -> Vec<Self> {
        let mut ended = self.clone();
        let is_right = match by {
            By::Name(owner) => self.is_held_by(owner),
            By::Claim(fence) => self.holding().is_some_and(|it| it.fence == Some(*fence)),
            By::Force => {
                let fence = self.holding().and_then(|holding| holding.fence);
                ended.forced.extend(fence);
                self.on_board.is_some()
            }
        };
        let hows = match how {
            _ if !is_right => &[][..],
            How::Any => &[How::Abandon, How::Consume, How::Trash],
            _ => std::slice::from_ref(&how),
        };
        let become_of = |how: &How| match how {
            How::Abandon => ended.but(Some(Free::Yes)),
            How::Consume | How::Any => ended.but(None),
            How::Trash => Self {
                is_in_trash: true,
                ..ended.but(None)
            },
        };
        hows.iter().map(become_of).collect()
    }

    fn looks(&self, sight: &Sight) -> bool {
        match sight {
            Sight::Gone => self.on_board.is_none(),
            Sight::OnBoard => self.on_board.is_some(),
            Sight::Held(owner) => self.is_held_by(owner),
            Sight::InTrash => self.is_in_trash,
            Sight::NotInTrash => !self.is_in_trash,
        }
    }

    fn restored(&self) -> Self {
        Self {
            is_in_trash: false,
            ..self.but(Some(Free::Yes))
        }
    }

    fn but(&self, on_board: Option<Free>) -> Self {
        Self {
            on_board,
            ..self.clone()
        }
    }

    fn holding(&self) -> Option<&Holding> {
        match &self.on_board {
            Some(Free::No(holding)) => Some(holding),
            Some(Free::Yes) | None => None,
        }
    }

    fn is_held_by(&self, owner: &Arc<str>) -> bool {
        self.holding().is_some_and(|it| it.owner == *owner)
    }
}
