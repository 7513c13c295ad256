//! The two boards of moves: their records, and requests that end claims on them.

use std::sync::Arc;

use crate::{
    board::{self, Board, BoardError},
    exit::CommandError,
    job::{
        Aftermath, AuditEntry, Authority, Decision, Draft, Identity, Job, JobKey, MAX_RECORDS,
        MoveRecord, Owner, Settlement,
    },
    suggest::Hint,
};

pub(crate) struct Route {
    pub(crate) from: Arc<dyn Board>,
    pub(crate) to: Arc<dyn Board>,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) who: String,
}

impl Route {
    pub(super) fn audit(&self, action: &str, reason: &str) -> AuditEntry {
        AuditEntry::now(action, &self.who, Some(reason))
    }

    /// Returns the records of moves from the source board. A missing record would read as a job that never left.
    pub(super) async fn records(&self) -> board::Result<Vec<MoveRecord>> {
        let records = self.from.moves().await?;
        match records.len() < MAX_RECORDS {
            true => Ok(records),
            false => Err(BoardError::Failed {
                doing: "read the records of all moves on",
                board: self.source.clone(),
                source: format!("{MAX_RECORDS} or more are too many to read").into(),
            }),
        }
    }

    /// Ends the claims of moves on copies: releases the copies of jobs that have moved, and removes the other ones.
    pub(super) async fn end_copies<'j>(
        &self,
        copies: impl Iterator<Item = (&'j Job, &'j Owner, bool)>,
    ) -> Vec<board::Result<()>> {
        let returned = self.audit(AuditEntry::MOVED, &format!("returned to {}", self.source));
        let ends = copies.map(|(copy, owner, has_moved)| match has_moved {
            true => end_claim(copy, owner),
            false => Settlement {
                decision: Decision::Consume,
                job: Some(Identity::from(copy)),
                audit: Some(returned.clone()),
                ..end_claim(copy, owner)
            },
        });
        let ended = settle(&*self.to, ends.collect()).await;
        ended.into_iter().map(unless_ended).collect()
    }

    pub(crate) fn taken(&self, draft: &Draft, is_trashed: bool) -> CommandError {
        let uuid = draft.uuid.to_string();
        let place = if is_trashed { " in its trash" } else { "" };
        let show = ["jobboard", "--board", &self.target, "show", &uuid];
        let hint = Hint::new("`{}` shows the job on the target", [&show]);
        CommandError::refused(format!(
            "the target already has a job with the uuid {uuid}{place}; both jobs are unchanged"
        ))
        .hint(hint)
    }

    pub(crate) fn failed(&self) -> String {
        format!("cannot move jobs from {} to {}", self.source, self.target)
    }
}

pub(super) fn abandon(key: &JobKey, authority: Authority) -> Settlement {
    Settlement::of(key.clone(), Decision::Abandon(Aftermath::None), authority)
}

/// Ends the claim of a move on either board. The name of its owner is unique to the move.
pub(super) fn end_claim(job: &Job, owner: &Owner) -> Settlement {
    abandon(&job.key, Authority::Owner(owner.clone()))
}

/// Accepts a claim that an operator or an earlier request has already ended.
pub(super) fn unless_ended(answer: board::Result<()>) -> board::Result<()> {
    match answer {
        Err(error) if error.is_about_the_claim() => Ok(()),
        answer => answer,
    }
}

/// Settles claims, each with its own answer, and repeats requests without a reply once. Each names its claim, so it
/// takes effect at most once.
///
/// A refusal of a repeated request proves nothing here, unlike in [`worker`](crate::worker::settling): an operator
/// may have ended the claim. The record of the move on the source board shows which request ended the job.
pub(super) async fn settle(
    board: &dyn Board,
    settlements: Vec<Settlement>,
) -> Vec<board::Result<()>> {
    let mut answers = settle_once(board, &settlements).await;
    let asked = answers.iter_mut().zip(settlements);
    let lost = asked.filter(|(it, _)| (it.as_ref()).is_err_and(BoardError::may_have_taken_effect));
    let (lost, again): (Vec<_>, Vec<_>) = lost.unzip();
    for (answer, repeated) in lost.into_iter().zip(settle_once(board, &again).await) {
        *answer = repeated;
    }
    answers
}

async fn settle_once(board: &dyn Board, settlements: &[Settlement]) -> Vec<board::Result<()>> {
    if settlements.is_empty() {
        return Vec::new();
    }
    let settled = board.settle(settlements).await;
    let settled = each(board, settlements.len(), settled).into_iter();
    settled.map(|it| it.map(drop)).collect()
}

/// Repeats the failure of a whole request for each of its jobs.
pub(super) fn each<T>(
    board: &dyn Board,
    jobs: usize,
    answers: board::Result<Vec<board::Result<T>>>,
) -> Vec<board::Result<T>> {
    answers.unwrap_or_else(|error| {
        let repeated = (0..jobs).map(|_| Err(error.repeated(board.url())));
        repeated.collect()
    })
}
