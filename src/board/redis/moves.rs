//! Move records: fields of one hash.

use std::collections::BTreeMap;

use redis::cmd;

use super::{keys::Keys, link::Client, read::scan::scan_hash};
use crate::{
    board::Result,
    job::{MOST_RECORDS, MoveRecord},
};

pub(super) async fn begin(client: &Client, keys: &Keys, record: &MoveRecord) -> Result<()> {
    let mut set = cmd("HSET");
    set.arg(keys.moves()).arg(record.key()).arg(record.value());
    client.ask::<u64>("write to", &set).await.map(drop)
}

pub(super) async fn records(client: &Client, keys: &Keys) -> Result<Vec<MoveRecord>> {
    let (mut records, mut cursor) = (Vec::new(), 0_u64);
    loop {
        let scan = scan_hash(&keys.moves(), cursor, 1000);
        let (next, some): (u64, BTreeMap<Vec<u8>, Vec<u8>>) = client.ask("read", &scan).await?;
        let read = some.iter().filter_map(|(key, value)| {
            MoveRecord::read(
                std::str::from_utf8(key).ok()?,
                std::str::from_utf8(value).ok()?,
            )
        });
        records.extend(read);
        cursor = next;
        if cursor == 0 || records.len() > MOST_RECORDS {
            return Ok(records);
        }
    }
}

pub(super) async fn delete(client: &Client, keys: &Keys, records: &[MoveRecord]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut delete = cmd("HDEL");
    delete.arg(keys.moves());
    for record in records {
        delete.arg(record.key());
    }
    client.ask::<u64>("write to", &delete).await.map(drop)
}
