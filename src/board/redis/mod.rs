//! The Redis board, in TaskFlow's format.

mod events;
mod examine;
mod keys;
mod link;
mod read;
mod registry;
mod rights;
mod scratch;
mod write;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{TryStreamExt, stream::BoxStream};
use redis::{Cmd, Pipeline, Value};

use self::{
    events::message::announcement,
    keys::Keys,
    link::{READ, RedisClient, WRITE},
    registry::RedisEntry,
    write::post::PredictedNumbers,
};
use super::{
    Board, Capabilities, ClaimRules, EventKind, Events, Health, InitialListing, JobRef, PeerOrder,
    PeerTraits, Posted, Query, Result, Settled,
    examine::{Examined, Part},
    own_entry::OwnEntry,
    pages,
    reference::find_ended,
    url::redis::RedisUrl,
    wire::posting::Limit,
};
use crate::{
    job::{
        AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey,
        Location, MAX_PAUSES, MAX_RECORDS, MoveRecord, Pause, Purge, Revision, Settlement,
    },
    secret::Secret,
};

pub(crate) struct Redis {
    client: Arc<RedisClient>,
    keys: Keys,
    predicted: PredictedNumbers,
    own_entry: OwnEntry,
    history: u32,
}

impl Redis {
    pub(crate) fn new(
        url: &RedisUrl,
        password: Option<Secret>,
        op_timeout: Duration,
        limit: Limit,
        history: u32,
    ) -> Self {
        let mut client = RedisClient::new(url, password, op_timeout);
        client.limit = limit;
        Self {
            client: Arc::new(client),
            keys: Keys::of(url.namespace.as_deref()),
            predicted: PredictedNumbers::default(),
            own_entry: OwnEntry::default(),
            history,
        }
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

#[async_trait]
impl Board for Redis {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: true,
            finds_by_uuid: true,
            peers: Some(PeerTraits {
                order: PeerOrder::NewestOfTheMostUrgent,
                deletes_malformed: true,
            }),
            ..Capabilities::default()
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        self.post_jobs(drafts, claimant).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.location == Location::History {
            return pages::flatten(self.history_pages());
        }
        pages::flatten(self.pages(query))
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if location == Location::History {
            return find_ended(self, wanted).await;
        }
        self.matches(location, wanted).await
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        self.claim_jobs(keys, by, most, rules).await
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        self.renew_claims(claims).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.settle_jobs(settlements).await
    }

    async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        self.revise_jobs(jobs).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        self.purge_jobs(purges).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        events::events(self, None).await
    }

    async fn events_and_jobs(&self, listing: InitialListing<'_>) -> Result<Events<'_>> {
        events::events(self, Some(listing)).await
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let client = Arc::clone(&self.client);
        let entry = RedisEntry::enter(client, self.keys.clone(), conductor).await?;
        self.own_entry.begin(entry);
        Ok(())
    }

    async fn publish(&self, report: &ConductorReport) -> Result<()> {
        self.own_entry.publish(report).await
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        self.registered().await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        let set = Cmd::hset(self.keys.paused(), &pause.names, pause.write());
        let (names, audit) = (pause.names.as_str(), Some(&pause.audit));
        self.change_pause(EventKind::Paused, set, names, audit)
            .await
            .map(drop)
    }

    async fn resume(&self, names: &str, audit: &AuditEntry) -> Result<bool> {
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

    async fn pauses(&self) -> Result<Vec<Pause>> {
        let count = self.client.read(&Cmd::hlen(self.keys.paused())).await?;
        let mut found = BTreeMap::new();
        let mut pages = pin!(self.client.fields(self.keys.paused(), 200));
        while found.len() < MAX_PAUSES
            && let Some(page) = pages.try_next().await?
        {
            let read = page.iter().map(|(field, text)| Pause::read(field, text));
            found.extend(read.map(|pause| (pause.names.clone(), pause)));
        }
        Ok(Pause::bounded(found.into_values().collect(), count))
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        let set = Cmd::hset(self.keys.moves(), record.key(), record.value());
        self.client.ask::<u64>(WRITE, &set).await.map(drop)
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        let mut records = Vec::new();
        let mut pages = pin!(self.client.fields(self.keys.moves(), 1000));
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

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let keys: Vec<_> = records.iter().map(MoveRecord::key).collect();
        let delete = Cmd::hdel(self.keys.moves(), keys);
        self.client.ask::<u64>(WRITE, &delete).await.map(drop)
    }

    async fn health(&self) -> Result<Health> {
        let counted = [
            ("HLEN", self.keys.listings()),
            ("HLEN", self.keys.trash()),
            ("EXISTS", self.keys.sequence()),
        ];
        let mut commands = Pipeline::new();
        for (command, key) in &counted {
            commands.cmd(command).arg(key);
        }
        commands.cmd("INFO").arg("memory");
        let mut answers = self.client.exchange(READ, &commands).await?.into_iter();
        let mut counts = [0; 3];
        for ((count, (_, key)), answer) in counts.iter_mut().zip(&counted).zip(&mut answers) {
            *count = match answer {
                Ok(Value::Int(count)) => count.unsigned_abs(),
                Ok(_) => 0,
                Err(error) => return Err(self.client.refusal(READ, &error, Some(key))),
            };
        }
        let [jobs, trashed, numbered] = counts;
        // Without permission the value stays unknown.
        let memory = answers.next().and_then(std::result::Result::ok);
        Ok(Health {
            server: self.client.software().await?,
            jobs,
            trashed,
            trashed_by_siblings: 0,
            is_used: jobs + trashed + numbered > 0,
            warning: memory.as_ref().and_then(examine::eviction),
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        self.examine_part(part).await
    }

    async fn close(&self) {
        self.own_entry.leave().await;
        self.client.close().await;
    }
}
