//! Restoring, retrying, editing and purging jobs.

use chrono::Utc;
use futures_util::future::join_all;
use zookeeper_client::Error;

use super::{marker::uuid_of, post::MAX_POSTING_BYTES};
use crate::{
    board::{
        BoardError, Detail, Result, Settled,
        error::{NodeConflict, Unsupported},
        wire::{history::HistoryRecord, json, posting::Limit},
        zookeeper::{
            JOBS_PER_BATCH, TRIES,
            board_session::BoardSession,
            link::transaction::RefusedStep,
            paths::{NodeKind, is_numbered},
            read::record::JobNodes,
        },
    },
    job::{Edit, JobChange, Location, Purge, Revision},
};

impl BoardSession<'_> {
    pub(crate) async fn revise(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        let mut answers = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(JOBS_PER_BATCH) {
            answers.extend(join_all(jobs.iter().map(|one| self.revise_one(one))).await);
        }
        Ok(answers)
    }

    pub(crate) async fn purge(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        let mut answers = Vec::with_capacity(purges.len());
        for purges in purges.chunks(JOBS_PER_BATCH) {
            answers.extend(join_all(purges.iter().map(|one| self.purge_one(one))).await);
        }
        Ok(answers)
    }

    async fn revise_one(&self, revision: &Revision) -> Result<()> {
        let is_trashed = revision.location == Location::Trash;
        for _ in 0..TRIES {
            let found = self.record(revision.location, &revision.key).await?;
            let record = self.require(found.as_ref())?;
            let tried = match (is_trashed, &revision.change) {
                (false, _) => self.try_to_revise_on_board(record, revision).await?,
                (true, JobChange::Edit(edit)) => {
                    self.try_to_edit_in_trash(record, revision, edit).await?
                }
                (true, JobChange::Restart | JobChange::Continue) => {
                    self.try_to_restore(record, revision).await?
                }
            };
            let Err(refused) = tried else {
                return Ok(());
            };
            if is_trashed && refused.kind == NodeKind::Job && refused.error == Error::NodeExists {
                return Err(self.taken(record).await?);
            }
            self.prepare_retry(&refused).await?;
        }
        Err(BoardError::Changed)
    }

    async fn try_to_restore(
        &self,
        record: &JobNodes,
        revision: &Revision,
    ) -> Result<Result<(), RefusedStep>> {
        if !is_numbered(&revision.key) {
            return Err(Unsupported::NameWithoutNumber.into());
        }
        let mark = self.mark_of(record).await?;
        if mark.as_ref().is_some_and(|mark| mark.on_board.is_some()) {
            return Err(exists(record));
        }
        let stray = self.session.read_one(&self.paths.lock(&record.key)).await?;
        let mut transaction = self.transaction();
        // Delete before creating: followers of the nodes can then distinguish it from a new job.
        let version = record.posting.stat.version;
        transaction.delete(NodeKind::TrashedJob, &record.key, version);
        // A lock left by an earlier life of the job would claim it.
        if let Some(node) = stray {
            transaction.delete(NodeKind::Lock, &record.key, node.stat.version);
        }
        transaction.create(NodeKind::Job, &record.key, &record.posting.data);
        if record.side.is_some() || revision.audit.is_some() {
            let side = record
                .side()
                .map(|side| side.restarted(revision, Utc::now()));
            let side = side.transpose()?;
            transaction.put_side(&record.key, &record.side, side.as_ref());
        }
        if let Some(mark) = &mark {
            mark.move_to_board(&mut transaction, &record.key);
        }
        self.commit(transaction).await
    }

    /// Edits a job in the trash. Without a sidecar, its board stays unknown.
    async fn try_to_edit_in_trash(
        &self,
        record: &JobNodes,
        revision: &Revision,
        edit: &Edit,
    ) -> Result<Result<(), RefusedStep>> {
        record.require_job()?;
        let (key, posting) = (&record.key, self.edited(record, edit)?);
        let mut transaction = self.transaction();
        transaction.set(
            NodeKind::TrashedJob,
            key,
            &posting,
            record.posting.stat.version,
        );
        // The job of this key on the board may be another one, where boards share a trash.
        let on_board = self.paths.job(Location::Board, key);
        if record.side.is_some()
            && let Ok(mut side) = record.readable_side()
            && self.session.read_one(&on_board).await?.is_none()
        {
            side.audit = revision.audit.clone();
            transaction.put_side(key, &record.side, Some(&side));
        }
        self.commit(transaction).await
    }

    async fn try_to_revise_on_board(
        &self,
        record: &JobNodes,
        revision: &Revision,
    ) -> Result<Result<(), RefusedStep>> {
        if record.lock.is_some() {
            return Err(BoardError::AlreadyClaimed {
                owner: record.owner(),
            });
        }
        record.require_job()?;
        let side = record.readable_side();
        let mut side = side.map_err(|problem| BoardError::Unclaimable { problem })?;
        let posting = match &revision.change {
            JobChange::Edit(edit) => {
                side.audit = revision.audit.clone();
                self.edited(record, edit)?
            }
            JobChange::Restart | JobChange::Continue => {
                side = side.restarted(revision, Utc::now())?;
                record.posting.data.clone()
            }
        };
        let (key, version) = (&record.key, record.posting.stat.version);
        let mut transaction = self.transaction();
        // Holding the lock proves that the job is unclaimed. Followers of the nodes learn the event from the writes
        // in between, not from the sidecar.
        transaction.create(NodeKind::Lock, key, b"{}");
        transaction.set(NodeKind::Job, key, &posting, version);
        transaction.delete(NodeKind::Lock, key, 0);
        transaction.put_side(key, &record.side, Some(&side));
        self.commit(transaction).await
    }

    fn edited(&self, record: &JobNodes, edit: &Edit) -> Result<Vec<u8>> {
        let edited = json::edited(&record.posting.data, edit, Limit::USUAL);
        let edited = edited.map_err(|problem| BoardError::malformed(&record.key, problem))?;
        match edited.len() > MAX_POSTING_BYTES {
            true => Err(self.too_large(edited.len())),
            false => Ok(edited),
        }
    }

    async fn taken(&self, record: &JobNodes) -> Result<BoardError> {
        let there = self.record(Location::Board, &record.key).await?;
        let is_it = |there: &JobNodes| {
            let uuid = uuid_of(&there.posting);
            uuid.is_some() && uuid == uuid_of(&record.posting)
        };
        Ok(match there.as_ref().is_some_and(is_it) {
            true => exists(record),
            false => NodeConflict::OnBoard(self.paths.job(Location::Board, &record.key)).into(),
        })
    }

    async fn purge_one(&self, purge: &Purge) -> Result<Settled> {
        let key = &purge.key;
        let mut settled = Settled::default();
        for _ in 0..TRIES {
            let found = self.record(Location::Trash, key).await?;
            let record = self.require(found.as_ref())?;
            let mut transaction = self.transaction();
            transaction.delete(NodeKind::TrashedJob, key, record.posting.stat.version);
            // The job of this key on the board may be another one, where boards share a trash.
            let on_board = self.paths.job(Location::Board, key);
            if let Some(node) = &record.side
                && self.session.read_one(&on_board).await?.is_none()
            {
                transaction.delete(NodeKind::Sidecar, key, node.stat.version);
            }
            if settled.forgotten.is_none() {
                let ended = HistoryRecord::purged(purge, Utc::now());
                self.add_to_history(&mut transaction, record, ended);
            }
            match self.commit(transaction).await? {
                Ok(()) => return Ok(settled),
                // It went meanwhile; the next read shows it.
                Err(refused)
                    if refused.kind == NodeKind::TrashedJob && refused.error == Error::NoNode => {}
                Err(refused) if refused.kind == NodeKind::History => {
                    settled.forgotten = self.prepare_history_retry(&refused).await?;
                }
                Err(refused) => self.prepare_retry(&refused).await?,
            }
        }
        Err(BoardError::Changed)
    }
}

fn exists(record: &JobNodes) -> BoardError {
    let uuid =
        json::decode(&record.posting.data, Detail::Brief, Limit::USUAL).map(|posting| posting.uuid);
    BoardError::exists(uuid.unwrap_or_else(|_| record.key.to_string()))
}
