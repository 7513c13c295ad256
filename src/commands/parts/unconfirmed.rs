//! Resolves claims without a reply.

use std::time::Duration;

use tokio::time::{self, Instant};

use crate::{
    board::{self, Board, BoardError, BoardExt, ClaimRules, JobRef},
    exit::CommandError,
    job::{Aftermath, Claimant, Claimed, Entry, Fence, Job, JobKey, Location, Owner, Term},
};

const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

const CONFIRM_PAUSE: Duration = Duration::from_millis(100);

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
    for tries_left in (0..TRIES).rev() {
        let (error, jobs) = match board.claim(&keys, by, 1, rules).await {
            Ok(mut answers) => match answers.iter().position(|it| is_unanswered(it, by)) {
                None => return Ok(answers),
                Some(at) => match answers.swap_remove(at) {
                    Err(error) => (error, &jobs[at..=at]),
                    Ok(_) => continue,
                },
            },
            Err(error @ BoardError::Unknown { .. }) => (error, jobs),
            Err(error) => return Err(error.into()),
        };
        if !matches!(by.term, Term::Kept(_)) {
            return Err(perhaps_claimed(board, jobs, &by.owner, error).await.into());
        }
        let undo = match rules.is_attempt {
            true => Aftermath::Interrupted,
            false => Aftermath::None,
        };
        if !release_until_answered(board, &keys, &by.owner, &undo).await {
            return Err(may_have(&jobs[0].reference(), &jobs[0].name, &by.owner, error).into());
        }
        if tries_left == 0 {
            return Err(error.into());
        }
    }
    Ok(Vec::new())
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

fn is_unanswered(answer: &board::Result<Claimed>, by: &Claimant) -> bool {
    match answer {
        Err(BoardError::Unknown { .. }) => true,
        // The claim without a reply took effect after the last check.
        Err(BoardError::AlreadyClaimed { owner: Some(owner) }) => {
            matches!(by.term, Term::Kept(_)) && *owner == by.owner
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
    let end = Instant::now() + CONFIRM_TIMEOUT;
    let jobs: Vec<_> = keys
        .iter()
        .map(|key| (key.clone(), aftermath.clone()))
        .collect();
    let given_back = async {
        loop {
            let answers = board.release_held(jobs.clone(), owner).await;
            if answers.is_ok_and(|answers| answers.iter().all(|(_, answer)| answer.is_ok())) {
                return;
            }
            time::sleep(CONFIRM_PAUSE).await;
        }
    };
    time::timeout_at(end, given_back).await.is_ok()
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

pub(crate) async fn posted_claim(
    board: &dyn Board,
    uuid: &str,
    owner: &Owner,
) -> Option<(JobKey, Fence)> {
    let wanted = JobRef::Uuid(uuid.to_owned());
    let found = async {
        loop {
            match board.resolve_one(Location::Board, &wanted).await {
                Err(error) if error.is_retryable() => time::sleep(CONFIRM_PAUSE).await,
                found => return found.ok(),
            }
        }
    };
    let found: Option<Entry> = time::timeout(CONFIRM_TIMEOUT, found).await.ok().flatten();
    let entry = found.filter(|entry| entry.is_owned_by(owner))?;
    let fence = entry.holding()?.fence.clone()?;
    Some((entry.key().clone(), fence))
}
