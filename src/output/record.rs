//! The traits of printable results.

use std::borrow::Cow;

use serde::Serialize;

use super::{Cell, Page};

pub(crate) trait Record: Serialize {
    /// Returns the fields of its tab-separated line, in a fixed order. A report without fields is text instead.
    fn fields(&self) -> Vec<String> {
        Vec::new()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        None
    }
}

/// A record that people read as sentences.
pub(crate) trait Report: Record {
    /// Whether a pipe gets the text, too, unless a format is chosen.
    const IS_TEXT: bool = false;

    fn human(&self, page: &mut Page);
}

/// A record that people read as a row of a table.
pub(crate) trait Row: Record {
    fn cells(&self) -> Vec<Cell>;
}
