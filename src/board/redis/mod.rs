//! The Redis board, in TaskFlow's format.

mod events;
mod examine;
mod keys;
mod link;
mod pauses;
mod read;
mod registry;
mod rights;
mod scratch;
mod write;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use redis::{Pipeline, Value};

use self::{
    keys::Keys,
    link::{READ, RedisClient},
    registry::RedisEntry,
    write::post::PredictedNumbers,
};
use super::{
    Board, Capabilities, ClaimRules, Events, Health, InitialListing, JobRef, PeerOrder, PeerTraits,
    Posted, Query, Result, Settled,
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
        Location, MoveRecord, Pause, Purge, Revision, Settlement,
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
}

#[async_trait]
impl Board for Redis {
    fn url(&self) -> &str {
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

    async fn registry(&self) -> Result<(Vec<Conductor>, Examined)> {
        self.registered().await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        self.store_pause(pause).await
    }

    async fn resume(&self, names: &str, audit: &AuditEntry) -> Result<bool> {
        self.end_pause(names, audit).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        self.stored_pauses().await
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        self.store_move(record).await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        self.stored_moves().await
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        self.delete_moves(records).await
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
            problem: memory.as_ref().and_then(|it| self.memory_problem(it)),
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
