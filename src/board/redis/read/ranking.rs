//! Reads records by rank, which the server does not know.

use std::{collections::VecDeque, ops::Range, pin::pin};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};

use super::scan::{FIRST_PAGE, PAGES_READ_AHEAD, RawPosting, first_postings, page_after, parts};
use crate::{
    board::{
        BoardError, Order, Result,
        pages::MAX_KEPT,
        redis::{
            Redis,
            keys::{field_of, key_of},
            link::yield_to_tasks,
        },
        wire::msgpack,
    },
    job::{JobKey, Location, Priority, Rank},
};

/// Streams the records in our order, malformed ones last.
///
/// A full scan finds the order. It keeps this many bytes of postings; the others are read again.
pub(crate) fn ranked(
    board: &Redis,
    location: Location,
    order: Order,
    budget: usize,
) -> impl Stream<Item = Result<Vec<RawPosting>>> + Send {
    let in_order = move |(mut ranking, count): (Ranking, usize)| async move {
        if ranking.jobs.is_empty() {
            return Ok::<_, BoardError>(None);
        }
        let page = ranking.take(board, location, count).await?;
        let bytes = page.iter().map(|(_, posting)| posting.len()).sum();
        let count = page_after(page.len(), bytes);
        Ok(Some((page, (ranking, count))))
    };
    stream::once(Ranking::of(board, (location, order), budget))
        .map_ok(move |ranking| stream::try_unfold((ranking, FIRST_PAGE), in_order))
        .try_flatten()
        .map_ok(parts)
        .try_flatten()
}

#[derive(Debug, Default)]
struct Ranking {
    jobs: VecDeque<Ranked>,
    /// One block: many small ones, freed in another order, fragment the memory.
    kept: Vec<u8>,
}

#[derive(Debug)]
struct Ranked {
    rank: Option<Rank>,
    key: JobKey,
    kept: Range<u32>,
}

impl Ranking {
    async fn of(
        board: &Redis,
        (location, order): (Location, Order),
        budget: usize,
    ) -> Result<Self> {
        let pages = board.scanned(location).map(|page| async move {
            yield_to_tasks().await;
            page
        });
        let mut pages = pin!(pages.buffered(PAGES_READ_AHEAD));
        let mut ranking = Self::default();
        while let Some(page) = pages.try_next().await? {
            for (field, posting) in page {
                ranking.add(order, &field, &posting, budget);
            }
        }
        let jobs = ranking.jobs.make_contiguous();
        jobs.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
        Ok(ranking)
    }

    fn add(&mut self, order: Order, field: &[u8], posting: &[u8], budget: usize) {
        let rank = msgpack::rank(posting).ok();
        let rank = rank.map(|(priority, sequence)| match order {
            Order::Posted => Rank::new(Priority::default(), sequence),
            Order::Rank | Order::Any => Rank::new(priority, sequence),
        });
        let (start, end) = (self.kept.len(), self.kept.len() + posting.len());
        let kept = match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(last)) if end <= budget && posting.len() <= MAX_KEPT => {
                self.kept.extend_from_slice(posting);
                start..last
            }
            _ => 0..0,
        };
        let key = key_of(field);
        self.jobs.push_back(Ranked { rank, key, kept });
    }

    /// Skips jobs that are gone by now.
    async fn take(
        &mut self,
        board: &Redis,
        location: Location,
        count: usize,
    ) -> Result<Vec<RawPosting>> {
        let first = self.jobs.iter().take(count);
        let missing = first.filter(|job| job.kept.is_empty());
        let missing: Vec<_> = missing.map(|job| field_of(&job.key)).collect();
        let found = first_postings(&board.client, &board.keys.hash(location), &missing).await?;
        let mut room = found.len();
        // Jobs whose postings did not fit the reply begin the next page.
        let end = self.jobs.iter().take(count).take_while(|job| {
            let has_room = !job.kept.is_empty() || room > 0;
            room -= usize::from(job.kept.is_empty() && room > 0);
            has_room
        });
        let end = end.count();
        let jobs: Vec<_> = self.jobs.drain(..end).collect();
        let mut found = found.into_iter();
        let page = jobs.iter().filter_map(|job| {
            let posting = match job.kept.is_empty() {
                true => found.next()??,
                false => self.kept[job.kept.start as usize..job.kept.end as usize].to_vec(),
            };
            Some((field_of(&job.key), posting))
        });
        Ok(page.collect())
    }
}

impl Ranked {
    fn place(&self) -> impl Ord {
        (self.rank.is_none(), self.rank, &self.key)
    }
}

#[cfg(test)]
mod tests {
    use redis::Cmd;

    use super::*;
    use crate::{
        board::redis::{link::WRITE, testing::Server},
        job::Draft,
    };

    fn posting(priority: Priority, sequence: u64) -> Vec<u8> {
        let draft = Draft {
            uuid: uuid::Uuid::new_v4(),
            chosen: false,
            name: "resize".to_owned(),
            priority,
            book: None,
            details: serde_json::json!({}).into(),
            former: None,
        };
        let mut posting = msgpack::encode(&draft, chrono::Utc::now());
        posting.extend(msgpack::sequence(sequence));
        posting
    }

    #[tokio::test]
    async fn rank_does_not_depend_on_the_posting() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let board = server.board("");
        let mut fill = Cmd::new();
        fill.arg("HSET").arg(board.keys.listings());
        let mut expected = Vec::new();
        for (at, priority) in (0..300).zip([Priority::Low, Priority::High].into_iter().cycle()) {
            let posting = posting(priority, at);
            fill.arg(format!("job{at}")).arg(posting.as_slice());
            expected.push(((priority == Priority::Low, at), posting));
        }
        fill.arg("empty").arg("");
        board.client.ask::<()>(WRITE, &fill).await.unwrap();
        expected.sort();
        let mut expected: Vec<_> = expected.into_iter().map(|(_, posting)| posting).collect();
        let size = expected.iter().map(Vec::len).sum();
        expected.push(Vec::new());
        for budget in [0, size / 2, size] {
            let pages = ranked(&board, Location::Board, Order::Rank, budget);
            let pages: Vec<_> = pages.try_collect().await.unwrap();
            let found: Vec<_> = pages
                .concat()
                .into_iter()
                .map(|(_, posting)| posting)
                .collect();
            assert_eq!(found, expected, "{budget}");
        }
    }
}
