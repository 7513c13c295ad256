//! The picture of a board: its rows, kept current by what is heard, and the order in which they are
//! shown.
//!
//! What an event leaves of its job is looked up, as it cannot say all of it; so what is shown is what
//! the board has. What was asked for before something happened to a job is no answer any more.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use chrono::{DateTime, Utc};

use super::{
    lens::{Lens, Sort, Which},
    row::{Row, Shared},
};
use crate::{
    board::{Event, EventKind, filter::Filters},
    job::{Entry, JobKey, Origin, Shelf},
};

/// What refers to a row.
pub(super) type Place = (Shelf, JobKey);

/// What has to be done about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heeded {
    Known,
    /// A job has left the board for good.
    Ended,
    Conductors,
    Pauses,
    /// Something was missed.
    Read,
}

/// All that is known of a board's records.
#[derive(Debug)]
pub(super) struct Picture {
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
    board: HashMap<Arc<str>, u32>,
    trash: HashMap<Arc<str>, u32>,
    shared: Shared,
    pub(super) filters: Filters,
    lens: Lens,
    order: Vec<u32>,
    /// Whether many rows come at once, which are put in order together.
    is_unsorted: bool,
    reading: u32,
    /// What has happened to since it began to be read.
    touched: HashSet<Place>,
    is_being_read: bool,
    /// What is to be looked up.
    pub(super) wanted: HashSet<Place>,
    /// What is being looked up, and has not happened to since.
    asked: HashSet<Place>,
    /// Counts the changes, and how many there were when it was swept.
    pub(super) version: u64,
    swept: u64,
}

impl Picture {
    pub(super) fn new(filters: Filters) -> Self {
        Self {
            rows: Vec::new(),
            free: Vec::new(),
            board: HashMap::new(),
            trash: HashMap::new(),
            shared: Shared::default(),
            filters,
            lens: Lens {
                which: Which::On(Shelf::Board),
                sort: Sort::Rank,
                is_reversed: false,
            },
            order: Vec::new(),
            is_unsorted: false,
            reading: 0,
            touched: HashSet::new(),
            is_being_read: false,
            wanted: HashSet::new(),
            asked: HashSet::new(),
            version: 0,
            swept: 0,
        }
    }

    /// Begins to read the board; what is not found by the end of it is gone.
    pub(super) fn begin(&mut self) {
        self.reading += 1;
        self.touched.clear();
        self.is_being_read = true;
        self.wanted.clear();
        self.asked.clear();
    }

    /// Takes records as they are read.
    pub(super) fn read(&mut self, shelf: Shelf, entries: &[Entry], now: DateTime<Utc>) {
        self.is_unsorted |= entries.len() > self.order.len() / 4;
        for entry in entries {
            let place = (shelf, entry.key().clone());
            if !self.touched.contains(&place) {
                self.put(shelf, entry, now);
            }
        }
    }

    /// Ends the reading.
    pub(super) fn end(&mut self) {
        let gone = self.rows.iter().flatten().filter(|row| {
            let place = (row.shelf, JobKey::new(&*row.key));
            row.reading != self.reading && !self.touched.contains(&place)
        });
        let gone: Vec<_> = gone.map(|row| (row.shelf, Arc::clone(&row.key))).collect();
        for (shelf, key) in gone {
            self.remove(shelf, &key);
        }
        self.is_being_read = false;
        self.touched.clear();
        self.sweep();
    }

    /// Forgets from time to time what no row uses any more.
    pub(super) fn sweep(&mut self) {
        self.shared.sweep();
        self.swept = self.version;
    }

    /// Returns how many changes there were since that was done.
    pub(super) fn unswept(&self) -> u64 {
        self.version - self.swept
    }

    /// Brings it up to date with what happened.
    pub(super) fn heed(&mut self, event: &Event) -> Heeded {
        let Some(subject) = &event.subject else {
            return match event.kind {
                EventKind::ConductorJoined | EventKind::ConductorLeft => Heeded::Conductors,
                EventKind::Paused | EventKind::Resumed => Heeded::Pauses,
                _ => Heeded::Read,
            };
        };
        let key = &subject.key;
        let (from, to) = match event.kind {
            EventKind::Trashed => (Some(Shelf::Board), Some(Shelf::Trash)),
            EventKind::Consumed => (Some(Shelf::Board), None),
            EventKind::Purged => (Some(Shelf::Trash), None),
            EventKind::Restored => (Some(Shelf::Trash), Some(Shelf::Board)),
            _ => (None, Some(Shelf::Board)),
        };
        for shelf in [from, to].into_iter().flatten() {
            let place = (shelf, key.clone());
            self.asked.remove(&place);
            self.wanted.remove(&place);
            if self.is_being_read {
                self.touched.insert(place);
            }
        }
        if let Some(shelf) = from {
            self.remove(shelf, key.as_str());
        }
        if let Some(shelf) = to {
            self.wanted.insert((shelf, key.clone()));
        }
        match to {
            None => Heeded::Ended,
            Some(_) => Heeded::Known,
        }
    }

    /// Returns some of what is to be looked up.
    pub(super) fn ask(&mut self, most: usize) -> Vec<Place> {
        let some: Vec<_> = self.wanted.iter().take(most).cloned().collect();
        for place in &some {
            self.wanted.remove(place);
            self.asked.insert(place.clone());
        }
        some
    }

    /// Has looked up what there was no answer to.
    pub(super) fn ask_again(&mut self) {
        self.wanted.extend(self.asked.drain());
    }

    /// Has claims looked up again that may have been renewed since, of which nobody is told: those in
    /// these lines, or all of which the time seems to be over.
    pub(super) fn look_again(&mut self, lines: Range<usize>, are_all: bool, now: DateTime<Utc>) {
        let is_over = |row: &&Row| {
            let claim = row.claim.as_ref();
            claim
                .and_then(|it| it.lapses_on)
                .is_some_and(|on| on <= now)
        };
        let seen = lines
            .map_while(|at| self.at(at))
            .filter(|row| row.is_timed());
        let over = self.rows().filter(is_over).filter(|_| are_all);
        let places = seen.chain(over).filter(|row| row.shelf == Shelf::Board);
        let places: Vec<_> = places
            .map(|row| (row.shelf, JobKey::new(&*row.key)))
            .collect();
        self.wanted.extend(places);
    }

    /// Takes what was found; returns how many have failed anew.
    pub(super) fn found(&mut self, found: Vec<(Place, Option<Entry>)>, now: DateTime<Utc>) -> u64 {
        let mut failed = 0;
        for (place, entry) in found {
            if !self.asked.remove(&place) {
                continue;
            }
            let (shelf, key) = place;
            match entry {
                Some(entry) => {
                    let last = |row: &Row| row.failures().last().map(|it| it.on);
                    let before = self.row(shelf, key.as_str()).map(last);
                    self.put(shelf, &entry, now);
                    let after = self.row(shelf, key.as_str()).and_then(last);
                    // One that comes to the trash has left its former row.
                    let lately =
                        before.unwrap_or_else(|| Some(now - chrono::TimeDelta::seconds(5)));
                    failed += u64::from(after.is_some() && after > lately);
                }
                None => self.remove(shelf, key.as_str()),
            }
        }
        failed
    }

    /// Admits only these, once it has been read again.
    pub(super) fn filter(&mut self, filters: Filters) {
        self.filters = filters;
        for row in self.rows.iter_mut().flatten() {
            row.is_admitted = false;
        }
        self.rebuild();
    }

    /// Shows these rows, in this order.
    pub(super) fn look_through(&mut self, lens: Lens) {
        if self.lens != lens {
            self.lens = lens;
            self.rebuild();
        }
    }

    pub(super) fn lens(&self) -> &Lens {
        &self.lens
    }

    fn rebuild(&mut self) {
        let shown = self.rows.iter().zip(0..).filter_map(|(row, slot)| {
            let row = row.as_ref()?;
            self.shows(row).then_some(slot)
        });
        self.order = shown.collect();
        self.is_unsorted = true;
        self.settle();
    }

    /// Puts the rows in order that came since.
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.is_unsorted) {
            let mut order = std::mem::take(&mut self.order);
            order.sort_by(|one, other| self.compare(*one, *other));
            self.order = order;
        }
    }

    /// Returns how many rows are shown.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the row that is shown there.
    pub(super) fn at(&self, at: usize) -> Option<&Row> {
        self.rows[*self.order.get(at)? as usize].as_ref()
    }

    /// Returns where a row is shown.
    pub(super) fn position(&self, place: &Place) -> Option<usize> {
        let slot = *self.slots(place.0).get(place.1.as_str())?;
        let found = self
            .order
            .binary_search_by(|other| self.compare(*other, slot));
        found.ok().filter(|at| self.order[*at] == slot)
    }

    pub(super) fn row(&self, shelf: Shelf, key: &str) -> Option<&Row> {
        self.rows[*self.slots(shelf).get(key)? as usize].as_ref()
    }

    /// Returns all rows, whether or not they are shown.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().flatten()
    }

    fn put(&mut self, shelf: Shelf, entry: &Entry, now: DateTime<Utc>) {
        // Boards may share a trash.
        if matches!(entry.origin(), Origin::Beside(_)) {
            return;
        }
        let mut row = Row::of(entry, shelf, &mut self.shared, now);
        row.is_admitted = self.filters.matches(entry, now);
        row.reading = self.reading;
        let known = self.slots(shelf).get(&*row.key).copied();
        let slot = match known {
            Some(slot) => {
                if let Some(old) = &mut self.rows[slot as usize]
                    && {
                        old.reading = row.reading;
                        *old == row
                    }
                {
                    return;
                }
                self.hide(slot);
                slot
            }
            None => self.free.pop().unwrap_or_else(|| {
                if self.rows.len() == self.rows.capacity() {
                    // Not twice as many: there may be a hundred thousand.
                    self.rows.reserve_exact(64.max(self.rows.len() / 8));
                }
                self.rows.push(None);
                // No board has four thousand million jobs.
                u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
            }),
        };
        self.version += 1;
        let is_shown = self.shows(&row);
        let key = Arc::clone(&row.key);
        self.slots_mut(shelf).insert(key, slot);
        self.rows[slot as usize] = Some(row);
        match (is_shown, self.is_unsorted) {
            (false, _) => {}
            (true, true) => self.order.push(slot),
            (true, false) => {
                let at = self
                    .order
                    .partition_point(|other| self.compare(*other, slot) == Ordering::Less);
                self.order.insert(at, slot);
            }
        }
    }

    fn remove(&mut self, shelf: Shelf, key: &str) {
        let Some(slot) = self.slots(shelf).get(key).copied() else {
            return;
        };
        self.hide(slot);
        self.version += 1;
        self.slots_mut(shelf).remove(key);
        self.rows[slot as usize] = None;
        self.free.push(slot);
    }

    /// Takes a row out of the order, before it changes.
    fn hide(&mut self, slot: u32) {
        self.settle();
        let found = self
            .order
            .binary_search_by(|other| self.compare(*other, slot));
        if let Ok(at) = found
            && self.order[at] == slot
        {
            self.order.remove(at);
        }
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        match (&self.rows[one as usize], &self.rows[other as usize]) {
            (Some(one), Some(other)) => self.lens.compare(one, other),
            _ => Ordering::Equal,
        }
    }

    fn shows(&self, row: &Row) -> bool {
        row.is_admitted && self.lens.admits(row)
    }

    fn slots(&self, shelf: Shelf) -> &HashMap<Arc<str>, u32> {
        match shelf {
            Shelf::Trash => &self.trash,
            _ => &self.board,
        }
    }

    fn slots_mut(&mut self, shelf: Shelf) -> &mut HashMap<Arc<str>, u32> {
        match shelf {
            Shelf::Trash => &mut self.trash,
            _ => &mut self.board,
        }
    }
}
