//! The lines of a view, and the cursor on them.

use super::{row::RowPlace, summary::RowGroup};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Anchor {
    Job(RowPlace),
    Line(String),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cursor {
    pub(super) at: usize,
    pub(super) top: usize,
    /// The selected row, followed wherever it goes; `None` until the cursor moves.
    pub(super) anchor: Option<Anchor>,
}

pub(super) enum Lines<'a> {
    Rows,
    Groups(&'a [RowGroup]),
    History,
    Problems,
    Owners,
    Conductors,
    Events,
}
