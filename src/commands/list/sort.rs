//! The orders in which jobs are listed.

use std::cmp::Ordering;

use crate::{
    board::PeerOrder,
    job::{Entry, Job},
};

/// The order of a listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sort {
    #[default]
    Rank,
    Age,
    Name,
    Owner,
    /// As TaskFlow's own readers walk this kind of board
    Taskflow,
    None,
}

impl Sort {
    /// Whether a board hands its records out in this order by itself.
    pub(super) fn is_native(self) -> bool {
        matches!(self, Self::Rank | Self::None)
    }

    /// Compares two records; those that cannot be read come last.
    pub(super) fn compare(self, one: &Entry, other: &Entry, peers: Option<PeerOrder>) -> Ordering {
        let (Entry::Job(one), Entry::Job(other)) = (one, other) else {
            return one.job().is_none().cmp(&other.job().is_none());
        };
        let by_rank = || one.rank().cmp(&other.rank());
        match self {
            Self::Age => one.created_on.cmp(&other.created_on).then_with(by_rank),
            Self::Name => one.name.cmp(&other.name).then_with(by_rank),
            Self::Owner => by_owner(one, other).then_with(by_rank),
            Self::Taskflow => as_peers_do(one, other, peers),
            Self::Rank | Self::None => by_rank(),
        }
    }
}

/// Compares jobs as TaskFlow's readers of such a board do.
fn as_peers_do(one: &Job, other: &Job, peers: Option<PeerOrder>) -> Ordering {
    let place = |job: &Job| (job.priority, job.sequence);
    let order = place(one).cmp(&place(other));
    match peers {
        Some(PeerOrder::NewestOfTheMostUrgent) => order.reverse(),
        Some(PeerOrder::OldestOfTheLeastUrgent) | None => order,
    }
}

/// Puts jobs that nobody has behind those that somebody has.
fn by_owner(one: &Job, other: &Job) -> Ordering {
    (one.owner().is_none(), one.owner()).cmp(&(other.owner().is_none(), other.owner()))
}
