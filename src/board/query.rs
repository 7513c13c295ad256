//! The queries of listings.

use crate::job::Location;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) location: Location,
    pub(crate) which: Which,
    pub(crate) order: Order,
    pub(crate) detail: Detail,
}

impl Query {
    pub(crate) fn all(location: Location, detail: Detail) -> Self {
        Self {
            location,
            which: Which::All,
            order: Order::Any,
            detail,
        }
    }

    /// The unclaimed records of the board, the best first.
    pub(crate) fn unclaimed(detail: Detail) -> Self {
        Self {
            location: Location::Board,
            which: Which::Unclaimed,
            order: Order::Rank,
            detail,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Unclaimed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The storage order of the server.
    Any,
    Rank,
    Posted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All but the details, which may be large.
    Brief,
    Whole,
    /// Everything, and the posting as stored, however large.
    Stored,
}

impl Detail {
    pub(crate) fn is_whole(self) -> bool {
        self != Self::Brief
    }
}
