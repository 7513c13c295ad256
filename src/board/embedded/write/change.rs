//! Changes of a job: each function is one step inside a transaction, with its own result.

use rusqlite::{OptionalExtension, Transaction, params};

use crate::{
    board::{
        BoardError, ClaimRules, EventKind, JobRef, NOT_AHEAD, Posted, Result,
        embedded::{
            events::journal::{self, About, How},
            read::{
                look,
                record::{RowJob, priority_number},
            },
            store::{
                clock::{Moment, from_micros},
                view::View,
            },
        },
    },
    job::{Claim, Claimant, Claimed, Draft, Entry, Fence, JobKey, Owner, Shelf, Term},
};

/// The result of a step, unless the whole transaction failed.
pub(crate) type Step<T> = rusqlite::Result<Result<T>>;

pub(crate) fn post(
    transaction: &Transaction<'_>,
    now: Moment,
    draft: &Draft,
    claimant: Option<&Claimant>,
) -> Step<Posted> {
    let (book_name, book_uuid) = draft
        .book
        .as_ref()
        .map(|book| (&book.name, &book.uuid))
        .unzip();
    let uuid = draft.uuid.to_string();
    let inserted = transaction
        .prepare_cached(
            "INSERT INTO job (uuid, name, priority, created_on, book_name, book_uuid, details)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            uuid,
            draft.name,
            priority_number(draft.priority),
            now.wall,
            book_name,
            book_uuid,
            draft.details.value().to_string(),
        ])?;
    if inserted == 0 {
        let place = "board";
        return Ok(Err(BoardError::Exists { uuid, place }));
    }
    let sequence = transaction.last_insert_rowid();
    let fence = claimant
        .map(|by| take_posted(transaction, now, sequence, by, true))
        .transpose()?;
    Ok(Ok(Posted {
        key: JobKey::new(uuid),
        sequence,
        fence,
    }))
}

pub(super) fn take_posted(
    transaction: &Transaction<'_>,
    now: Moment,
    sequence: i64,
    by: &Claimant,
    is_attempt: bool,
) -> rusqlite::Result<Fence> {
    let fence = next_fence(transaction)?;
    let rules = ClaimRules {
        is_attempt,
        ..ClaimRules::BY_HAND
    };
    take(transaction, now, sequence, by, fence, rules)?;
    Ok(Fence(fence.to_string()))
}

/// Claims the first `most` unclaimed jobs.
pub(crate) fn claim(
    transaction: &Transaction<'_>,
    view: &View,
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
        let rules = ClaimRules {
            at_once: rules.at_once.saturating_sub(won),
            ..rules
        };
        let answer = alone(transaction, key, || {
            claim_one(transaction, view, key, by, rules)
        })?;
        won += usize::from(answer.is_ok());
        answers.push(answer);
    }
    Ok(answers)
}

fn claim_one(
    transaction: &Transaction<'_>,
    view: &View,
    key: &JobKey,
    by: &Claimant,
    rules: ClaimRules,
) -> Step<Claimed> {
    let now = view.now;
    let Some(job) = row(transaction, Shelf::Board, key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    if job.owner.is_some() {
        let owner = job.owner();
        return Ok(Err(BoardError::AlreadyClaimed { owner }));
    }
    if let Some(until) = job.not_before
        && rules.respects_not_before
        && until > now.wall
    {
        let until = from_micros(until);
        return Ok(Err(BoardError::Postponed { until }));
    }
    let is_ahead = rules.is_attempt && rules.at_once == 0;
    if is_ahead && job.is_ahead {
        let until = now.time() + NOT_AHEAD;
        return Ok(Err(BoardError::Postponed { until }));
    }
    let fence = next_fence(transaction)?;
    take(transaction, now, job.sequence, by, fence, rules)?;
    // Read back, so that the answer is what any other reader sees.
    let wanted = JobRef::Sequence(job.sequence);
    let found = look::find(transaction, view, Shelf::Board, &wanted)?;
    match found.into_iter().next() {
        Some(Entry::Job(job)) => Ok(match job.is_unfit && rules.need_record(by.term) {
            false => Ok(Claimed {
                is_first: job.is_claimed_first(),
                job: *job,
                fence: Fence(fence.to_string()),
            }),
            true => Err(BoardError::Unfit {
                problem: job.problem.unwrap_or_default(),
            }),
        }),
        Some(Entry::Malformed(record)) => {
            let (key, problem) = (record.key, record.problem);
            Ok(Err(BoardError::Malformed { key, problem }))
        }
        None => Ok(Err(BoardError::NoSuchJob)),
    }
}

pub(crate) fn each<T, A>(
    transaction: &Transaction<'_>,
    all: &[T],
    key: impl Fn(&T) -> &JobKey,
    change: impl Fn(&T) -> Step<A>,
) -> rusqlite::Result<Vec<Result<A>>> {
    // Nearly always all goes well, and one way back for all costs much less than one for each.
    let done = or_nothing(transaction, || {
        let mut done = Vec::with_capacity(all.len());
        for one in all {
            match change(one) {
                Ok(Ok(answer)) => done.push(Ok(answer)),
                Err(error) if !is_of_the_row(&error) => return Err(error),
                Ok(Err(_)) | Err(_) => return Ok(Err(())),
            }
        }
        Ok(Ok(done))
    })?;
    done.or_else(|()| {
        let one_by_one = all.iter();
        one_by_one
            .map(|one| alone(transaction, key(one), || change(one)))
            .collect()
    })
}

/// Does one job's part of a batch. A refused step changes nothing. An error caused by the row affects this job only.
fn alone<T>(
    transaction: &Transaction<'_>,
    key: &JobKey,
    part: impl FnOnce() -> Step<T>,
) -> Step<T> {
    or_nothing(transaction, || match part() {
        Err(error) if is_of_the_row(&error) => Ok(Err(BoardError::Malformed {
            key: key.clone(),
            problem: error.to_string(),
        })),
        answer => answer,
    })
}

fn or_nothing<T, E>(
    transaction: &Transaction<'_>,
    part: impl FnOnce() -> rusqlite::Result<Result<T, E>>,
) -> rusqlite::Result<Result<T, E>> {
    let run = |sql: &str| transaction.prepare_cached(sql)?.execute([]);
    run("SAVEPOINT part")?;
    let answer = part()?;
    if answer.is_err() {
        run("ROLLBACK TO part")?;
    }
    run("RELEASE part")?;
    Ok(answer)
}

/// Whether the row, not the file, caused the error.
fn is_of_the_row(error: &rusqlite::Error) -> bool {
    use rusqlite::{
        Error,
        ErrorCode::{ConstraintViolation, TypeMismatch},
    };
    match error {
        Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ConstraintViolation | TypeMismatch)
        }
        _ => true,
    }
}

pub(super) fn next_fence(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached("UPDATE board SET fence = fence + 1 RETURNING fence")?
        .query_row([], |row| row.get(0))
}

pub(super) fn take(
    transaction: &Transaction<'_>,
    now: Moment,
    sequence: i64,
    by: &Claimant,
    fence: i64,
    rules: ClaimRules,
) -> rusqlite::Result<()> {
    let (expires_boot, expires_wall) = match by.term {
        Term::Indefinite => None,
        Term::For(term) | Term::Kept(term) => Some(now.after(term)),
    }
    .unzip();
    let job = transaction
        .prepare_cached(&format!(
            "UPDATE job SET owner = ?2, fence = ?3, claimed_on = ?4, modified_on = ?4,
                            expires_boot = ?5, expires_wall = ?6,
                            attempts = attempts + (?7 AND attempts < 4294967295), ahead = ?8,
                            first_claimed_on = coalesce(first_claimed_on, ?4)
             WHERE sequence = ?1 RETURNING {}",
            RowJob::COLUMNS
        ))?
        .query_row(
            params![
                sequence,
                by.owner.as_bytes(),
                fence,
                now.wall,
                expires_boot,
                expires_wall,
                i64::from(rules.is_attempt && rules.at_once > 0),
                rules.is_attempt && rules.at_once == 0,
            ],
            RowJob::read,
        )?;
    journal::write(
        transaction,
        now,
        EventKind::Claimed,
        About::Job(&job, How::default()),
    )
}

/// Restarts the claim's term now.
pub(crate) fn renew(transaction: &Transaction<'_>, now: Moment, claim: &Claim) -> Step<()> {
    let Some(job) = row(transaction, Shelf::Board, &claim.key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    if let Err(refusal) = check_owner(&job, &claim.owner, claim.fence.as_ref()) {
        return Ok(Err(refusal));
    }
    let (expires_boot, expires_wall) = now.after(claim.term);
    transaction
        .prepare_cached("UPDATE job SET expires_boot = ?2, expires_wall = ?3 WHERE sequence = ?1")?
        .execute(params![job.sequence, expires_boot, expires_wall])?;
    // Renewing a kept lease is routine; prolonging a claim by hand is news.
    if claim.fence.is_none() {
        journal::write(
            transaction,
            now,
            EventKind::Extended,
            About::Job(&job, How::default()),
        )?;
    }
    Ok(Ok(()))
}

pub(crate) fn row(
    transaction: &Transaction<'_>,
    shelf: Shelf,
    key: &JobKey,
) -> rusqlite::Result<Option<RowJob>> {
    transaction
        .prepare_cached(&format!(
            "SELECT {} FROM job WHERE uuid = ?1 AND shelf = ?2",
            RowJob::COLUMNS
        ))?
        .query_row(
            params![
                key.text(),
                crate::board::embedded::read::record::shelf_number(shelf)
            ],
            RowJob::read,
        )
        .optional()
}

pub(crate) fn check_owner(job: &RowJob, wanted: &Owner, fence: Option<&Fence>) -> Result<()> {
    match job.owner() {
        None => Err(BoardError::NotClaimed),
        Some(owner) if owner != *wanted => Err(BoardError::NotOwner {
            owner: Some(owner),
            wanted: wanted.clone(),
        }),
        // The same name won it again: that is another claim.
        Some(_) if fence.is_some() && job.fence().as_ref() != fence => Err(BoardError::Changed),
        Some(_) => Ok(()),
    }
}
