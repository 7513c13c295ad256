//! Move records: fields of one hash.

use std::pin::pin;

use futures_util::TryStreamExt;
use redis::Cmd;

use super::{Redis, link::WRITE};
use crate::{
    board::Result,
    job::{MOST_RECORDS, MoveRecord},
};

impl Redis {
    pub(super) async fn put_move(&self, record: &MoveRecord) -> Result<()> {
        let set = Cmd::hset(self.keys.moves(), record.key(), record.value());
        self.client.ask::<u64>(WRITE, &set).await.map(drop)
    }

    pub(super) async fn move_records(&self) -> Result<Vec<MoveRecord>> {
        let mut records = Vec::new();
        let mut pages = pin!(self.client.fields(self.keys.moves(), 1000));
        while records.len() <= MOST_RECORDS
            && let Some(page) = pages.try_next().await?
        {
            records.extend(page.iter().filter_map(|(key, value)| {
                let (key, value) = (std::str::from_utf8(key), std::str::from_utf8(value));
                MoveRecord::read(key.ok()?, value.ok()?)
            }));
        }
        Ok(records)
    }

    pub(super) async fn delete_moves(&self, records: &[MoveRecord]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = records.iter().map(MoveRecord::key).collect();
        let delete = Cmd::hdel(self.keys.moves(), keys);
        self.client.ask::<u64>(WRITE, &delete).await.map(drop)
    }
}
