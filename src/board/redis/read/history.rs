//! Reads the history of a board.

use futures_util::{Stream, stream};
use redis::cmd;

use crate::{
    board::{
        Result,
        pages::page_length,
        redis::{Redis, link::bounded::size_unread},
        wire::{history, sidecar::Sidecar},
    },
    job::{Entry, MAX_RECORD_BYTES, from_json},
};

/// A stream entry: its id, then names and values alternately.
type StreamEntry = (String, Vec<Vec<u8>>);

/// First page: few, since most readers want only the latest.
const FIRST_PAGE: usize = 64;

const MAX_PAGE: usize = 2048;

struct HistoryCursor {
    /// The id of the next entry, or a later one.
    from: String,
    left: usize,
    page: usize,
}

const MAY_WRITE_HISTORY: &str = include_str!("../write/scripts/may_write_history.lua");

impl Redis {
    pub(crate) fn history_pages(&self) -> impl Stream<Item = Result<Vec<Entry>>> + Send + use<'_> {
        let first = HistoryCursor {
            from: "+".to_owned(),
            left: self.history as usize,
            page: FIRST_PAGE,
        };
        stream::try_unfold(Some(first), move |cursor| async move {
            let Some(cursor) = cursor.filter(|cursor| cursor.left > 0) else {
                return Ok(None);
            };
            let mut count = cursor.page.min(cursor.left);
            let mut page = self.range(&cursor.from, count).await?;
            let had_no_room =
                |part: &Vec<u8>| size_unread(part).is_some_and(|it| it <= MAX_RECORD_BYTES);
            // A reply always has room for one readable entry.
            while count > 1 && page.iter().flat_map(|(_, parts)| parts).any(had_no_room) {
                count = count.div_ceil(16);
                page = self.range(&cursor.from, count).await?;
            }
            let sizes = page.iter().flat_map(|(_, parts)| parts).map(Vec::len);
            let next_count = page_length(page.len(), sizes.sum(), MAX_PAGE);
            let last = page.last().filter(|_| page.len() == count);
            let next = last
                .and_then(|(id, _)| id_before(id))
                .map(|from| HistoryCursor {
                    from,
                    left: cursor.left - count,
                    page: next_count,
                });
            Ok(Some((page.iter().map(entry).collect(), next)))
        })
    }

    async fn range(&self, from: &str, count: usize) -> Result<Vec<StreamEntry>> {
        let mut command = cmd("XREVRANGE");
        command.arg(self.keys.history()).arg(from).arg("-");
        self.client.read(command.arg("COUNT").arg(count)).await
    }

    pub(crate) async fn check_history(&self) -> Result<()> {
        self.range("+", 1).await?;
        let mut eval = cmd("EVAL");
        let may_write = eval.arg(MAY_WRITE_HISTORY).arg(0).arg(self.keys.history());
        match self.client.read::<i64>(may_write).await {
            Ok(0) => Err(self.client.refusal_in_script(
                "NOPERM this user has no permissions to run the 'xadd' command",
            )),
            Err(error) if error.is_retryable() => Err(error),
            // A user without script rights ends no jobs.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Returns the id right before another one; servers before Redis 6.2 know no open ranges.
fn id_before(id: &str) -> Option<String> {
    let (time, number) = id.split_once('-')?;
    let (time, number): (u64, u64) = (time.parse().ok()?, number.parse().ok()?);
    match number {
        0 => Some(format!("{}-{}", time.checked_sub(1)?, u64::MAX)),
        _ => Some(format!("{time}-{}", number - 1)),
    }
}

fn entry((id, parts): &StreamEntry) -> Entry {
    let part = |name: &[u8]| {
        let mut pairs = parts.chunks_exact(2);
        let pair = pairs.find(|pair| pair[0] == name)?;
        Some(pair[1].as_slice())
    };
    let side = part(b"side").filter(|side| !side.is_empty());
    let (side, problem) = Sidecar::read(side);
    let job = part(b"job").unwrap_or_default();
    history::entry(id, from_json(job), side, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_one_predecessor() {
        let ids = [
            ("5-3", Some("5-2")),
            ("5-0", Some("4-18446744073709551615")),
            ("0-0", None),
            ("5", None),
        ];
        for (id, before) in ids {
            assert_eq!(id_before(id).as_deref(), before, "{id}");
        }
    }
}
