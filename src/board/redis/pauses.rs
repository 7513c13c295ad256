//! Pauses and the records of moves, in a hash each.

use std::{collections::BTreeMap, pin::pin};

use futures_util::TryStreamExt;
use redis::{Cmd, Pipeline};

use super::{Redis, events::message::announcement, link::WRITE};
use crate::{
    board::{EventKind, Result},
    job::{AuditEntry, MAX_PAUSES, MAX_RECORDS, MoveRecord, Pause},
};

/// How many pauses, and how many records of moves, one scan asks for.
const PAUSES_PER_PAGE: usize = 200;
const RECORDS_PER_PAGE: usize = 1000;

impl Redis {
    pub(super) async fn store_pause(&self, pause: &Pause) -> Result<()> {
        let set = Cmd::hset(self.keys.paused(), &pause.names, pause.write());
        let (names, audit) = (pause.names.as_str(), Some(&pause.audit));
        self.change_pause(EventKind::Paused, set, names, audit)
            .await
            .map(drop)
    }

    pub(super) async fn end_pause(&self, names: &str, audit: &AuditEntry) -> Result<bool> {
        let delete = Cmd::hdel(self.keys.paused(), names);
        let deleted = self.change_pause(EventKind::Resumed, delete, names, Some(audit));
        if deleted.await? > 0 {
            return Ok(true);
        }
        // The name of an unreadable pause may differ from its field.
        let mut pages = pin!(self.client.fields(self.keys.paused(), PAUSES_PER_PAGE));
        while let Some(page) = pages.try_next().await? {
            let mut fields = page.iter().map(|(field, _)| field);
            if let Some(field) = fields.find(|field| Pause::shown(field) == names) {
                let delete = Cmd::hdel(self.keys.paused(), field);
                let deleted = self.change_pause(EventKind::Resumed, delete, names, Some(audit));
                return Ok(deleted.await? > 0);
            }
        }
        Ok(false)
    }

    pub(super) async fn stored_pauses(&self) -> Result<Vec<Pause>> {
        let count = self.client.read(&Cmd::hlen(self.keys.paused())).await?;
        let mut found = BTreeMap::new();
        let mut pages = pin!(self.client.fields(self.keys.paused(), PAUSES_PER_PAGE));
        while found.len() < MAX_PAUSES
            && let Some(page) = pages.try_next().await?
        {
            let read = page.iter().map(|(field, text)| Pause::read(field, text));
            found.extend(read.map(|pause| (pause.names.clone(), pause)));
        }
        Ok(Pause::bounded(found.into_values().collect(), count))
    }

    pub(super) async fn store_move(&self, record: &MoveRecord) -> Result<()> {
        let set = Cmd::hset(self.keys.moves(), record.key(), record.value());
        self.client.ask::<u64>(WRITE, &set).await.map(drop)
    }

    pub(super) async fn stored_moves(&self) -> Result<Vec<MoveRecord>> {
        let mut records = Vec::new();
        let mut pages = pin!(self.client.fields(self.keys.moves(), RECORDS_PER_PAGE));
        while records.len() < MAX_RECORDS
            && let Some(page) = pages.try_next().await?
        {
            records.extend(page.iter().filter_map(|(key, value)| {
                let (key, value) = (std::str::from_utf8(key), std::str::from_utf8(value));
                MoveRecord::read(key.ok()?, value.ok()?)
            }));
        }
        records.truncate(MAX_RECORDS);
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

    async fn change_pause(
        &self,
        kind: EventKind,
        change: Cmd,
        names: &str,
        audit: Option<&AuditEntry>,
    ) -> Result<u64> {
        let mut commands = Pipeline::new();
        commands.add_command(change);
        if let Some(announcement) = announcement(&self.keys, kind, ("names", names), audit) {
            commands.add_command(announcement);
        }
        // A denied message does not undo the change: late subscribers read the hash.
        let mut answers = self.client.exchange(WRITE, &commands).await?.into_iter();
        match answers.next() {
            Some(Ok(changed)) => Ok(redis::from_redis_value(changed).unwrap_or_default()),
            Some(Err(error)) => {
                let key = self.keys.paused();
                Err(self.client.refusal(WRITE, &error, Some(&key)))
            }
            None => Ok(0),
        }
    }
}
