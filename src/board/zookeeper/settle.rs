//! Abandoning, consuming and trashing jobs.

use chrono::Utc;
use futures_util::future::join_all;
use zookeeper_client::{CreateMode, Error};

use super::{
    TRIES, Target,
    look::records,
    marker::Mark,
    record::Record,
    transaction::{Refused, Step, Transaction},
};
use crate::{
    board::{BoardError, Result, Settled},
    job::{Aftermath, Authority, Failure, Outcome, Settlement, Shelf, Witness},
};

impl<'t> Target<'t> {
    pub(super) async fn settle(self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let keys: Vec<_> = settlements.iter().map(|one| one.key.clone()).collect();
        let found = records(self.session, self.paths, Shelf::Board, &keys).await?;
        let settled = settlements.iter().zip(found);
        Ok(join_all(settled.map(|(one, found)| self.settle_one(one, found))).await)
    }

    async fn settle_one(
        self,
        settlement: &Settlement,
        mut found: Option<Record>,
    ) -> Result<Settled> {
        for _ in 0..TRIES {
            let record = found.as_ref().ok_or(BoardError::NoSuchJob)?;
            permit(record, settlement)?;
            let mark = match &settlement.outcome {
                Outcome::Trash(_) => self.mark_of(record).await?,
                Outcome::Abandon(_) | Outcome::Consume => None,
            };
            let transaction = self.settling(record, &settlement.outcome, mark.as_ref());
            match transaction
                .commit()
                .await
                .map_err(|failure| self.unknown(failure))?
            {
                Ok(_) => {
                    return Ok(Settled {
                        replaced_namesake: mark.is_some_and(|mark| mark.has_namesake()),
                    });
                }
                Err(refused) => self.make_way(refused).await?,
            }
            found = self.record(Shelf::Board, &settlement.key).await?;
        }
        Err(BoardError::Changed)
    }

    /// Takes the steps of an outcome, all under the condition that nothing has changed.
    fn settling(self, record: &Record, outcome: &Outcome, mark: Option<&Mark>) -> Transaction<'t> {
        let mut transaction = self.transaction();
        if let Outcome::Trash(_) = outcome {
            if let Some(mark) = mark {
                mark.move_to_trash(&mut transaction, self.paths, &record.key);
            }
            let path = self.paths.job(Shelf::Trash, &record.key);
            let posting = &record.posting.data;
            transaction.create(Step::Trashed, path, posting, CreateMode::Persistent);
        }
        let lock = self.paths.lock(&record.key);
        // That nobody holds it is proven by holding it. Whoever follows the nodes can tell this
        // from a claim, because the job goes in between.
        match &record.lock {
            Some(node) => transaction.delete(Step::Lock, lock.clone(), node.stat.version),
            None => transaction.create(Step::Lock, lock.clone(), b"{}", CreateMode::Persistent),
        }
        let (job, version) = (
            self.paths.job(Shelf::Board, &record.key),
            record.posting.stat.version,
        );
        match outcome {
            Outcome::Abandon(_) => transaction.check(Step::Job, job, version),
            Outcome::Consume | Outcome::Trash(_) => transaction.delete(Step::Job, job, version),
        }
        if record.lock.is_none() {
            transaction.delete(Step::Lock, lock, 0);
        }
        self.note(&mut transaction, record, outcome);
        transaction
    }

    /// Keeps the record beside the job up to date; also makes sure that nobody else changed it.
    fn note(self, transaction: &mut Transaction<'_>, record: &Record, outcome: &Outcome) {
        let path = self.paths.side(&record.key);
        let side = match outcome {
            Outcome::Consume => {
                return match &record.side {
                    Some(node) => transaction.delete(Step::Side, path, node.stat.version),
                    None => transaction.assert_absent(Step::Side, path),
                };
            }
            Outcome::Abandon(Aftermath::None) => {
                return match &record.side {
                    Some(node) => transaction.check(Step::Side, path, node.stat.version),
                    None => transaction.assert_absent(Step::Side, path),
                };
            }
            Outcome::Abandon(aftermath) => record.side().map(|mut side| {
                side.note(aftermath);
                side
            }),
            Outcome::Trash(failure) => record.side().map(|mut side| {
                failure
                    .iter()
                    .for_each(|failure: &Failure| side.note_failure(failure));
                side.trashed_on = Some(Utc::now());
                side.created_on = record.created_on();
                side
            }),
        };
        transaction.put(Step::Side, path, &record.side, side.as_ref());
    }

    /// Prepares for another attempt after a refused one; an error, if there is no use in it.
    pub(super) async fn make_way(self, refused: Refused) -> Result<()> {
        match (refused.step, &refused.error) {
            (Step::Trashed, Error::NodeExists) => {
                Err(BoardError::TrashTaken { node: refused.path })
            }
            // What is not there is the folder that they are in.
            (Step::Trashed, Error::NoNode) => {
                self.make_folder(&self.paths.folder(Shelf::Trash)).await
            }
            (Step::Side, Error::NoNode) => self.make_folder(&self.paths.sides()).await,
            (Step::Marker, Error::NoNode) => self.make_folder(&self.paths.markers()).await,
            // Somebody was quicker: what that means is decided by how things are now.
            (_, Error::NoNode | Error::NodeExists | Error::BadVersion) => Ok(()),
            (_, _) => Err(self
                .session
                .refusal(super::transaction::WRITING, &refused.error)),
        }
    }
}

/// Whether somebody has the right to this, as the job was read.
fn permit(record: &Record, settlement: &Settlement) -> Result<()> {
    match &settlement.authority {
        Authority::Owner(owner) => record.is_claimed_by(owner, None),
        Authority::Claim(owner, fence) => record.is_claimed_by(owner, Some(fence)),
        Authority::Override(Witness::Unclaimed) => match (record.holding().0, &record.lock) {
            (Some(_), _) => Err(BoardError::Changed),
            (None, None) if matches!(settlement.outcome, Outcome::Abandon(_)) => {
                Err(BoardError::NotClaimed)
            }
            (None, _) => Ok(()),
        },
        Authority::Override(Witness::Claimed { owner, fence }) => {
            let holding = record.holding().0.ok_or(BoardError::Changed)?;
            let is_other_claim = fence.is_some() && holding.fence != *fence;
            if holding.owner != *owner || is_other_claim {
                return Err(BoardError::Changed);
            }
            Ok(())
        }
    }
}
