//! The Redis board: the live board that Python TaskFlow uses.

mod events;
mod examine;
mod keys;
mod link;
mod moves;
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
use futures_util::{Stream, stream::BoxStream};
use redis::Pipeline;

use self::{
    keys::Keys,
    link::Client,
    registry::Entrant,
    write::{change::Target, predicted::PredictedNumbers},
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Detail, Events, Health, JobRef, Onlooker,
    PeerOrder, Posted, Query, Result, Settled,
    examine::{Examined, Part},
    pages,
    registration::Registration,
    url::redis::RedisUrl,
    wire::{past, posting::Limit},
};
use crate::{
    job::{
        Claim, Claimant, Claimed, Conductor, Draft, Entry, JobKey, MoveRecord, Pause, Purge,
        Remark, Restore, Settlement, Shelf, Told,
    },
    secret::Secret,
};

pub(crate) struct Redis {
    client: Arc<Client>,
    keys: Keys,
    predicted: PredictedNumbers,
    registration: Registration,
    history: u32,
}

impl Redis {
    /// Connects on the first request.
    pub(crate) fn new(
        url: &RedisUrl,
        password: Option<Secret>,
        op_timeout: Duration,
        limit: Limit,
        history: u32,
    ) -> Self {
        let mut client = Client::new(url, password, op_timeout);
        client.limit = limit;
        Self {
            client: Arc::new(client),
            keys: Keys::of(url.namespace.as_deref()),
            predicted: PredictedNumbers::default(),
            registration: Registration::default(),
            history,
        }
    }

    fn target(&self) -> Target<'_> {
        Target {
            client: &self.client,
            keys: &self.keys,
            predicted: &self.predicted,
            history: self.history,
        }
    }

    fn past(&self) -> impl Stream<Item = Result<Vec<Entry>>> + Send + '_ {
        read::past::pages(&self.client, &self.keys, self.history)
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
            peer_order: Some(PeerOrder::NewestOfTheMostUrgent),
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        self.target().post(drafts, claimant).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.shelf == Shelf::Past {
            return pages::flatten(self.past());
        }
        pages::flatten(read::look::pages(&self.client, &self.keys, query))
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if shelf == Shelf::Past {
            return past::find(self.entries(Query::all(shelf, Detail::Brief)), wanted).await;
        }
        read::look::find(&self.client, &self.keys, shelf, wanted).await
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        self.target().claim(keys, by, most, rules).await
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        self.target().renew(claims).await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.target().settle(settlements).await
    }

    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>> {
        self.target().restore(jobs).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        self.target().purge(purges).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        events::events(self, None).await
    }

    async fn events_and_jobs(&self, onlooker: Onlooker<'_>) -> Result<Events<'_>> {
        events::events(self, Some(onlooker)).await
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let client = Arc::clone(&self.client);
        let entrant = Entrant::enter(client, self.keys.clone(), conductor).await?;
        self.registration.begin(entrant);
        Ok(())
    }

    async fn tell(&self, told: &Told) -> Result<()> {
        self.registration.tell(told).await
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        registry::conductors(&self.client, &self.keys).await
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        pauses::pause(&self.client, &self.keys, pause).await
    }

    async fn resume(&self, names: &str, remark: &Remark) -> Result<bool> {
        pauses::resume(&self.client, &self.keys, names, remark).await
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        pauses::pauses(&self.client, &self.keys).await
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        moves::begin(&self.client, &self.keys, record).await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        moves::records(&self.client, &self.keys).await
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        moves::delete(&self.client, &self.keys, records).await
    }

    async fn health(&self) -> Result<Health> {
        const DOING: &str = "read";
        let mut commands = Pipeline::new();
        commands.cmd("HLEN").arg(self.keys.listings());
        commands.cmd("HLEN").arg(self.keys.trash());
        commands.cmd("EXISTS").arg(self.keys.sequence());
        commands.cmd("INFO").arg("memory");
        let mut answers = self.client.ask_all(DOING, &commands).await?;
        // Without permission the value stays unknown.
        let memory = answers.pop().and_then(std::result::Result::ok);
        let mut numbers = Vec::with_capacity(answers.len());
        let keys = [
            self.keys.listings(),
            self.keys.trash(),
            self.keys.sequence(),
        ];
        for (answer, key) in answers.into_iter().zip(keys) {
            numbers.push(match answer {
                Ok(redis::Value::Int(number)) => number.unsigned_abs(),
                Ok(_) => 0,
                Err(error) => return Err(self.client.refusal_of(DOING, &error, key.as_ref())),
            });
        }
        let [jobs, trashed, numbered] = numbers[..] else {
            return Err(BoardError::Failed {
                doing: DOING,
                board: self.name().to_owned(),
                source: "the server sent an unexpected reply".into(),
            });
        };
        Ok(Health {
            server: self.client.software(DOING).await?,
            jobs,
            trashed,
            trashed_beside: 0,
            is_used: jobs + trashed + numbered > 0,
            warning: memory.as_ref().and_then(examine::eviction),
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        self.look_at(part).await
    }

    async fn try_past(&self) -> Result<()> {
        read::past::try_it(&self.client, &self.keys).await
    }

    async fn close(&self) {
        self.registration.leave().await;
        self.client.close().await;
    }
}
