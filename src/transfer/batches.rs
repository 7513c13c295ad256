//! Batches of records, read ahead while a board works on the previous batch.

use std::{cell::Cell, collections::VecDeque, mem};

use futures_util::{FutureExt, Stream, TryStreamExt, future::join};
use tokio::task::yield_now;

/// The number of records read before the running exchange gets its turn.
const AT_A_STRETCH: usize = 16;

pub(crate) struct Unusable {
    /// Its name and its reference.
    pub(crate) job: (String, String),
    pub(crate) error: anyhow::Error,
}

impl From<anyhow::Error> for Unusable {
    fn from(error: anyhow::Error) -> Self {
        let job = Default::default();
        Self { job, error }
    }
}

/// A record with its approximate memory, or its own error; `None` for a record that is not wanted.
pub(crate) type NextRecord<R> = Result<Option<(R, usize)>, Unusable>;

pub(crate) trait RecordSource {
    type Record;

    /// Returns `None` at the end.
    async fn next(&mut self) -> anyhow::Result<Option<NextRecord<Self::Record>>>;

    fn would_block(&self) -> bool {
        false
    }
}

impl<R, S: Stream<Item = anyhow::Result<NextRecord<R>>> + Unpin> RecordSource for S {
    type Record = R;

    async fn next(&mut self) -> anyhow::Result<Option<NextRecord<R>>> {
        self.try_next().await
    }
}

pub(crate) struct Batches<S: RecordSource> {
    pub(crate) source: S,
    most: usize,
    memory: usize,
    records: VecDeque<(S::Record, usize)>,
    waiting: usize,
    errors: Vec<Unusable>,
    is_ended: bool,
    /// The number of records read since they were counted.
    read: u64,
}

impl<S: RecordSource> Batches<S> {
    pub(crate) fn new(source: S, (most, memory): (usize, usize)) -> Self {
        Self {
            source,
            most,
            memory,
            records: VecDeque::new(),
            waiting: 0,
            errors: Vec::new(),
            is_ended: false,
            read: 0,
        }
    }

    /// Returns the next batch, or `None` at the end. The records of a slow source come as they are available.
    pub(crate) async fn next(
        &mut self,
        mut fail: impl FnMut(Unusable),
    ) -> anyhow::Result<Option<Vec<S::Record>>> {
        loop {
            self.errors.drain(..).for_each(&mut fail);
            if self.is_ended || !self.records.is_empty() && !self.has_more_at_hand() {
                break;
            }
            self.read().await?;
        }
        let (mut batch, mut memory) = (Vec::new(), 0);
        while batch.len() < self.most
            && memory < self.memory
            && let Some((record, size)) = self.records.pop_front()
        {
            memory += size;
            batch.push(record);
        }
        self.waiting -= memory;
        Ok(Some(batch).filter(|it| !it.is_empty()))
    }

    /// Reads all records, before the first batch; returns their number.
    pub(crate) async fn read_all(
        &mut self,
        mut fail: impl FnMut(Unusable),
    ) -> anyhow::Result<usize> {
        self.errors.drain(..).for_each(&mut fail);
        while !self.is_ended {
            self.read().await?;
            self.errors.drain(..).for_each(&mut fail);
        }
        Ok(self.records.len())
    }

    pub(crate) fn reject(&mut self, mut problem: impl FnMut(&S::Record) -> Option<Unusable>) {
        let (errors, waiting) = (&mut self.errors, &mut self.waiting);
        self.records.retain(|(record, size)| {
            let error = problem(record);
            let is_fine = error.is_none();
            *waiting -= if is_fine { 0 } else { *size };
            errors.extend(error);
            is_fine
        });
    }

    /// Carries out an exchange with a board, and reads the available records meanwhile.
    pub(crate) async fn reading_ahead<T>(
        &mut self,
        exchange: impl Future<Output = T>,
    ) -> (T, anyhow::Result<()>) {
        let is_done = Cell::new(false);
        let exchange = exchange.inspect(|_| is_done.set(true));
        let ahead = async {
            while !is_done.get() && self.has_more_at_hand() {
                // Lets the exchange continue.
                yield_now().await;
                for _ in 0..AT_A_STRETCH {
                    if self.has_more_at_hand() {
                        self.read().await?;
                    }
                }
            }
            Ok(())
        };
        join(exchange, ahead).await
    }

    pub(crate) fn count(&mut self) -> u64 {
        mem::take(&mut self.read)
    }

    fn has_more_at_hand(&self) -> bool {
        let queued = self.records.len() + self.errors.len();
        let is_full = queued >= self.most || self.waiting >= self.memory;
        !self.is_ended && !is_full && !self.source.would_block()
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        match self.source.next().await? {
            None => self.is_ended = true,
            Some(Ok(None)) => {}
            Some(Ok(Some((record, size)))) => {
                self.waiting += size;
                self.records.push_back((record, size));
            }
            Some(Err(error)) => self.errors.push(error),
        }
        self.read += u64::from(!self.is_ended);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use futures_util::stream;

    use super::*;

    const MANY: usize = 100_000;

    #[tokio::test]
    async fn reading_ahead_stops_at_bad_records_and_with_the_exchange() {
        let good = (0..5).map(|it| Ok(Some((it, 1))));
        let bad = (0..MANY).map(|_| Err(Unusable::from(anyhow!("bad"))));
        let unwanted = (0..MANY).map(|_| Ok(None));
        for (rest, exchange) in [
            (bad.collect::<Vec<NextRecord<i32>>>(), MANY),
            (unwanted.collect(), 0),
        ] {
            let all = good.clone().chain(rest);
            let mut batches = Batches::new(stream::iter(all.map(anyhow::Ok)), (5, 100));
            assert_eq!(batches.next(drop).await.unwrap().unwrap().len(), 5);
            let busy = async {
                for _ in 0..exchange {
                    yield_now().await;
                }
            };
            batches.reading_ahead(busy).await.1.unwrap();
            assert!(batches.count() < 100);
            // The end still comes.
            let mut failed = 0;
            let last = batches.next(|_| failed += 1).await.unwrap();
            assert!(last.is_none());
            assert_eq!(failed, if exchange > 0 { MANY } else { 0 });
        }
    }

    #[tokio::test]
    async fn rejected_records_take_no_memory() {
        let records = (0..5).map(|it| anyhow::Ok(Ok(Some((it, 10)))));
        let mut batches = Batches::new(stream::iter(records), (5, 100));
        batches.read_all(drop).await.unwrap();
        batches.reject(|it| (*it != 3).then(|| anyhow!("bad").into()));
        assert_eq!(batches.waiting, 10);
        assert_eq!(batches.next(drop).await.unwrap(), Some(vec![3]));
        assert_eq!(batches.waiting, 0);
    }
}
