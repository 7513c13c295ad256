//! The clients of a board test.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use uuid::Uuid;

use super::{
    promise::{TrialResult, broken, require},
    trial::{Trial, settlement},
};
use crate::{
    board::{
        BoardError, BoardExt as _, ClaimRules, JobRef, Settled, ext::the_answer, scratch::Testable,
    },
    job::{
        Authority, Claim, Claimant, Claimed, Decision, Draft, Entry, Job, JobKey, Location, Owner,
        Term,
    },
};

/// The lease of a claim that is settled soon, enough for a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

impl Trial<'_> {
    pub(super) fn claimant(&self, name: &str) -> Claimant {
        Claimant {
            owner: Owner::from_stored(format!("{name}:{}", self.user.name)),
            term: Term::Lease(AMPLE),
        }
    }

    pub(super) fn short_lease(&self, name: &str) -> Claimant {
        Claimant {
            term: Term::Lease(self.term),
            ..self.claimant(name)
        }
    }

    pub(super) fn claim_of(&self, claimed: &Claimed, by: &Claimant) -> Claim {
        claimed.claim(&by.owner, by.term.duration().unwrap_or(AMPLE))
    }

    pub(super) async fn win(
        &self,
        board: &Arc<dyn Testable>,
        key: &JobKey,
        by: &Claimant,
    ) -> Result<Claim, BoardError> {
        let claimed = board.claim_one(key, by, ClaimRules::BY_HAND).await?;
        Ok(self.claim_of(&claimed, by))
    }

    pub(super) async fn settle(
        &self,
        board: &Arc<dyn Testable>,
        claim: &Claim,
        decision: Decision,
    ) -> Result<Settled, BoardError> {
        the_answer(
            &**board,
            board.settle(&[settlement(claim, decision)]).await?,
        )
    }

    pub(super) async fn require_rejected(
        &self,
        board: &Arc<dyn Testable>,
        claim: &Claim,
        decision: Decision,
    ) -> TrialResult<()> {
        match self.settle(board, claim, decision).await {
            Err(error) if error.is_about_the_claim() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => broken("a client settled a job after losing its claim"),
        }
    }

    pub(super) async fn consume_of(&self, key: &JobKey, owner: &Owner) -> TrialResult<()> {
        let right = Authority::Owner(owner.clone());
        self.bob.settle_one(key, Decision::Consume, right).await?;
        Ok(())
    }

    pub(super) async fn post(&self, count: usize) -> TrialResult<Vec<JobKey>> {
        let drafts: Vec<_> = (0..count).map(draft).collect();
        let posted = self.ada.post(&drafts, None).await?;
        let keys = posted.into_iter().map(|it| it.map(|it| it.key));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let why = format_args!(
            "posted {count} jobs, but the board acknowledged {}",
            keys.len()
        );
        require(keys.len() == count, why)?;
        Ok(keys)
    }

    pub(super) async fn post_one(&self) -> TrialResult<JobKey> {
        Ok(self.ada.post_one(&draft(0), None).await?.key)
    }

    pub(super) async fn find(
        &self,
        location: Location,
        keys: &[JobKey],
    ) -> TrialResult<Vec<Option<Job>>> {
        let wanted: Vec<_> = keys.iter().cloned().map(JobRef::Key).collect();
        let found = self.bob.find(location, &wanted).await?;
        let found = found
            .into_iter()
            .map(|entries| match entries.into_iter().next() {
                None => Ok(None),
                Some(Entry::Job(job)) => Ok(Some(*job)),
                Some(Entry::Malformed(record)) => broken(format!(
                    "a written record cannot be read: {}",
                    record.problem
                )),
            });
        found.collect()
    }

    pub(super) async fn absent(&self, keys: &[JobKey]) -> TrialResult<usize> {
        let found = self.find(Location::Board, keys).await?;
        Ok(found.iter().filter(|it| it.is_none()).count())
    }

    pub(super) async fn find_one(
        &self,
        location: Location,
        key: &JobKey,
    ) -> TrialResult<Option<Job>> {
        let found = self.find(location, std::slice::from_ref(key)).await?;
        Ok(found.into_iter().next().flatten())
    }
}

pub(super) fn draft(number: usize) -> Draft {
    let uuid = Uuid::new_v4();
    let details = json!({ "number": number, "text": format!("\u{e9}\u{2603} {uuid}") });
    Draft::new(uuid, format!("selftest-{number}"), details)
}
