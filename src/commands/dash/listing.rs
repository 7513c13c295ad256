//! Selects and sorts the visible rows.

use std::cmp::{Ordering, Reverse};

use serde::Serialize;

use super::row::{DashRow, RowPlace};
use crate::{diagnosis::ProblemSelector, job::Location, names::named, problem::Code};

named! {
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub(crate) enum RowOrder ("order", str::eq) {
        /// Problems, the worst first; then running jobs; then the order of claiming, delayed jobs last.
        #[default]
        Problems => "problems",
        /// The order of claiming; in the trash, the latest first.
        Rank => "rank",
        Age => "age",
        Name => "name",
        Owner => "owner",
        Held => "held",
        Expires => "expires",
        Tries => "tries",
    }
}

#[derive(Debug, Clone)]
pub(super) enum ListingGroup {
    On(Location),
    Of(Option<String>),
    Problem(Box<ProblemSelector>, String),
    Reason(String),
}

impl Default for ListingGroup {
    fn default() -> Self {
        Self::On(Location::Board)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    pub(super) which: ListingGroup,
    pub(super) sort: RowOrder,
    pub(super) is_reversed: bool,
}

impl Listing {
    pub(super) fn compare(
        &self,
        (place, one): (&RowPlace, &DashRow),
        (other_place, other): (&RowPlace, &DashRow),
    ) -> Ordering {
        let rows = [one, other];
        let order = match self.sort {
            RowOrder::Problems => {
                let order = |row: &DashRow| {
                    let waits = matches!(row.verdict(), Some(Code::BackingOff | Code::Paused));
                    (Reverse(row.severity()), row.claim.is_none(), waits)
                };
                order(one).cmp(&order(other))
            }
            RowOrder::Rank => Ordering::Equal,
            RowOrder::Age => by(rows, |row| row.created_on),
            RowOrder::Name => one.name.cmp(&other.name),
            RowOrder::Owner => by(rows, |row| row.claim.as_ref()?.owner.as_ref()),
            RowOrder::Held => by(rows, |row| row.claim.as_ref()?.since),
            RowOrder::Expires => by(rows, |row| row.claim.as_ref()?.lapses_on),
            RowOrder::Tries => other.attempts.cmp(&one.attempts),
        };
        let rank = |location: Location, row: &DashRow| {
            (
                location != Location::Board,
                row.is_malformed,
                Reverse(row.trashed_on()),
                Reverse(row.priority),
                row.sequence.unwrap_or(i64::MAX),
            )
        };
        let order = order
            .then_with(|| rank(place.0, one).cmp(&rank(other_place.0, other)))
            .then_with(|| place.1.cmp(&other_place.1));
        match self.is_reversed {
            true => order.reverse(),
            false => order,
        }
    }

    pub(super) fn admits(&self, location: Location, row: &DashRow) -> bool {
        match &self.which {
            ListingGroup::On(wanted) => location == *wanted,
            ListingGroup::Of(owner) => {
                let claim = row.claim.as_ref();
                claim.is_some_and(|it| it.owner.as_ref().map(|it| it.to_string()) == *owner)
            }
            ListingGroup::Problem(selector, _) => row.causes.iter().any(|it| selector.fits(it)),
            ListingGroup::Reason(reason) => location == Location::Trash && row.group() == reason,
        }
    }
}

/// Orders rows without the value last.
fn by<'a, T: Ord>(rows: [&'a DashRow; 2], value: impl Fn(&'a DashRow) -> Option<T>) -> Ordering {
    let [one, other] = rows.map(value).map(|it| (it.is_none(), it));
    one.cmp(&other)
}
