//! Claiming jobs, and renewing the claims.

use rusqlite::params;

use super::StepResult;
use crate::{
    board::{
        BoardError, ClaimRules, EventKind, JobRef, Result,
        embedded::{
            read::{look, record::RowJob},
            store::transaction::Change,
        },
        rules::{ClaimRequest, permit_owner},
    },
    job::{Claim, Claimant, Claimed, Entry, Fence, JobKey, Location},
};

impl Change<'_> {
    pub(crate) fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> rusqlite::Result<Vec<Result<Claimed>>> {
        let mut answers = Vec::new();
        let mut won = 0;
        for key in keys {
            if won == most {
                break;
            }
            let answer = self.alone(key, || {
                self.claim_one(key, ClaimRequest::after(won, by, rules))
            })?;
            won += usize::from(answer.is_ok());
            answers.push(answer);
        }
        Ok(answers)
    }

    fn claim_one(&self, key: &JobKey, request: ClaimRequest<'_>) -> StepResult<Claimed> {
        let job = self.require(Location::Board, key)?;
        if let owner @ Some(_) = job.owner() {
            return Err(BoardError::AlreadyClaimed { owner }.into());
        }
        request.permit(&job.side, self.now.time())?;
        let sequence = job.sequence;
        let fence = self.take(job, request)?;
        // Read back, so that the answer is what any other reader sees.
        let found = look::find(self, Location::Board, &JobRef::Sequence(sequence))?;
        match found.into_iter().next() {
            Some(Entry::Job(job)) if job.is_unfit && request.needs_sidecar() => {
                Err(BoardError::unclaimable(job.problem).into())
            }
            Some(Entry::Job(job)) => Ok(Claimed {
                is_first: job.is_claimed_first(),
                job: *job,
                fence,
            }),
            Some(Entry::Malformed(record)) => Err(BoardError::from(&record).into()),
            None => Err(BoardError::NoSuchJob.into()),
        }
    }

    pub(super) fn take(&self, job: RowJob, request: ClaimRequest<'_>) -> rusqlite::Result<Fence> {
        let sql = "UPDATE board SET fence = fence + 1 RETURNING fence";
        let fence: i64 = self.one(sql, [], |row| row.get(0))?;
        let expiry = request.by.term.duration().map(|term| self.now.after(term));
        let (expires_boot, expires_wall) = expiry.unzip();
        self.run(
            "UPDATE job SET owner = ?2, fence = ?3, claimed_on = ?4, modified_on = ?4,
                            expires_boot = ?5, expires_wall = ?6,
                            attempts = attempts + (?7 AND attempts < 4294967295), ahead = ?8,
                            first_claimed_on = coalesce(first_claimed_on, ?4)
             WHERE sequence = ?1",
            params![
                job.sequence,
                request.by.owner.as_bytes(),
                fence,
                self.now.wall,
                expires_boot,
                expires_wall,
                request.is_counted(),
                request.is_ahead,
            ],
        )?;
        let job = RowJob {
            owner: Some(request.by.owner.as_bytes().to_vec()),
            fence: Some(fence),
            ..job
        };
        self.log_job(EventKind::Claimed, &job)?;
        Ok(Fence(fence.to_string()))
    }

    pub(crate) fn renew(&self, claim: &Claim) -> StepResult<()> {
        let job = self.require(Location::Board, &claim.key)?;
        permit_owner(job.holding().as_ref(), &claim.owner, claim.fence.as_ref())?;
        let (expires_boot, expires_wall) = self.now.after(claim.term);
        self.run(
            "UPDATE job SET expires_boot = ?2, expires_wall = ?3 WHERE sequence = ?1",
            [job.sequence, expires_boot, expires_wall],
        )?;
        // Renewing a kept lease is routine; prolonging a claim by hand is news.
        if claim.fence.is_none() {
            self.log_job(EventKind::Extended, &job)?;
        }
        Ok(())
    }
}
