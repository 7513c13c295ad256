//! A paged listing as one stream.

use futures_util::{
    Stream, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};

use super::Result;
use crate::job::Entry;

const PAGE_BYTES: usize = 512 * 1024;

/// Bytes of postings kept after they were read for ranking.
pub(super) const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Longer postings are read again: keeping them would store them twice.
pub(super) const MAX_KEPT: usize = 16 * 1024;

pub(super) fn page_length(jobs: usize, bytes: usize, most: usize) -> usize {
    let average = bytes / jobs.max(1);
    (PAGE_BYTES / average.max(1)).clamp(1, most)
}

/// Yields records one by one; an error follows all earlier records.
pub(super) fn flatten<'a>(
    pages: impl Stream<Item = Result<Vec<Entry>>> + Send + 'a,
) -> BoxStream<'a, Result<Entry>> {
    pages
        .map_ok(|page| stream::iter(page.into_iter().map(Ok)))
        .try_flatten()
        .boxed()
}
