//! A listing that comes in pages, as one stream.

use futures_util::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};

use super::Result;
use crate::job::Entry;

/// A page should be about as large as this.
const PAGE_BYTES: usize = 512 * 1024;

/// Returns how many jobs the next page should have, by the size of those in the one before.
pub(super) fn next_page(jobs: usize, bytes: usize, most: usize) -> usize {
    let average = bytes / jobs.max(1);
    (PAGE_BYTES / average.max(1)).clamp(1, most)
}

/// Hands the records out one by one; an error comes behind all that came before it.
pub(super) fn flatten<'a>(
    pages: impl Stream<Item = Result<Vec<Entry>>> + Send + 'a,
) -> BoxStream<'a, Result<Entry>> {
    pages
        .map(|page| {
            let (entries, error) = match page {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            stream::iter(entries.into_iter().map(Ok).chain(error))
        })
        .flatten()
        .boxed()
}
