//! Selects and sorts the visible rows.

use std::cmp::{Ordering, Reverse};

use super::row::{Place, Row};
use crate::job::Shelf;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// The order of claiming; in the trash, the latest first.
    #[default]
    Rank,
    Age,
    Name,
    Owner,
    Held,
    Expires,
    Tries,
}

impl Sort {
    pub(super) const ALL: [Self; 7] = [
        Self::Rank,
        Self::Age,
        Self::Name,
        Self::Owner,
        Self::Held,
        Self::Expires,
        Self::Tries,
    ];

    pub(super) fn name(self) -> &'static str {
        ["rank", "age", "name", "owner", "held", "expires", "tries"][self as usize]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    On(Shelf),
    /// The jobs of an owner; `None` stands for unreadable names.
    Of(Option<String>),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) which: Which,
    pub(super) sort: Sort,
    pub(super) is_reversed: bool,
}

impl Listing {
    pub(super) fn compare(&self, one: (&Place, &Row), other: (&Place, &Row)) -> Ordering {
        let order = compare(one, other, self.sort);
        match self.is_reversed {
            true => order.reverse(),
            false => order,
        }
    }

    pub(super) fn admits(&self, shelf: Shelf, row: &Row) -> bool {
        match &self.which {
            Which::On(wanted) => shelf == *wanted,
            Which::Of(owner) => {
                let claim = row.claim.as_ref();
                claim.is_some_and(|it| it.owner.as_ref().map(|it| it.to_string()) == *owner)
            }
            Which::Failed(signature) => {
                let mut failures = row.failures().iter();
                failures.any(|failed| *failed.signature == **signature)
            }
        }
    }
}

/// Compares two records; missing values come last.
fn compare(
    (place, one): (&Place, &Row),
    (other_place, other): (&Place, &Row),
    sort: Sort,
) -> Ordering {
    fn known<T: Ord>(one: Option<T>, other: Option<T>) -> Ordering {
        (one.is_none(), one).cmp(&(other.is_none(), other))
    }
    let (claim, others) = (one.claim.as_ref(), other.claim.as_ref());
    let by = match sort {
        Sort::Rank => Ordering::Equal,
        Sort::Age => known(one.created_on, other.created_on),
        Sort::Name => one.name.cmp(&other.name),
        Sort::Owner => known(
            claim.and_then(|it| it.owner.as_ref()),
            others.and_then(|it| it.owner.as_ref()),
        ),
        Sort::Held => known(
            claim.and_then(|it| it.since),
            others.and_then(|it| it.since),
        ),
        Sort::Expires => known(
            claim.and_then(|it| it.lapses_on),
            others.and_then(|it| it.lapses_on),
        ),
        Sort::Tries => other.attempts.cmp(&one.attempts),
    };
    let rank = |shelf: Shelf, row: &Row| {
        (
            shelf != Shelf::Board,
            row.is_malformed,
            Reverse(row.trashed_on()),
            Reverse(row.priority),
            row.sequence.unwrap_or(i64::MAX),
        )
    };
    by.then_with(|| rank(place.0, one).cmp(&rank(other_place.0, other)))
        .then_with(|| place.1.cmp(&other_place.1))
}
