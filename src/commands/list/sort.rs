//! The order of a listing.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};

use crate::{
    board::{
        PeerOrder,
        filter::{FieldOrder, FieldPath, SortKey},
    },
    job::{Entry, Job},
};

#[derive(Debug, Clone)]
pub(super) enum ListOrder {
    Rank,
    /// The order in which TaskFlow reads this kind of board.
    Taskflow,
    /// The order of arrival.
    None,
    Field(FieldOrder),
}

impl ListOrder {
    pub(super) fn names() -> Vec<&'static str> {
        let own = ["rank", "taskflow", "none"];
        own.into_iter().chain(FieldPath::names()).collect()
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "rank" => Self::Rank,
            "taskflow" => Self::Taskflow,
            "none" => Self::None,
            field => Self::Field(
                FieldOrder::read(field)
                    .map_err(|problem| format!("{problem}; also rank, taskflow and none"))?,
            ),
        })
    }

    pub(super) fn is_native(&self) -> bool {
        matches!(self, Self::Rank | Self::None)
    }

    pub(super) fn needs_details(&self) -> bool {
        matches!(self, Self::Field(order) if order.needs_details())
    }

    pub(super) fn key(&self, entry: &Entry, now: DateTime<Utc>) -> Option<SortKey> {
        match self {
            Self::Field(order) => order.key(entry, now),
            Self::Rank | Self::Taskflow | Self::None => None,
        }
    }

    pub(super) fn sort(&self, found: &mut [(Option<SortKey>, Entry)], peers: Option<PeerOrder>) {
        found.sort_by(|(key, one), (other_key, other)| {
            let order = match (self, one, other) {
                (Self::Field(order), ..) => order.compare(key, other_key),
                (Self::Taskflow, Entry::Job(one), Entry::Job(other)) => {
                    as_peers_do(one, other, peers)
                }
                _ => Ordering::Equal,
            };
            let rank = |entry: &Entry| (entry.job().is_none(), entry.job().map(Job::rank));
            order.then_with(|| rank(one).cmp(&rank(other)))
        });
    }
}

fn as_peers_do(one: &Job, other: &Job, peers: Option<PeerOrder>) -> Ordering {
    let place = |job: &Job| (job.priority, job.sequence);
    let order = place(one).cmp(&place(other));
    match peers {
        Some(PeerOrder::NewestOfTheMostUrgent) => order.reverse(),
        Some(PeerOrder::OldestOfTheLeastUrgent) | None => order,
    }
}
