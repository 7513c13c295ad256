//! The traits of printable results, and lists that are written row by row.

use std::{borrow::Cow, io};

use futures_util::{FutureExt as _, Stream, StreamExt as _};
use serde::Serialize;

use super::{Cell, Column, Format, Output, Page, table::Layout, width_of};

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
    fn fields(&self) -> Vec<Cow<'_, str>>;

    fn reference(&self) -> Option<Cow<'_, str>> {
        None
    }

    fn cells(&self) -> Vec<Cell>;
}

#[derive(Debug)]
pub(crate) struct Rows<'a> {
    out: &'a mut Output,
    layout: Option<Layout>,
    count: usize,
}

impl<'a> Rows<'a> {
    pub(super) fn new(out: &'a mut Output, columns: &[Column]) -> Self {
        let layout =
            (out.format() == Format::Table).then(|| Layout::new(columns, width_of(io::stdout())));
        Self {
            out,
            layout,
            count: 0,
        }
    }

    pub(crate) fn titles(&mut self, titles: &[&str]) -> anyhow::Result<()> {
        match self.out.format() {
            Format::Tsv => self.out.line(titles),
            _ => Ok(()),
        }
    }

    pub(crate) fn push(&mut self, row: &impl Row) -> anyhow::Result<()> {
        self.count += 1;
        if let Some(layout) = &mut self.layout {
            let lines = layout.push(row.cells());
            return self.out.print_lines(&lines);
        }
        match self.out.format() {
            Format::Json => self.out.element(self.count - 1, row),
            Format::Jsonl => self.out.json("", row, "\n"),
            Format::Uuid => self.out.reference(row.reference()),
            Format::Tsv | Format::Table => self.out.line(&row.fields()),
        }
    }

    /// Adds the rows of a stream, and ends the list. After an error, the printed rows and their array stay valid.
    pub(crate) async fn stream<T>(
        mut self,
        mut items: impl Stream<Item = anyhow::Result<T>> + Unpin,
        mut add: impl FnMut(&mut Self, T) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let next = match items.next().now_or_never() {
                Some(next) => next,
                None => {
                    // Readers of an object stream need each row immediately.
                    if self.out.format() == Format::Jsonl {
                        self.out.flush()?;
                    }
                    items.next().await
                }
            };
            match next {
                Some(Ok(item)) => add(&mut self, item)?,
                // A missing list differs from an empty one.
                Some(Err(error)) if self.count == 0 => return Err(error),
                Some(Err(error)) => return self.finish().and(Err(error)),
                None => return self.finish(),
            }
        }
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        if let Some(layout) = &mut self.layout {
            let lines = layout.finish();
            self.out.print_lines(&lines)?;
        } else if self.out.format() == Format::Json {
            self.out.end_array(self.count)?;
        }
        self.out.flush()
    }
}
