//! Walking over all that is on a shelf, in pages of postings that are not read yet.

use std::sync::{Arc, Weak};

use redis::Cmd;

use super::{field::Seen, keys::Keys, line::Line, link::Link};
use crate::{board::Result, job::Shelf};

/// What a reader was doing when it failed.
const DOING: &str = "read";

/// A page should be about as large as this.
const PAGE_BYTES: usize = 512 * 1024;

/// How many jobs the first page has.
pub(super) const FIRST_PAGE: usize = 128;

/// How many jobs a page has at most.
const LARGEST_PAGE: usize = 1000;

/// A posting in its field, undecoded.
pub(super) type Stored = (Vec<u8>, Vec<u8>);

/// Walks a shelf in the order in which the server has it.
///
/// Each field comes once, whatever the server does meanwhile.
#[derive(Debug)]
pub(super) struct Scan {
    hash: String,
    cursor: Option<u64>,
    count: usize,
    /// Where the cursor comes from.
    line: Weak<Line>,
    /// A server may hand a field out twice while its table grows or shrinks.
    seen: Seen,
}

impl Scan {
    pub(super) fn of(keys: &Keys, shelf: Shelf) -> Self {
        Self {
            hash: hash(keys, shelf),
            cursor: Some(0),
            count: FIRST_PAGE,
            line: Weak::new(),
            seen: Seen::default(),
        }
    }

    /// Returns the next page; none, when there is no more.
    pub(super) async fn next(&mut self, link: &Link) -> Result<Option<Vec<Stored>>> {
        let Some(command) = self.command() else {
            return Ok(None);
        };
        let is_first = self.cursor == Some(0);
        let (answer, line) = link.ask_on_line(DOING, &command).await?;
        let page = self.page(answer);
        let line = Arc::downgrade(&line);
        // The server may be another one by now, or have started again, and such a one has its
        // fields in an order of its own: the cursor meant nothing there.
        if !is_first && !line.ptr_eq(&self.line) {
            self.cursor = Some(0);
        }
        self.line = line;
        Ok(Some(page))
    }

    /// Returns the command that asks for the next page; none, when there is no more.
    pub(super) fn command(&self) -> Option<Cmd> {
        let mut command = Cmd::new();
        command
            .arg("HSCAN")
            .arg(&self.hash)
            .arg(self.cursor?)
            .arg("COUNT")
            .arg(self.count);
        Some(command)
    }

    /// Reads the answer to the last command.
    pub(super) fn page(&mut self, (next, flat): (u64, Vec<Vec<u8>>)) -> Vec<Stored> {
        self.cursor = (next != 0).then_some(next);
        let bytes: usize = flat.iter().map(Vec::len).sum();
        let mut page = Vec::with_capacity(flat.len() / 2);
        let mut parts = flat.into_iter();
        while let (Some(field), Some(posting)) = (parts.next(), parts.next()) {
            if self.seen.insert(&field) {
                page.push((field, posting));
            }
        }
        self.count = page_after(page.len(), bytes);
        page
    }
}

/// Returns how many jobs the next page should have, by the size of the one before.
pub(super) fn page_after(count: usize, bytes: usize) -> usize {
    let average = bytes / count.max(1);
    (PAGE_BYTES / average.max(1)).clamp(1, LARGEST_PAGE)
}

/// Names the hash in which a shelf is.
pub(super) fn hash(keys: &Keys, shelf: Shelf) -> String {
    match shelf {
        Shelf::Board => keys.listings(),
        Shelf::Trash => keys.trash(),
    }
}
