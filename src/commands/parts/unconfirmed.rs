//! Resolves claims without a reply.

use anyhow::Context as _;

use crate::{
    board::{self, Board, BoardError, BoardExt, ClaimRules, JobRef, Posted},
    exit::CommandError,
    job::{Aftermath, Claimant, Claimed, Draft, Entry, Job, JobKey, Location, Owner, Term},
    worker::repeat::until_answered,
};

/// The number of new claims after one that failed or was released.
const TRIES: usize = 3;

/// Claims the first available of these jobs, as [`Board::claim`] does.
///
/// Without a reply a lease is released and claimed again, since its owner name is unique. A claim by hand cannot be
/// recognised, so the error reports it.
pub(crate) async fn claim_first_confirmed(
    board: &dyn Board,
    jobs: &[&Job],
    by: &Claimant,
    rules: ClaimRules,
) -> anyhow::Result<Vec<board::Result<Claimed>>> {
    let keys: Vec<_> = jobs.iter().map(|job| job.key.clone()).collect();
    let mut tries = 0;
    loop {
        let (error, jobs) = match board.claim(&keys, by, 1, rules).await {
            Ok(answers) => match all_answered(answers, by) {
                Ok(answers) => return Ok(answers),
                Err((at, error)) => (error, &jobs[at..=at]),
            },
            Err(error @ BoardError::Unknown { .. }) => (error, jobs),
            Err(error) => return Err(error.into()),
        };
        if !matches!(by.term, Term::Lease(_)) {
            return Err(perhaps_claimed(board, jobs, &by.owner, error).await.into());
        }
        let undo = match rules.is_attempt {
            true => Aftermath::Interrupted,
            false => Aftermath::None,
        };
        if !release_until_answered(board, &keys, &by.owner, &undo).await {
            return Err(may_have(&jobs[0].reference(), &jobs[0].name, &by.owner, error).into());
        }
        tries += 1;
        if tries == TRIES {
            return Err(error.into());
        }
    }
}

pub(crate) async fn claim_confirmed(
    board: &dyn Board,
    entry: &Entry,
    by: &Claimant,
    rules: ClaimRules,
) -> anyhow::Result<Claimed> {
    let answers = match entry {
        Entry::Job(job) => claim_first_confirmed(board, &[job], by, rules).await?,
        Entry::Malformed(record) => vec![Err(record.into())],
    };
    let answer = answers.into_iter().next();
    Ok(answer.unwrap_or(Err(BoardError::NoSuchJob))?)
}

/// Returns the answers, or the place and the error of the first claim without a reply.
fn all_answered(
    answers: Vec<board::Result<Claimed>>,
    by: &Claimant,
) -> Result<Vec<board::Result<Claimed>>, (usize, BoardError)> {
    let answers = answers.into_iter().enumerate();
    let answers = answers.map(|(at, answer)| match answer {
        Err(error) if is_unanswered(&error, by) => Err((at, error)),
        answer => Ok(answer),
    });
    answers.collect()
}

fn is_unanswered(error: &BoardError, by: &Claimant) -> bool {
    match error {
        BoardError::Unknown { .. } => true,
        // The claim without a reply took effect after the last check.
        BoardError::AlreadyClaimed { owner: Some(owner) } => {
            matches!(by.term, Term::Lease(_)) && *owner == by.owner
        }
        _ => false,
    }
}

/// Releases a lease that may exist; returns whether the board answered.
async fn release_until_answered(
    board: &dyn Board,
    keys: &[JobKey],
    owner: &Owner,
    aftermath: &Aftermath,
) -> bool {
    let jobs: Vec<_> = keys
        .iter()
        .map(|key| (key.clone(), aftermath.clone()))
        .collect();
    let released = until_answered(async || {
        let answers = board.release_held(jobs.clone(), owner).await.ok()?;
        let is_answered = answers.iter().all(|(_, answer)| answer.is_ok());
        is_answered.then_some(())
    });
    released.await.is_some()
}

/// Reports a claim by hand that may have been made, with the job if one can be seen.
async fn perhaps_claimed(
    board: &dyn Board,
    jobs: &[&Job],
    owner: &Owner,
    error: BoardError,
) -> CommandError {
    let wanted: Vec<_> = jobs
        .iter()
        .map(|job| JobRef::Key(job.key.clone()))
        .collect();
    let found = board
        .find(Location::Board, &wanted)
        .await
        .unwrap_or_default();
    // The job was unclaimed a moment ago.
    let at = found
        .iter()
        .position(|found| found.iter().any(|entry| entry.is_owned_by(owner)));
    let job = jobs[at.unwrap_or(0)];
    may_have(&job.reference(), &job.name, owner, error)
}

pub(crate) fn may_have(job: &str, name: &str, owner: &Owner, source: BoardError) -> CommandError {
    CommandError::MaybeClaimed {
        what: format!("{owner} may now hold the claim on {name} ({job})"),
        job: job.to_owned(),
        source,
    }
}

/// Returns the claim of a job that was posted with one; without a reply, as the board shows it later.
pub(crate) async fn claim_of_post(
    board: &dyn Board,
    draft: &Draft,
    by: &Claimant,
    posted: board::Result<Posted>,
) -> anyhow::Result<Claimed> {
    let error = match posted {
        Ok(posted) => {
            let claimed = posted.claimed(draft, by, board.capabilities());
            return claimed.context("the job was posted without a claim");
        }
        Err(error @ BoardError::Unknown { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let uuid = draft.uuid.to_string();
    let wanted = JobRef::Uuid(uuid.clone());
    let found = until_answered(
        async || match board.resolve_one(Location::Board, &wanted).await {
            Err(error) if error.is_retryable() => None,
            found => Some(found.ok()),
        },
    );
    let found = found.await.flatten();
    let claimed = found.filter(|it| it.is_owned_by(&by.owner));
    let claimed = claimed.and_then(|entry| {
        let fence = entry.holding()?.fence.clone()?;
        let Entry::Job(job) = entry else { return None };
        Some(Claimed {
            is_first: true,
            job: *job,
            fence,
        })
    });
    Ok(claimed.ok_or_else(|| may_have(&uuid, &draft.name, &by.owner, error))?)
}
