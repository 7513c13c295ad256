//! Abandoning, consuming and trashing jobs.

use super::StepResult;
use crate::{
    board::{
        EventKind, Settled,
        embedded::{history::Exit, read::record::failures_of, store::transaction::Change},
        rules::permit_settlement,
    },
    job::{Decision, Location, Settlement},
};

impl Change<'_> {
    pub(crate) fn settle(&self, settlement: &Settlement) -> StepResult<Settled> {
        let job = self.require(Location::Board, &settlement.key)?;
        permit_settlement(job.holding().as_ref(), settlement)?;
        let (sequence, mut side) = (job.sequence, job.side.clone());
        if settlement.decision.failure().is_some() {
            // New failures replace unreadable ones.
            let sql = "SELECT failures FROM job WHERE sequence = ?1";
            side.failures = self.one(sql, [sequence], |row| Ok(failures_of(row, 0)?.0))?;
        }
        side.settle(settlement);
        let mut replaced_namesake = false;
        let kind = match &settlement.decision {
            Decision::Abandon(_) => {
                self.put_unclaimed(sequence, Location::Board, &side)?;
                EventKind::Abandoned
            }
            Decision::Trash(_) | Decision::Spent(_) => {
                let sql = "DELETE FROM job WHERE uuid = ?1 AND shelf = 1";
                replaced_namesake = self.run(sql, [&job.uuid])? > 0;
                side.trashed_on = Some(self.now.time());
                self.put_unclaimed(sequence, Location::Trash, &side)?;
                EventKind::Trashed
            }
            Decision::Consume | Decision::ConsumeFailed(_) => {
                if let Some((outcome, has_succeeded)) = settlement.outcome() {
                    let exit = Exit {
                        outcome,
                        has_succeeded,
                        failures: settlement.decision.failure().map(|_| &side.failures),
                        audit: settlement.audit.as_ref(),
                    };
                    self.put_ended(sequence, &exit)?;
                }
                if let Some(commit) = &settlement.commit {
                    self.put_move(commit)?;
                }
                self.delete(sequence)?;
                EventKind::Consumed
            }
        };
        let outcome = settlement.outcome().map(|(outcome, _)| outcome);
        self.log_exit(kind, &job, outcome, settlement.audit.as_ref())?;
        Ok(Settled {
            replaced_namesake,
            forgotten: None,
        })
    }
}
