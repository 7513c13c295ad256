//! The visible lines of the dashboard, and the movement of the cursor.

use super::{
    cursor::{Anchor, Cursor, Lines},
    keys::View,
    state::{DashState, Overlay},
};

impl DashState {
    pub(super) fn shown(&self) -> Lines<'_> {
        match (self.view, &self.within) {
            (View::Trash, None) if self.is_folded => Lines::Groups(&self.summary.trash),
            (View::History, None) if self.is_folded => Lines::Groups(&self.history_groups),
            (View::History, _) => Lines::History,
            (View::Jobs | View::Trash, _) | (_, Some(_)) => Lines::Rows,
            (View::Problems, None) => Lines::Problems,
            (View::Claims, None) => Lines::Owners,
            (View::Conductors, None) => Lines::Conductors,
            (View::Events, None) => Lines::Events,
        }
    }

    pub(super) fn has_rows(&self) -> bool {
        matches!(self.shown(), Lines::Rows)
    }

    pub(super) fn cursor(&self) -> &Cursor {
        match self.within {
            Some(_) => &self.inner,
            None => &self.cursors[self.view as usize],
        }
    }

    pub(super) fn cursor_mut(&mut self) -> &mut Cursor {
        match self.within {
            Some(_) => &mut self.inner,
            None => &mut self.cursors[self.view as usize],
        }
    }

    pub(super) fn len(&self) -> usize {
        match self.shown() {
            Lines::Rows => self.picture.len(),
            Lines::Groups(groups) => groups.len(),
            Lines::History => self.history().count(),
            Lines::Problems => self.summary.problems.len(),
            Lines::Owners => self.summary.owners.len(),
            Lines::Conductors => self.conductors().count(),
            Lines::Events => self.events.len(),
        }
    }

    pub(super) fn anchor(&self, at: usize) -> Option<Anchor> {
        Some(match self.shown() {
            Lines::Rows => Anchor::Job(self.picture.at(at)?.0.clone()),
            Lines::Events => Anchor::Line(self.events.get(at)?.0.to_string()),
            Lines::Groups(groups) => Anchor::Line(groups.get(at)?.reason.clone()),
            Lines::History => Anchor::Line(self.history().nth(at)?.reference().into_owned()),
            Lines::Owners => Anchor::Line(format!("{:?}", self.summary.owners.get(at)?.owner)),
            Lines::Conductors => Anchor::Line(self.conductors().nth(at)?.name.clone()),
            Lines::Problems => {
                let problem = self.summary.problems.get(at)?;
                Anchor::Line(format!("{} {:?}", problem.code, problem.selector))
            }
        })
    }

    fn position(&self, anchor: &Anchor) -> Option<usize> {
        match anchor {
            Anchor::Job(place) => self.picture.position(place),
            anchor => (0..self.len()).find(|at| self.anchor(*at).as_ref() == Some(anchor)),
        }
    }

    /// Keeps the cursor on its row and visible, limits the scrolling of an opened page, and closes the page of a line
    /// that is gone.
    pub(super) fn fit(&mut self, lines: usize, opened: usize) {
        self.lines = lines;
        self.scroll = self.scroll.min(opened.saturating_sub(lines));
        self.picture.sort();
        let len = self.len();
        let cursor = self.cursor();
        let found = (cursor.anchor.as_ref()).and_then(|anchor| self.position(anchor));
        let (moved, top) = (cursor.anchor.is_some(), cursor.top);
        let at = found.unwrap_or(cursor.at).min(len.saturating_sub(1));
        let anchor = self.anchor(at).filter(|_| moved);
        let top = top.min(len.saturating_sub(lines)).min(at);
        let top = top.max((at + 1).saturating_sub(lines));
        *self.cursor_mut() = Cursor { at, top, anchor };
        if found.is_none() && matches!(self.overlay, Overlay::Line) {
            self.overlay = Overlay::None;
        }
    }

    pub(super) fn step(&mut self, by: isize) {
        if self.is_page() || matches!(self.overlay, Overlay::Help) {
            self.scroll = self.scroll.saturating_add_signed(by);
            return;
        }
        let at = self.cursor().at.saturating_add_signed(by);
        let at = at.min(self.len().saturating_sub(1));
        let anchor = self.anchor(at);
        let cursor = self.cursor_mut();
        (cursor.at, cursor.anchor) = (at, anchor);
    }
}
