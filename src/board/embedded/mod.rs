//! The embedded board: one SQLite file that many processes of one machine share, and no server.

mod events;
mod examine;
mod expiry;
mod history;
mod pauses;
mod read;
mod registry;
pub(crate) mod scratch;
mod store;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{stream, stream::BoxStream};

pub(crate) use self::store::FileOptions;
use self::{
    read::look,
    registry::ConductorRow,
    store::{file::BoardFile, transaction::Change},
    write::{StepResult, answer},
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Events, Health, JobRef, Posted, Query, Result,
    Settled,
    examine::{Examined, Part},
    own_entry::{OwnEntry, crowded},
    pages,
    reference::find_ended,
};
use crate::job::{
    AuditEntry, Claim, Claimant, Claimed, Conductor, ConductorReport, Draft, Entry, JobKey,
    Location, MoveRecord, Pause, Purge, Revision, Settlement,
};

pub(crate) struct Embedded {
    file: Arc<BoardFile>,
    own_entry: OwnEntry,
}

impl Embedded {
    pub(crate) fn new(options: FileOptions) -> Self {
        Self {
            file: Arc::new(BoardFile::new(options, expiry::expire)),
            own_entry: OwnEntry::default(),
        }
    }

    async fn history(&self) -> Result<Vec<Entry>> {
        let entries = self.file.read(|view| history::entries(view, view.history));
        Ok(entries.await?.unwrap_or_default())
    }

    async fn each<T: Sync, A>(
        &self,
        all: &[T],
        key: impl Fn(&T) -> &JobKey,
        step: impl Fn(&Change<'_>, &T) -> StepResult<A>,
    ) -> Result<Vec<Result<A>>> {
        let changed = self.file.write(|change| change.each(all, &key, &step));
        Ok(changed.await?.unwrap_or_else(|| no_such_jobs(all.len())))
    }
}

#[async_trait]
impl Board for Embedded {
    fn url(&self) -> &str {
        &self.file.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: true,
            finds_by_uuid: true,
            ..Capabilities::default()
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let post = |change: &Change<'_>| {
            let posted = drafts
                .iter()
                .map(|draft| answer(change.post(draft, claimant)));
            posted.collect()
        };
        self.file.write_new(post).await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.location == Location::History {
            return pages::flatten(stream::once(self.history()));
        }
        let cursor = look::PageCursor::new(query);
        let pages = stream::try_unfold(cursor, move |mut cursor| async move {
            if cursor.is_at_end {
                return Ok(None);
            }
            let page = self.file.read(|view| look::page(view, &mut cursor));
            Ok(page.await?.map(|page| (page, cursor)))
        });
        pages::flatten(pages)
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if location == Location::History {
            return find_ended(self, wanted).await;
        }
        let found = self.file.read(|view| {
            let find = |wanted| look::find(view, location, wanted);
            wanted.iter().map(find).collect()
        });
        let found: Option<Vec<_>> = found.await?;
        Ok(found.unwrap_or_else(|| vec![Vec::new(); wanted.len()]))
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let claimed = self
            .file
            .write(|change| change.claim(keys, by, most, rules));
        Ok(claimed.await?.unwrap_or_else(|| no_such_jobs(keys.len())))
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        self.each(claims, |claim| &claim.key, |change, it| change.renew(it))
            .await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        self.each(settlements, |one| &one.key, |change, it| change.settle(it))
            .await
    }

    async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        self.each(jobs, |job| &job.key, |change, it| change.revise(it))
            .await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        self.each(purges, |purge| &purge.key, |change, it| change.purge(it))
            .await
    }

    async fn events(&self) -> Result<Events<'_>> {
        let stream = events::watch::events(&self.file).await?;
        Ok(Events { stream, lack: None })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let file = Arc::clone(&self.file);
        let row = ConductorRow::enter(file, conductor.clone()).await?;
        self.own_entry.begin(row);
        Ok(())
    }

    async fn publish(&self, report: &ConductorReport) -> Result<()> {
        self.own_entry.publish(report).await
    }

    async fn registry(&self) -> Result<(Vec<Conductor>, Examined)> {
        let conductors = self.file.read(registry::conductors).await?;
        let (known, count) = conductors.unwrap_or_default();
        Ok((crowded(known, count)?, Examined::default()))
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        self.file.write_new(|change| change.pause(pause)).await
    }

    async fn resume(&self, names: &str, audit: &AuditEntry) -> Result<bool> {
        let resumed = self.file.write(|change| change.resume(names, audit));
        Ok(resumed.await?.unwrap_or_default())
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        Ok(self.file.read(pauses::pauses).await?.unwrap_or_default())
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        self.file.write_new(|change| change.put_move(record)).await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        Ok(self.file.read(pauses::moves).await?.unwrap_or_default())
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        let deleted = self.file.write(|change| change.delete_moves(records));
        deleted.await.map(drop)
    }

    async fn health(&self) -> Result<Health> {
        let counts = self.file.read(look::counts).await?;
        let (jobs, trashed, is_used) = counts.unwrap_or_default();
        Ok(Health {
            server: format!("SQLite {}", rusqlite::version()),
            jobs,
            trashed,
            trashed_by_siblings: 0,
            is_used,
            problem: None,
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        self.examine_part(part).await
    }

    async fn close(&self) {
        self.own_entry.leave().await;
        self.file.close();
    }
}

fn no_such_jobs<T>(count: usize) -> Vec<Result<T>> {
    (0..count).map(|_| Err(BoardError::NoSuchJob)).collect()
}
