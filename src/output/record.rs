//! What a result has to tell of itself, for programs and for people.

use std::borrow::Cow;

use serde::Serialize;

use super::{Cell, Page};

/// What there is to say, as fields for programs.
pub(crate) trait Record: Serialize {
    /// Returns the facts in a fixed order, as fields of a line.
    fn fields(&self) -> Vec<String>;

    /// Returns the lines of fields that tell it, where one is not enough.
    fn lines(&self) -> Vec<Vec<String>> {
        vec![self.fields()]
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
