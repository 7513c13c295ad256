//! The rows of a board, kept current by events, and their order.
//!
//! An event does not carry the whole job, so the job is looked up. An answer is discarded if an event touched the job
//! after the question.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::Range,
};

use chrono::{DateTime, Utc};
use indexmap::IndexMap;

use super::{
    act::DashEffect,
    listing::Listing,
    row::{DashRow, Interner, RowPlace},
};
use crate::{
    board::{Event, EventKind, filter::Filters},
    diagnosis::{Cause, Snapshot},
    job::{Entry, Location, Origin},
};

/// The time of the last failure before the lookup, if known.
type LastFailure = Option<Option<DateTime<Utc>>>;

/// Memory is committed on use only; growing out of a smaller buffer would leave a hole of its size.
const FIRST_CAPACITY: usize = 100_000;

/// Maximum number of rows to filter at each key.
const MAX_NARROWED: usize = 20_000;

#[derive(Debug, Default)]
pub(super) struct Picture {
    rows: IndexMap<RowPlace, DashRow>,
    interner: Interner,
    pub(super) snapshot: Snapshot,
    pub(super) filters: Filters,
    /// Changed by [`Self::list`] only.
    pub(super) listing: Listing,
    order: Vec<u32>,
    /// Whether many rows arrive together, to be sorted together.
    is_unsorted: bool,
    reading: u32,
    /// The jobs with events since the read began.
    touched: HashSet<RowPlace>,
    is_being_read: bool,
    wanted: HashMap<RowPlace, LastFailure>,
    /// The pending lookups without an event since.
    asked: HashMap<RowPlace, LastFailure>,
    /// The number of changes, and its value at the last sweep.
    pub(super) version: u64,
    swept: u64,
}

impl Picture {
    pub(super) fn new(filters: Filters, snapshot: Snapshot) -> Self {
        Self {
            rows: IndexMap::with_capacity(FIRST_CAPACITY),
            snapshot,
            filters,
            ..Self::default()
        }
    }

    pub(super) fn begin(&mut self) {
        self.reading += 1;
        self.touched.clear();
        self.is_being_read = true;
        self.wanted.clear();
        self.asked.clear();
    }

    pub(super) fn read(&mut self, location: Location, entries: &[Entry], now: DateTime<Utc>) {
        self.is_unsorted |= entries.len() > self.order.len() / 4;
        for entry in entries {
            let place = (location, entry.key().clone());
            if !self.touched.contains(&place) {
                self.put(place, entry, now);
            }
        }
    }

    pub(super) fn end(&mut self) {
        let (reading, touched) = (self.reading, std::mem::take(&mut self.touched));
        let before = self.rows.len();
        (self.rows).retain(|place, row| row.reading == reading || touched.contains(place));
        if self.rows.len() < before {
            self.version += 1;
            self.rebuild();
        }
        self.is_being_read = false;
        self.sweep();
    }

    pub(super) fn sweep(&mut self) {
        self.interner.sweep();
        self.swept = self.version;
    }

    pub(super) fn unswept(&self) -> u64 {
        self.version - self.swept
    }

    /// Returns the request for data that the event does not contain.
    pub(super) fn apply(&mut self, event: &Event) -> Option<DashEffect> {
        let Some(subject) = &event.subject else {
            return Some(match event.kind {
                EventKind::ConductorJoined
                | EventKind::ConductorLeft
                | EventKind::Paused
                | EventKind::Resumed => DashEffect::ReadSnapshot,
                _ => DashEffect::Read,
            });
        };
        let (from, to) = match event.kind {
            EventKind::Trashed => (Some(Location::Board), Some(Location::Trash)),
            EventKind::Consumed => (Some(Location::Board), None),
            EventKind::Purged => (Some(Location::Trash), None),
            EventKind::Restored => (Some(Location::Trash), Some(Location::Board)),
            _ => (None, Some(Location::Board)),
        };
        // A failure from before the posting is no news.
        let mut former = (event.kind == EventKind::Posted).then_some(Some(event.time));
        for location in [from, to].into_iter().flatten() {
            let place = (location, subject.key.clone());
            let awaited = [self.asked.remove(&place), self.wanted.remove(&place)];
            former = awaited.into_iter().flatten().fold(former, Option::or);
            if from == Some(location)
                && let Some(row) = self.remove(&place)
            {
                former = Some(row.failed_on());
            }
            if self.is_being_read {
                self.touched.insert(place);
            }
        }
        let Some(to) = to else {
            return Some(DashEffect::ReadHistory);
        };
        self.wanted.insert((to, subject.key.clone()), former);
        None
    }

    pub(super) fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    pub(super) fn ask(&mut self, most: usize) -> Vec<RowPlace> {
        let some: Vec<_> = self.wanted.keys().take(most).cloned().collect();
        for place in &some {
            let former = self.wanted.remove(place).flatten();
            self.asked.insert(place.clone(), former);
        }
        some
    }

    pub(super) fn ask_again(&mut self) {
        self.wanted.extend(self.asked.drain());
    }

    /// Looks up jobs that change without an event: claims in these lines that may have been renewed, or all that look
    /// expired, and jobs whose wait has ended.
    pub(super) fn look_up_due<'a>(
        &mut self,
        lines: Range<usize>,
        doubts: impl Iterator<Item = &'a RowPlace>,
        are_all: bool,
        now: DateTime<Utc>,
    ) {
        let lapses_on = |row: &DashRow| row.claim.as_ref().and_then(|it| it.lapses_on);
        let is_over = |row: &DashRow| lapses_on(row).is_some_and(|on| on <= now);
        let seen = lines.map_while(|at| self.at(at));
        let seen = seen.filter(|(_, row)| lapses_on(row).is_some());
        let pauses = &self.snapshot.pauses;
        let has_changed = |row: &DashRow| (are_all && is_over(row)) || row.is_due(pauses, now);
        let over = self.rows().filter(|(_, row)| has_changed(row));
        let places = seen
            .chain(over)
            .filter(|((location, _), _)| *location == Location::Board);
        let places = places.map(|(place, _)| place.clone());
        let places: Vec<_> = places.chain(doubts.cloned()).collect();
        for place in places {
            self.wanted.entry(place).or_default();
        }
    }

    /// Takes in the results; returns the number of new failures.
    pub(super) fn found(
        &mut self,
        found: Vec<(RowPlace, Option<Entry>)>,
        now: DateTime<Utc>,
    ) -> u64 {
        let mut failed = 0;
        for (place, entry) in found {
            let Some(former) = self.asked.remove(&place) else {
                continue;
            };
            let Some(entry) = entry else {
                self.remove(&place);
                continue;
            };
            let before = self.rows.get(&place).map(DashRow::failed_on).or(former);
            self.put(place.clone(), &entry, now);
            let after = self.rows.get(&place).and_then(DashRow::failed_on);
            failed += u64::from(before.is_some_and(|before| after > before));
        }
        failed
    }

    /// Whether the rows have the fields of these filters, and are few enough to filter at each key.
    pub(super) fn can_narrow(&self, filters: &Filters) -> bool {
        self.rows.len() <= MAX_NARROWED && !filters.needs_details()
    }

    /// Filters the rows by their fields, or hides all of them, until the next reading, which is exact.
    pub(super) fn filter(&mut self, filters: Filters, now: DateTime<Utc>) {
        let can_narrow = self.can_narrow(&filters);
        for (place, row) in &mut self.rows {
            row.is_admitted = can_narrow && filters.matches(&row.entry(place, now), now);
        }
        self.filters = filters;
        self.version += 1;
        self.rebuild();
    }

    pub(super) fn list(&mut self, change: impl FnOnce(&mut Listing)) {
        change(&mut self.listing);
        self.rebuild();
    }

    pub(super) fn judge_again(&mut self, judged: Vec<(RowPlace, Vec<Cause>)>) {
        let mut has_changed = false;
        for (place, causes) in judged {
            let causes = self.interner.causes(causes);
            if let Some(row) = self.rows.get_mut(&place).filter(|row| row.causes != causes) {
                (row.causes, has_changed) = (causes, true);
            }
        }
        if has_changed {
            self.rebuild();
        }
    }

    fn rebuild(&mut self) {
        let rows = self.rows.iter().zip(0..);
        let shown = rows.filter(|((place, row), _)| self.shows(place, row));
        self.order = shown.map(|(_, number)| number).collect();
        self.is_unsorted = true;
        self.sort();
    }

    pub(super) fn sort(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            let mut order = std::mem::take(&mut self.order);
            order.sort_by(|one, other| self.compare(*one, *other));
            self.order = order;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn at(&self, at: usize) -> Option<(&RowPlace, &DashRow)> {
        self.rows.get_index(*self.order.get(at)? as usize)
    }

    pub(super) fn position(&self, place: &RowPlace) -> Option<usize> {
        self.shown_at(number(self.rows.get_index_of(place)?))
    }

    pub(super) fn row(&self, place: &RowPlace) -> Option<&DashRow> {
        self.rows.get(place)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&RowPlace, &DashRow)> {
        self.rows.iter()
    }

    fn put(&mut self, place: RowPlace, entry: &Entry, now: DateTime<Utc>) {
        // Boards may share a trash.
        if matches!(entry.origin(), Origin::Beside(_)) {
            return;
        }
        self.snapshot.now = now;
        let causes = self.snapshot.judge(entry).causes().cloned().collect();
        let mut row = DashRow::of(entry, causes, &mut self.interner, now);
        row.is_admitted = self.filters.matches(entry, now);
        row.reading = self.reading;
        let at = match self.rows.get_full_mut(&place) {
            Some((at, _, old)) => {
                old.reading = row.reading;
                if *old == row {
                    return;
                }
                self.hide(number(at));
                self.rows[at] = row;
                at
            }
            None => self.rows.insert_full(place, row).0,
        };
        self.version += 1;
        let known = self.rows.get_index(at);
        let is_shown = known.is_some_and(|(place, row)| self.shows(place, row));
        let at = number(at);
        let is_before = |other: &u32| self.compare(*other, at) == Ordering::Less;
        match (is_shown, self.is_unsorted) {
            (false, _) => {}
            (true, true) => self.order.push(at),
            (true, false) => {
                let position = self.order.partition_point(is_before);
                self.order.insert(position, at);
            }
        }
    }

    fn remove(&mut self, place: &RowPlace) -> Option<DashRow> {
        let at = self.rows.get_index_of(place)?;
        self.hide(number(at));
        self.version += 1;
        // The last row takes its number.
        let moved = self.shown_at(number(self.rows.len() - 1));
        let row = self.rows.swap_remove_index(at).map(|(_, row)| row);
        if let Some(moved) = moved {
            self.order[moved] = number(at);
        }
        row
    }

    fn hide(&mut self, number: u32) {
        self.sort();
        if let Some(at) = self.shown_at(number) {
            self.order.remove(at);
        }
    }

    fn shown_at(&self, number: u32) -> Option<usize> {
        let order = |other: &u32| self.compare(*other, number);
        let found = self.order.binary_search_by(order).ok();
        found.filter(|at| self.order[*at] == number)
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        let row = |number: u32| self.rows.get_index(number as usize);
        match (row(one), row(other)) {
            (Some(one), Some(other)) => self.listing.compare(one, other),
            _ => Ordering::Equal,
        }
    }

    fn shows(&self, (location, _): &RowPlace, row: &DashRow) -> bool {
        row.is_admitted && self.listing.admits(*location, row)
    }
}

/// Four thousand million rows fit no board.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
