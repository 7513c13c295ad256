//! Many records in bounded memory: beyond a limit their long texts are dropped, and read again when they are needed.

use std::collections::VecDeque;

use futures_util::{Stream, TryStreamExt, stream};

use super::{Board, BoardError, BoardExt, JobRef, Result};
use crate::job::{Entry, Location};

/// Records with shorter texts do not count: nearly every record is one.
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
    /// Cuts a record with long texts if there is no room for them.
    pub(crate) fn keep(&mut self, entry: Entry) -> Entry {
        let bytes = entry.text_bytes();
        match self.room.checked_sub(bytes) {
            _ if bytes <= LIGHT_BYTES => entry,
            Some(room) => {
                self.room = room;
                entry
            }
            None => entry.cut(),
        }
    }
}

/// Streams collected records in their order, and reads those that were cut again.
///
/// Skips the ones that are gone by now. Malformed records are looked up in these locations. Records of the history stay
/// cut, since nothing identifies one.
pub(crate) fn whole<'a>(
    board: &'a dyn Board,
    locations: Vec<Location>,
    entries: Vec<Entry>,
) -> impl Stream<Item = Result<Entry>> + 'a {
    let rest = (VecDeque::from(entries), locations);
    let pages = stream::try_unfold(rest, move |(mut rest, locations)| async move {
        if rest.is_empty() {
            return Ok(None);
        }
        let page = read_again(board, &locations, next_page(&mut rest)).await?;
        Ok::<_, BoardError>(Some((
            stream::iter(page.into_iter().map(Ok)),
            (rest, locations),
        )))
    });
    pages.try_flatten()
}

/// Takes a page of records, and at least one.
fn next_page(rest: &mut VecDeque<Entry>) -> Vec<Entry> {
    let (most_bytes, most) = PAGE;
    let mut bytes = 0;
    let fits = |entry: &&Entry| {
        bytes += if entry.is_cut() { entry.size() } else { 0 };
        bytes <= most_bytes
    };
    let count = rest.iter().take(most).take_while(fits).count().max(1);
    rest.drain(..count).collect()
}

async fn read_again(
    board: &dyn Board,
    locations: &[Location],
    mut page: Vec<Entry>,
) -> Result<Vec<Entry>> {
    for location in Location::LIVE {
        let is_there = |entry: &Entry| match entry {
            Entry::Job(job) => job.location == location,
            Entry::Malformed(_) => locations.contains(&location),
        };
        let cut = page.iter().filter(|it| it.is_cut() && is_there(it));
        let cut: Vec<_> = cut.map(|it| JobRef::Key(it.key().clone())).collect();
        if cut.is_empty() {
            continue;
        }
        let mut found = board.resolve(location, &cut).await?.into_iter();
        for entry in &mut page {
            if entry.is_cut()
                && is_there(entry)
                && let Some(Ok(whole)) = found.next()
            {
                *entry = whole;
            }
        }
    }
    let is_gone =
        |it: &Entry| it.is_cut() && it.job().is_none_or(|it| it.location != Location::History);
    page.retain(|it| !is_gone(it));
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
