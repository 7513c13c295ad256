//! The traits of printable results.

use std::borrow::Cow;

use serde::Serialize;

use super::{Cell, Page};

/// A result that people read as sentences.
pub(crate) trait Report: Serialize {
    /// Whether a pipe gets the text, too, unless a format is chosen.
    const IS_TEXT: bool = false;

    /// Returns the fields of its tab-separated line, in a fixed order. A report without fields is text instead.
    fn fields(&self) -> Vec<String> {
        Vec::new()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn human(&self, page: &mut Page);
}

/// A result that people read as a row of a table.
pub(crate) trait Row: Serialize {
    fn fields(&self) -> Vec<String>;

    fn reference(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn cells(&self) -> Vec<Cell>;
}
