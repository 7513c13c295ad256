//! Pauses and move records: a hash each.

use std::{collections::BTreeMap, pin::pin};

use futures_util::TryStreamExt;
use redis::{Cmd, Pipeline};

use super::{Redis, events::message::announcement, link::WRITE};
use crate::{
    board::{EventKind, Result},
    job::{AuditEntry, MOST_PAUSES, MOST_RECORDS, MoveRecord, Pause},
};

impl Redis {
    pub(super) async fn put_pause(&self, pause: &Pause) -> Result<()> {
        let set = Cmd::hset(self.keys.paused(), &pause.names, pause.write());
        let (names, audit) = (pause.names.as_str(), Some(&pause.audit));
        self.change_pause(EventKind::Paused, set, names, audit)
            .await
            .map(drop)
    }

    pub(super) async fn delete_pause(&self, names: &str, audit: &AuditEntry) -> Result<bool> {
        let delete = Cmd::hdel(self.keys.paused(), names);
        let deleted = self.change_pause(EventKind::Resumed, delete, names, Some(audit));
        if deleted.await? > 0 {
            return Ok(true);
        }
        // The name of an unreadable pause may differ from its field.
        let mut pages = pin!(self.client.fields(self.keys.paused(), 200));
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

    pub(super) async fn all_pauses(&self) -> Result<Vec<Pause>> {
        let count = self.client.read(&Cmd::hlen(self.keys.paused())).await?;
        let mut found = BTreeMap::new();
        let mut pages = pin!(self.client.fields(self.keys.paused(), 200));
        while found.len() < MOST_PAUSES
            && let Some(page) = pages.try_next().await?
        {
            let read = page.iter().map(|(field, text)| Pause::read(field, text));
            found.extend(read.map(|pause| (pause.names.clone(), pause)));
        }
        Ok(Pause::bounded(found.into_values().collect(), count))
    }

    pub(super) async fn put_move(&self, record: &MoveRecord) -> Result<()> {
        let set = Cmd::hset(self.keys.moves(), record.key(), record.value());
        self.client.ask::<u64>(WRITE, &set).await.map(drop)
    }

    pub(super) async fn move_records(&self) -> Result<Vec<MoveRecord>> {
        let mut records = Vec::new();
        let mut pages = pin!(self.client.fields(self.keys.moves(), 1000));
        while records.len() < MOST_RECORDS
            && let Some(page) = pages.try_next().await?
        {
            records.extend(page.iter().filter_map(|(key, value)| {
                let (key, value) = (std::str::from_utf8(key), std::str::from_utf8(value));
                MoveRecord::read(key.ok()?, value.ok()?)
            }));
        }
        records.truncate(MOST_RECORDS);
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
