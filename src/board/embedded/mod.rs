//! The embedded board: one SQLite file that many processes of one machine share, and no server.

mod departed;
mod events;
mod examine;
mod moves;
mod past;
mod pauses;
mod read;
mod registry;
pub(crate) mod scratch;
mod store;
mod write;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{stream, stream::BoxStream};
use rusqlite::Transaction;

pub(crate) use self::store::{Durability, file::Options};
use self::{
    registry::Entrant,
    store::{clock::Moment, file::File, view::View},
    write::change::{Step, each},
};
use super::{
    Board, BoardError, Capabilities, ClaimRules, Detail, Events, Health, JobRef, Posted, Query,
    Result, Settled,
    examine::{Examined, Part},
    pages,
    registration::Registration,
    wire::past::find as find_past,
};
use crate::job::{
    Claim, Claimant, Claimed, Conductor, Draft, Entry, JobKey, MoveRecord, Pause, Purge, Remark,
    Restore, Settlement, Shelf, Told,
};

pub(crate) struct Embedded {
    file: Arc<File>,
    registration: Registration,
}

impl Embedded {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            file: Arc::new(File::new(options)),
            registration: Registration::default(),
        }
    }

    async fn past(&self) -> Result<Vec<Entry>> {
        let history = self.file.options.history;
        let past = self
            .file
            .read(|transaction, view| past::entries(transaction, view, history));
        Ok(past.await?.unwrap_or_default())
    }

    async fn each<T: Sync, A>(
        &self,
        all: &[T],
        key: impl Fn(&T) -> &JobKey,
        change: impl Fn(&Transaction<'_>, Moment, &T) -> Step<A>,
    ) -> Result<Vec<Result<A>>> {
        let changed = self.file.write(|transaction, now| {
            each(transaction, all, &key, |one| change(transaction, now, one))
        });
        Ok(changed.await?.unwrap_or_else(|| no_such_jobs(all.len())))
    }
}

#[async_trait]
impl Board for Embedded {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: true,
            peer_order: None,
        }
    }

    async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        self.file
            .write_new(|transaction, now| {
                drafts
                    .iter()
                    .map(|draft| match draft.with_former() {
                        None => write::change::post(transaction, now, draft, claimant),
                        Some((draft, former)) => {
                            write::load::load(transaction, now, (draft, former), claimant)
                        }
                    })
                    .collect()
            })
            .await
    }

    fn entries(&self, query: Query) -> BoxStream<'_, Result<Entry>> {
        if query.shelf == Shelf::Past {
            return pages::flatten(stream::once(self.past()));
        }
        let pages = stream::try_unfold(
            read::look::Cursor::new(query),
            move |mut cursor| async move {
                if cursor.is_at_end() {
                    return Ok(None);
                }
                let page = self
                    .file
                    .read(|transaction, view| {
                        let view = view.reading(self.file.options.limit);
                        read::look::page(transaction, &view, &mut cursor)
                    })
                    .await?;
                Ok(page.map(|page| (page, cursor)))
            },
        );
        pages::flatten(pages)
    }

    async fn find(&self, shelf: Shelf, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        if shelf == Shelf::Past {
            return find_past(self.entries(Query::all(shelf, Detail::Brief)), wanted).await;
        }
        let found = self
            .file
            .read(|transaction, view| {
                let view = view.reading(self.file.options.limit);
                wanted
                    .iter()
                    .map(|wanted| read::look::find(transaction, &view, shelf, wanted))
                    .collect()
            })
            .await?;
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
            .write(|transaction, now| {
                let view = View::of_this_boot(now).reading(self.file.options.limit);
                write::change::claim(transaction, &view, keys, by, most, rules)
            })
            .await?;
        Ok(claimed.unwrap_or_else(|| no_such_jobs(keys.len())))
    }

    async fn lease_term(&self, wanted: Duration) -> Result<Duration> {
        Ok(wanted)
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        self.each(claims, |claim| &claim.key, write::change::renew)
            .await
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let history = self.file.options.history;
        let settle = |transaction: &Transaction<'_>, now, settlement: &Settlement| {
            write::settle::settle(transaction, now, settlement, history)
        };
        self.each(settlements, |settlement| &settlement.key, settle)
            .await
    }

    async fn restore(&self, jobs: &[Restore]) -> Result<Vec<Result<()>>> {
        let limit = self.file.options.limit;
        let restore = |transaction: &Transaction<'_>, now, job: &Restore| {
            write::settle::restore(transaction, now, job, limit)
        };
        self.each(jobs, |job| &job.key, restore).await
    }

    async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        let history = self.file.options.history;
        let purge = |transaction: &Transaction<'_>, now, purge: &Purge| {
            write::settle::purge(transaction, now, purge, history)
        };
        self.each(purges, |purge| &purge.key, purge).await
    }

    async fn events(&self) -> Result<Events<'_>> {
        let stream = events::watch::events(&self.file).await?;
        Ok(Events { stream, lack: None })
    }

    async fn register(&self, conductor: &Conductor) -> Result<()> {
        let file = Arc::clone(&self.file);
        let entrant = Entrant::enter(file, conductor.clone()).await?;
        self.registration.begin(entrant);
        Ok(())
    }

    async fn tell(&self, told: &Told) -> Result<()> {
        self.registration.tell(told).await
    }

    async fn conductors(&self) -> Result<Vec<Conductor>> {
        let conductors = self.file.read(registry::conductors).await?;
        Ok(conductors.unwrap_or_default())
    }

    async fn pause(&self, pause: &Pause) -> Result<()> {
        self.file
            .write_new(|transaction, now| pauses::pause(transaction, now, pause))
            .await
    }

    async fn resume(&self, names: &str, remark: &Remark) -> Result<bool> {
        let resumed = self
            .file
            .write(|transaction, now| pauses::resume(transaction, now, names, remark));
        Ok(resumed.await?.unwrap_or_default())
    }

    async fn pauses(&self) -> Result<Vec<Pause>> {
        let pauses = self.file.read(|transaction, _| pauses::pauses(transaction));
        Ok(pauses.await?.unwrap_or_default())
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        let kept = self
            .file
            .write_new(|transaction, _| moves::keep(transaction, record));
        kept.await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        let records = self.file.read(|transaction, _| moves::records(transaction));
        Ok(records.await?.unwrap_or_default())
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        let delete = self
            .file
            .write(|transaction, _| moves::delete(transaction, records));
        delete.await.map(drop)
    }

    async fn health(&self) -> Result<Health> {
        let counts = self.file.read(read::look::counts).await?;
        let (jobs, trashed, is_used) = counts.unwrap_or_default();
        Ok(Health {
            server: format!("SQLite {}", rusqlite::version()),
            jobs,
            trashed,
            trashed_beside: 0,
            is_used,
            warning: None,
        })
    }

    async fn examine(&self, part: Part) -> Result<Examined> {
        self.look_at(part).await
    }

    async fn try_past(&self) -> Result<()> {
        let read = self
            .file
            .read(|transaction, view| past::entries(transaction, view, 1));
        match read.await? {
            Some(_) => self.file.is_writable(),
            None => Ok(()),
        }
    }

    async fn close(&self) {
        self.registration.leave().await;
        self.file.close();
    }
}

fn no_such_jobs<T>(count: usize) -> Vec<Result<T>> {
    (0..count).map(|_| Err(BoardError::NoSuchJob)).collect()
}
