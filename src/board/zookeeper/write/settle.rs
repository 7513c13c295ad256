//! Abandoning, consuming and trashing jobs.

use chrono::Utc;
use futures_util::future::join_all;
use zookeeper_client::Error;

use super::marker::Mark;
use crate::{
    board::{
        BoardError, Result, Settled,
        error::NodeConflict,
        net::failure::refuse_rest,
        rules::permit_settlement,
        wire::history::HistoryRecord,
        zookeeper::{
            JOBS_PER_BATCH, TRIES,
            board_session::BoardSession,
            link::transaction::{RefusedStep, Transaction},
            paths::{NodeKind, number_of},
            read::record::JobNodes,
        },
    },
    job::{Aftermath, Authority, Decision, ExpectedState, Location, Settlement},
};

impl BoardSession<'_> {
    pub(crate) async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let mut answers = Vec::with_capacity(settlements.len());
        for settlements in settlements.chunks(JOBS_PER_BATCH) {
            let keys: Vec<_> = settlements.iter().map(|one| one.key.clone()).collect();
            let found = match self.records(Location::Board, &keys).await {
                Ok(found) => found,
                Err(error) => {
                    let count = answers.len() + settlements.len();
                    refuse_rest(&mut answers, count, self.client.name(), error)?;
                    continue;
                }
            };
            let settled = settlements.iter().zip(found);
            answers.extend(join_all(settled.map(|(one, found)| self.settle_one(one, found))).await);
        }
        Ok(answers)
    }

    async fn settle_one(
        &self,
        settlement: &Settlement,
        mut found: Option<JobNodes>,
    ) -> Result<Settled> {
        let seen = claim_of(found.as_ref());
        // Why the history lacks the job.
        let mut forgotten = None;
        for _ in 0..TRIES {
            let mut record = self.permitted(settlement, found.as_ref(), &seen)?;
            let mut mark = None;
            if settlement.decision.is_trash() {
                mark = self.mark_of(record).await?;
                // Read again as late as possible: a peer's claim changes only the lock, and every lock begins with
                // version 0.
                found = self.record(Location::Board, &settlement.key).await?;
                record = self.permitted(settlement, found.as_ref(), &seen)?;
            }
            let mut transaction = self.settling(record, settlement, mark.as_ref());
            if settlement.decision.is_end() && forgotten.is_none() {
                let ended = HistoryRecord::of(settlement, Utc::now());
                self.add_to_history(&mut transaction, record, ended);
            }
            match self.commit(transaction).await? {
                Ok(()) => {
                    return Ok(Settled {
                        replaced_namesake: mark.is_some_and(|mark| mark.in_trash.is_some()),
                        forgotten,
                    });
                }
                Err(refused) if refused.kind == NodeKind::History => {
                    forgotten = self.prepare_history_retry(&refused).await?;
                }
                Err(refused) => self.prepare_retry(&refused).await?,
            }
            found = self.record(Location::Board, &settlement.key).await?;
        }
        Err(BoardError::Changed)
    }

    /// Returns the job if this settlement is allowed and the claim is still the one seen first.
    fn permitted<'r>(
        &self,
        settlement: &Settlement,
        found: Option<&'r JobNodes>,
        seen: &Option<(i64, Vec<u8>)>,
    ) -> Result<&'r JobNodes> {
        let record = self.require(found)?;
        permit(record, settlement)?;
        // Another claim of the same owner is a different claim.
        match claim_of(found) == *seen {
            true => Ok(record),
            false => Err(BoardError::Changed),
        }
    }

    fn settling(
        &self,
        record: &JobNodes,
        settlement: &Settlement,
        mark: Option<&Mark>,
    ) -> Transaction<'_> {
        let decision = &settlement.decision;
        let mut transaction = self.transaction();
        if decision.is_trash() {
            if let Some(mark) = mark {
                mark.move_to_trash(&mut transaction, &record.key);
            }
            transaction.create(NodeKind::TrashedJob, &record.key, &record.posting.data);
        }
        // Creating the lock proves that the job is unclaimed. Followers of the nodes can distinguish this from a claim,
        // because the job goes in between.
        match &record.lock {
            Some(node) => transaction.delete(NodeKind::Lock, &record.key, node.stat.version),
            None => transaction.create(NodeKind::Lock, &record.key, b"{}"),
        }
        let version = record.posting.stat.version;
        match decision {
            Decision::Abandon(_) => transaction.check(NodeKind::Job, &record.key, version),
            Decision::Consume
            | Decision::ConsumeFailed(_)
            | Decision::Trash(_)
            | Decision::Spent(_) => transaction.delete(NodeKind::Job, &record.key, version),
        }
        if record.lock.is_none() {
            transaction.delete(NodeKind::Lock, &record.key, 0);
        }
        if let Some(commit) = &settlement.commit {
            transaction.create(NodeKind::Move, commit.key(), b"");
        }
        self.record_result(&mut transaction, record, settlement);
        transaction
    }

    fn record_result(
        &self,
        transaction: &mut Transaction<'_>,
        record: &JobNodes,
        settlement: &Settlement,
    ) {
        let key = &record.key;
        let decision = &settlement.decision;
        let is_unchanged =
            *decision == Decision::Abandon(Aftermath::None) && settlement.audit.is_none();
        if !decision.is_end() && !is_unchanged {
            let side = record.side().map(|mut side| {
                side.settle(settlement);
                if decision.is_trash() {
                    side.trashed_on = Some(Utc::now());
                    side.created_on = record.created_on();
                }
                side
            });
            return transaction.put_side(key, &record.side, side.as_ref());
        }
        match &record.side {
            Some(node) if decision.is_end() => {
                transaction.delete(NodeKind::Sidecar, key, node.stat.version);
            }
            Some(node) => transaction.check(NodeKind::Sidecar, key, node.stat.version),
            None => transaction.assert_absent(NodeKind::Sidecar, key),
        }
    }

    /// Prepares another attempt after a refusal; fails if a retry cannot help.
    pub(crate) async fn prepare_retry(&self, refused: &RefusedStep) -> Result<()> {
        match (refused.kind, &refused.error) {
            (NodeKind::TrashedJob, Error::NodeExists) => {
                Err(NodeConflict::InTrash(refused.path.clone()).into())
            }
            // The parent node may be missing.
            (
                kind @ (NodeKind::TrashedJob
                | NodeKind::Sidecar
                | NodeKind::Move
                | NodeKind::Marker),
                Error::NoNode,
            ) => self.make_directory(kind).await,
            (_, Error::NotEmpty) => {
                let below = self.session.children(&refused.path).await?;
                match below.is_empty() {
                    // The children are gone by now.
                    true => Ok(()),
                    false => Err(self.session.occupied(&refused.path, below)),
                }
            }
            // Another client was faster; the current state decides.
            (_, Error::NoNode | Error::NodeExists | Error::BadVersion) => Ok(()),
            _ => Err(self.refusal(refused)),
        }
    }
}

/// Returns the identity of a claim as read; `None` if the job is unclaimed.
fn claim_of(found: Option<&JobNodes>) -> Option<(i64, Vec<u8>)> {
    let lock = found?.lock.as_ref()?;
    Some((lock.stat.czxid, lock.data.clone()))
}

fn permit(record: &JobNodes, settlement: &Settlement) -> Result<()> {
    // If a path ends one node too early, a whole board looks like a malformed record.
    if number_of(&record.key).is_none() && record.posting.data.is_empty() {
        let problem =
            "the node has neither a number nor data, like the parent node of another board";
        return Err(BoardError::malformed(&record.key, problem));
    }
    match (&settlement.authority, record.holding()) {
        // A lock without an owner is no claim, but can be removed like one.
        (Authority::Force(ExpectedState::Unclaimed), None) if record.lock.is_some() => Ok(()),
        (_, held) => permit_settlement(held.as_ref(), settlement),
    }
}
