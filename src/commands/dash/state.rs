//! The state of the dashboard: the rows of the board, the open view and its overlay.

use std::collections::{HashSet, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    act::Dialog,
    cursor::{Cursor, Lines},
    field::Field,
    keys::View,
    listing::ListingGroup,
    picture::Picture,
    rates::Rates,
    row::{RowPlace, reason},
    summary::{Groups, RowGroup, Summary},
};
use crate::{
    board::{Event, JobRef, filter::Filters},
    commands::watch::PrintedEvent,
    diagnosis::{Explanation, Snapshot},
    job::{Conductor, Entry, Location},
    output::{Text, Tone},
    problem::{Problem, Severity},
    suggest::Suggestion,
};

const EVENTS: usize = 1000;

/// The events of the history that come first.
const FORMER: usize = 200;

/// Minimum width for the pane with the selected line.
const WIDE: u16 = 140;

/// The silence after which the board is pinged, at first and at most.
pub(super) const PING_DELAYS: (TimeDelta, TimeDelta) =
    (TimeDelta::seconds(10), TimeDelta::seconds(60));

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Link {
    #[default]
    Connecting,
    Live,
    Polling,
    Away(DateTime<Utc>),
}

#[derive(Debug, Default)]
pub(super) enum Overlay {
    #[default]
    None,
    Help,
    /// The line for a filter or a command.
    Input(Field),
    Job,
    /// The selected problem or conductor.
    Line,
    Dialog(Box<Dialog>),
}

#[derive(Debug)]
pub(super) struct Opened {
    pub(super) reference: JobRef,
    /// `None` until read; an error is the reason why it is unreadable.
    pub(super) found: Option<Result<Entry, String>>,
    pub(super) explained: Option<Result<Explanation, String>>,
}

impl Opened {
    pub(super) fn new(reference: JobRef, entry: Option<Entry>) -> Self {
        Self {
            reference,
            found: entry.map(Ok),
            explained: None,
        }
    }

    pub(super) fn entry(&self) -> Option<&Entry> {
        self.found.as_ref()?.as_ref().ok()
    }

    pub(super) fn is_on_board(&self) -> bool {
        self.entry().is_some_and(|entry| {
            entry
                .job()
                .is_none_or(|job| job.location != Location::History)
        })
    }
}

#[derive(Debug, Default)]
pub(super) struct DashState {
    pub(super) board: String,
    /// How suggested commands begin.
    pub(super) program: Suggestion,
    pub(super) is_once: bool,
    pub(super) may_act: bool,
    pub(super) is_read_only: bool,
    /// The name to type before an action on a protected board.
    pub(super) protected: Option<String>,
    pub(super) now: DateTime<Utc>,
    pub(super) size: (u16, u16),
    pub(super) link: Link,
    /// The last sign of the board, the silence allowed until a ping, and whether a ping is unanswered.
    pub(super) heard: DateTime<Utc>,
    pub(super) patience: TimeDelta,
    pub(super) is_silent: bool,
    pub(super) hidden: Vec<Location>,
    pub(super) is_reading: bool,
    pub(super) has_read: bool,
    pub(super) picture: Picture,
    pub(super) summary: Summary,
    pub(super) rates: Rates,
    /// Why each job ended, and the job.
    pub(super) history: Option<Vec<(String, Entry)>>,
    pub(super) history_groups: Vec<RowGroup>,
    /// Whether more jobs have left it since.
    pub(super) has_history_changed: bool,
    pub(super) snapshot_read: DateTime<Utc>,
    pub(super) claims_read: DateTime<Utc>,
    /// When the filters last compared the times.
    pub(super) filtered: DateTime<Utc>,
    /// The latest first, each with its number.
    pub(super) events: VecDeque<(u64, PrintedEvent)>,
    pub(super) view: View,
    /// Whether the view was chosen; otherwise the first reading decides.
    pub(super) is_view_chosen: bool,
    pub(super) is_folded: bool,
    /// The group with visible jobs; `None` shows the groups.
    pub(super) within: Option<ListingGroup>,
    pub(super) cursors: [Cursor; 7],
    pub(super) inner: Cursor,
    pub(super) marks: HashSet<RowPlace>,
    pub(super) overlay: Overlay,
    /// The job of the page, or the selected one beside a wide view.
    pub(super) opened: Option<Box<Opened>>,
    /// The first visible line of an opened page, and the page height.
    pub(super) scroll: usize,
    pub(super) lines: usize,
    pub(super) message: Option<(Tone, Text)>,
}

impl DashState {
    pub(super) fn new(
        board: &str,
        filters: Filters,
        view: Option<View>,
        snapshot: Snapshot,
    ) -> Self {
        let now = snapshot.now;
        let mut state = Self {
            board: board.to_owned(),
            now,
            size: (80, 24),
            heard: now,
            patience: PING_DELAYS.0,
            picture: Picture::new(filters, snapshot),
            snapshot_read: now,
            claims_read: now,
            filtered: now,
            view: view.unwrap_or_default(),
            is_view_chosen: view.is_some(),
            is_folded: true,
            lines: 1,
            ..Self::default()
        };
        state.rates.advance(now);
        state.list();
        state
    }

    pub(super) fn list(&mut self) {
        let which = match (&self.within, self.view) {
            (Some(which), _) => which.clone(),
            (None, View::Trash) => ListingGroup::On(Location::Trash),
            (None, _) => ListingGroup::On(Location::Board),
        };
        self.picture.list(|it| it.which = which);
    }

    pub(super) fn update_summary(&mut self) {
        let before = std::mem::take(&mut self.summary);
        self.summary = Summary::of(&mut self.picture, &before, &self.program, self.now);
        if self.is_read_only {
            self.summary
                .problems
                .iter_mut()
                .for_each(Problem::omit_change);
        }
        if self.has_read && !std::mem::replace(&mut self.is_view_chosen, true) {
            let mut severities = self.summary.problems.iter().map(|it| it.severity);
            let has_problems = severities.any(|it| it > Severity::Note);
            self.view = match has_problems {
                true => View::Problems,
                false => View::Jobs,
            };
            self.list();
        }
    }

    pub(super) fn open(&mut self, overlay: Overlay) {
        (self.overlay, self.scroll) = (overlay, 0);
    }

    pub(super) fn is_page(&self) -> bool {
        matches!(self.overlay, Overlay::Job | Overlay::Line)
    }

    pub(super) fn has_aside(&self) -> bool {
        self.size.0 >= WIDE && !self.is_once && matches!(self.overlay, Overlay::None)
    }

    pub(super) fn take_history(&mut self, entries: Vec<Entry>) {
        let mut groups = Groups::default();
        let history: Vec<_> = entries.into_iter().map(|it| (reason(&it), it)).collect();
        for (reason, entry) in &history {
            let on = entry.job().and_then(|job| Some(job.ended.as_ref()?.on));
            groups.add(reason, &entry.name(), on);
        }
        if self.events.is_empty() {
            let ended = (history.iter()).filter_map(|(_, it)| Event::ended(it.job()?));
            let ended = ended.take(FORMER).map(|it| PrintedEvent::of(&it));
            let ended = ended.collect::<Vec<_>>();
            self.events = (0..ended.len() as u64).rev().zip(ended).collect();
        }
        (self.history, self.history_groups) = (Some(history), groups.sorted());
    }

    pub(super) fn history(&self) -> impl Iterator<Item = &Entry> {
        let within = match &self.within {
            Some(ListingGroup::Reason(reason)) => Some(reason),
            _ => None,
        };
        let jobs = self.history.iter().flatten();
        jobs.filter(move |(reason, _)| within.is_none_or(|it| it == reason))
            .map(|(_, entry)| entry)
    }

    pub(super) fn conductors(&self) -> impl Iterator<Item = &Conductor> {
        let is_departed = |it: &Conductor| it.has_left && self.summary.departed.contains(&it.owner);
        (self.picture.snapshot.conductors()).filter(move |it| !is_departed(it))
    }

    pub(super) fn marked(&self) -> Vec<RowPlace> {
        let marks = self.marks.iter().filter(|_| self.has_rows());
        let shown = marks.filter(|place| self.picture.position(place).is_some());
        shown.cloned().collect()
    }

    pub(super) fn opened(&mut self, reference: &JobRef) -> Option<&mut Opened> {
        (self.opened.as_deref_mut()).filter(|it| it.reference == *reference)
    }

    pub(super) fn page_job(&self) -> Option<&Opened> {
        (self.opened.as_deref()).filter(|_| matches!(self.overlay, Overlay::Job))
    }

    pub(super) fn selected(&self) -> Option<Opened> {
        let at = self.cursor().at;
        match self.shown() {
            Lines::Rows => {
                let (place, _) = self.picture.at(at)?;
                Some(Opened::new(JobRef::Key(place.1.clone()), None))
            }
            Lines::History => {
                let entry = self.history().nth(at)?;
                // The key may belong to another record by now.
                let reference = entry.reference().parse().ok()?;
                Some(Opened::new(reference, Some(entry.clone())))
            }
            Lines::Events => Some(Opened::new(self.events.get(at)?.1.job()?, None)),
            Lines::Groups(_) | Lines::Problems | Lines::Owners | Lines::Conductors => None,
        }
    }

    pub(super) fn is_away(&self) -> bool {
        matches!(self.link, Link::Away(_))
    }

    pub(super) fn changes_with_time(&self) -> bool {
        let figures = &self.summary.figures;
        let has_standing = figures.oldest_unclaimed.is_some() || figures.longest_held.is_some();
        let has_times = self.len() > 0 || has_standing;
        self.is_away() || has_times || !self.rates.are_zero()
    }

    pub(super) fn keep(&mut self, happening: PrintedEvent) {
        let number = self.events.front().map_or(0, |(number, _)| number + 1);
        self.events.push_front((number, happening));
        self.events.truncate(EVENTS);
    }

    pub(super) fn notify(&mut self, tone: Tone, text: impl Into<Text>) {
        self.message = Some((tone, text.into()));
    }
}
