//! Many records in bounded memory: beyond a limit their long texts are dropped, and read again when they are needed.

use std::collections::VecDeque;

use futures_util::{Stream, TryStreamExt, stream};

use super::{Board, BoardError, BoardExt, JobRef, Result};
use crate::job::{Entry, Location};

/// The texts of a record count only beyond this size, which a job without large details hardly reaches.
const LIGHT_BYTES: usize = 512;

/// The memory for the texts of the other records.
const HEAVY_BYTES: usize = 16 << 20;

/// The stored size and the number of the records that are read again together.
const PAGE: (u64, usize) = (1 << 20, 200);

#[derive(Debug)]
pub(crate) struct Collector {
    room: usize,
}

impl Default for Collector {
    fn default() -> Self {
        Self { room: HEAVY_BYTES }
    }
}

impl Collector {
    /// Cuts a record if its long texts do not fit into the remaining memory.
    ///
    /// Records of the history stay whole: they are few, and nothing identifies one for another read.
    pub(crate) fn keep(&mut self, entry: Entry) -> Entry {
        let bytes = entry.text_bytes();
        let is_ended = entry
            .job()
            .is_some_and(|job| job.location == Location::History);
        match self.room.checked_sub(bytes) {
            _ if bytes <= LIGHT_BYTES || is_ended => entry,
            Some(room) => {
                self.room = room;
                entry
            }
            None => entry.cut(),
        }
    }
}

/// Takes up to `most` records from the front, but no more cut ones than fit into a page. Takes at least one record.
pub(crate) fn next_page<T>(
    rest: &mut VecDeque<T>,
    most: usize,
    entry: impl Fn(&T) -> Option<&Entry>,
) -> Vec<T> {
    let mut bytes = 0;
    let fits = |item: &&T| {
        let cut = entry(item).filter(|entry| entry.is_cut());
        bytes += cut.map_or(0, Entry::size);
        bytes <= PAGE.0
    };
    let count = rest.iter().take(most).take_while(fits).count().max(1);
    rest.drain(..count.min(rest.len())).collect()
}

/// Streams collected records in their order, and reads the cut jobs among the first `most` again.
///
/// Skips jobs that are gone by now or that `admits` refuses now. Malformed records stay as they are.
pub(crate) fn whole<'a>(
    board: &'a dyn Board,
    entries: Vec<Entry>,
    most: usize,
    admits: impl Fn(&Entry) -> bool + Copy + 'a,
) -> impl Stream<Item = Result<Entry>> + 'a {
    let rest = (VecDeque::from(entries), 0);
    let pages = stream::try_unfold(rest, move |(mut rest, before)| async move {
        if rest.is_empty() {
            return Ok(None);
        }
        let mut page = next_page(&mut rest, PAGE.1, |entry| Some(entry));
        let after = before + page.len();
        if before < most {
            page = read_again(board, page, admits).await?;
        }
        let page = stream::iter(page.into_iter().map(Ok));
        Ok::<_, BoardError>(Some((page, (rest, after))))
    });
    pages.try_flatten()
}

async fn read_again(
    board: &dyn Board,
    mut page: Vec<Entry>,
    admits: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>> {
    let is_cut_in = |entry: &Entry, location| {
        entry.is_cut() && entry.job().is_some_and(|job| job.location == location)
    };
    for location in Location::LIVE {
        let cut = page.iter().filter(|entry| is_cut_in(entry, location));
        let cut: Vec<_> = cut.map(|it| JobRef::Key(it.key().clone())).collect();
        if cut.is_empty() {
            continue;
        }
        let mut found = board.resolve(location, &cut).await?.into_iter();
        for entry in &mut page {
            if is_cut_in(entry, location)
                && let Some(Ok(whole @ Entry::Job(_))) = found.next()
                && admits(&whole)
            {
                *entry = whole;
            }
        }
    }
    page.retain(|entry| entry.job().is_none_or(|job| !job.is_cut));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Details, Job, JobKey};

    fn heavy(name: &str, size: u64) -> Entry {
        let details = serde_json::json!({"n": "x".repeat(size as usize)});
        Entry::Job(Box::new(Job {
            key: JobKey::new(name),
            details: Some(Details::from(details)),
            size,
            ..Job::named(name)
        }))
    }

    #[test]
    fn only_records_beyond_the_limit_are_cut() {
        let mut collector = Collector { room: 3000 };
        let kept = [1000, 2500, 1500, 500, 600].map(|size| collector.keep(heavy("a", size)));
        let cut = kept.each_ref().map(Entry::is_cut);
        assert_eq!(cut, [false, true, false, false, true]);
        let details = kept[1].job().and_then(|job| job.details.as_ref());
        assert_eq!(details, None);
    }
}
