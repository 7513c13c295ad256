//! Settling claims and restoring jobs: each function is one step inside a transaction.

use chrono::{DateTime, Utc};
use rusqlite::{Transaction, params};

use super::change::{Step, check_owner, row};
use crate::{
    board::{
        BoardError, EventKind, Result, Settled,
        embedded::{
            events::journal::{self, About, How},
            moves, past,
            read::record::RowJob,
            store::{clock::Moment, lapse::free},
        },
        wire::{as_json, posting::Limit},
    },
    job::{
        Aftermath, Authority, Departure, Failure, Outcome, Purge, Remark, Restore, Settlement,
        Shelf, Witness,
    },
};

pub(crate) fn settle(
    transaction: &Transaction<'_>,
    now: Moment,
    settlement: &Settlement,
    history: u32,
) -> Step<Settled> {
    let Some(job) = row(transaction, Shelf::Board, &settlement.key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    if let Err(refusal) = check_authority(&job, settlement) {
        return Ok(Err(refusal));
    }
    if let Some(remark) = &settlement.remark {
        note(transaction, job.sequence, remark)?;
    }
    if let Some(failure) = settlement.outcome.failure() {
        add_failure(transaction, job.sequence, failure)?;
    }
    let mut replaced_namesake = false;
    let kind = match &settlement.outcome {
        Outcome::Abandon(aftermath) => {
            abandon(transaction, now, &job, aftermath)?;
            EventKind::Abandoned
        }
        Outcome::Consume | Outcome::GiveUp(_) => {
            if let Some(departure) = settlement.departure() {
                past::keep(transaction, now, job.sequence, departure, history)?;
            }
            if let Some(commit) = &settlement.commit {
                moves::keep(transaction, commit)?;
            }
            delete(transaction, job.sequence)?;
            EventKind::Consumed
        }
        outcome @ (Outcome::Trash(_) | Outcome::Spent(_)) => {
            replaced_namesake = trash(transaction, now, &job, outcome)?;
            EventKind::Trashed
        }
    };
    let how = How {
        departure: settlement.departure().map(|(departure, _)| departure),
        remark: settlement.remark.as_ref(),
    };
    journal::write(transaction, now, kind, About::Job(&job, how))?;
    Ok(Ok(Settled {
        replaced_namesake,
        forgotten: None,
    }))
}

fn check_authority(job: &RowJob, settlement: &Settlement) -> Result<()> {
    match &settlement.authority {
        Authority::Owner(owner) => check_owner(job, owner, None),
        Authority::Claim(owner, fence) => check_owner(job, owner, Some(fence)),
        Authority::Override(Witness::Unclaimed) => match (&job.owner, &settlement.outcome) {
            (Some(_), _) => Err(BoardError::Changed),
            (None, Outcome::Abandon(_)) => Err(BoardError::NotClaimed),
            (None, _) => Ok(()),
        },
        Authority::Override(Witness::Claimed { owner, fence }) => {
            let is_same = job.owner() == *owner && (fence.is_none() || job.fence() == *fence);
            if is_same {
                Ok(())
            } else {
                Err(BoardError::Changed)
            }
        }
    }
}

fn abandon(
    transaction: &Transaction<'_>,
    now: Moment,
    job: &RowJob,
    aftermath: &Aftermath,
) -> rusqlite::Result<()> {
    let micros = |time: &DateTime<Utc>| time.timestamp_micros();
    let (not_before, uncounted, postponed) = match aftermath {
        Aftermath::None => (None, 0, 0),
        Aftermath::Failed { not_before, .. } => (not_before.as_ref().map(micros), 0, 0),
        Aftermath::Postponed { not_before } => (Some(micros(not_before)), 1, 1),
        Aftermath::Interrupted => (None, 1, 0),
    };
    // It was an attempt, if anything came of it.
    let has_come_to = i64::from(*aftermath != Aftermath::None);
    free(transaction, job.sequence)?;
    transaction
        .prepare_cached(
            "UPDATE job SET modified_on = ?2, not_before = coalesce(?3, not_before),
                            postponed = min(postponed + ?5, 4294967295),
                            attempts = min(max(0, attempts + ahead * ?6 - ?4), 4294967295),
                            ahead = ahead * (1 - ?6)
             WHERE sequence = ?1",
        )?
        .execute(params![
            job.sequence,
            now.wall,
            not_before,
            uncounted,
            postponed,
            has_come_to
        ])?;
    Ok(())
}

fn trash(
    transaction: &Transaction<'_>,
    now: Moment,
    job: &RowJob,
    outcome: &Outcome,
) -> rusqlite::Result<bool> {
    let replaced = transaction
        .prepare_cached("DELETE FROM job WHERE uuid = ?1 AND shelf = 1")?
        .execute(params![job.uuid])?;
    free(transaction, job.sequence)?;
    transaction
        .prepare_cached(
            "UPDATE job SET shelf = 1, trashed_on = ?2, modified_on = ?2,
                            attempts = min(max(0, attempts + ahead * ?3 - ?4), 4294967295), ahead = 0
             WHERE sequence = ?1",
        )?
        .execute(params![
            job.sequence,
            now.wall,
            outcome.failure().is_some(),
            i64::from(matches!(outcome, Outcome::Spent(_))),
        ])?;
    Ok(replaced > 0)
}

fn add_failure(
    transaction: &Transaction<'_>,
    sequence: i64,
    failure: &Failure,
) -> rusqlite::Result<()> {
    // What cannot be read gives way to what just happened.
    let mut failures: Vec<Failure> = transaction
        .prepare_cached("SELECT failures FROM job WHERE sequence = ?1")?
        .query_row(params![sequence], |row| {
            let stored = row.get_ref(0)?.as_bytes_or_null()?;
            Ok(stored.and_then(|text| serde_json::from_slice(text).ok()))
        })?
        .unwrap_or_default();
    failure.clone().add_to(&mut failures);
    transaction
        .prepare_cached("UPDATE job SET failures = ?2 WHERE sequence = ?1")?
        .execute(params![sequence, as_json(&failures)])?;
    Ok(())
}

/// Restores a trashed job, or retries a delayed one now.
pub(crate) fn restore(
    transaction: &Transaction<'_>,
    now: Moment,
    restore: &Restore,
    limit: Limit,
) -> Step<()> {
    let Some(job) = row(transaction, restore.shelf, &restore.key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    let is_trashed = restore.shelf == Shelf::Trash;
    if is_trashed && row(transaction, Shelf::Board, &restore.key)?.is_some() {
        let (uuid, place) = (job.uuid, "board");
        return Ok(Err(BoardError::Exists { uuid, place }));
    }
    if job.owner.is_some() {
        let owner = job.owner();
        return Ok(Err(BoardError::AlreadyClaimed { owner }));
    }
    let remark = restore.remark.as_ref();
    if let Some(edit) = &restore.edit {
        return super::edit::edit(transaction, now, (&job, edit), remark, limit);
    }
    let restored = transaction
        .prepare_cached(
            "UPDATE job SET shelf = 0, trashed_on = NULL, modified_on = ?2, not_before = NULL,
                            attempts = attempts * ?4, ahead = ahead * ?4, postponed = postponed * ?4,
                            first_claimed_on = iif(?4, first_claimed_on, NULL), remark = ?3
             WHERE sequence = ?1 AND (shelf = 1 OR coalesce(not_before, 0) > ?2
                                      OR (NOT ?4 AND attempts + postponed > 0))",
        )?
        .execute(params![
            job.sequence,
            now.wall,
            remark.map(as_json),
            restore.keeps_attempts
        ])?;
    if restored == 0 {
        return Ok(Err(BoardError::NotHeldBack));
    }
    let job = RowJob {
        not_before: None,
        ..job
    };
    let how = How {
        remark,
        ..How::default()
    };
    journal::write(transaction, now, EventKind::Restored, About::Job(&job, how))?;
    Ok(Ok(()))
}

pub(crate) fn purge(
    transaction: &Transaction<'_>,
    now: Moment,
    purge: &Purge,
    history: u32,
) -> Step<Settled> {
    let Some(job) = row(transaction, Shelf::Trash, &purge.key)? else {
        return Ok(Err(BoardError::NoSuchJob));
    };
    if let Some(remark) = &purge.remark {
        note(transaction, job.sequence, remark)?;
    }
    past::keep(
        transaction,
        now,
        job.sequence,
        (Departure::Purged, false),
        history,
    )?;
    delete(transaction, job.sequence)?;
    let how = How {
        departure: Some(Departure::Purged),
        remark: purge.remark.as_ref(),
    };
    journal::write(transaction, now, EventKind::Purged, About::Job(&job, how))?;
    Ok(Ok(Settled::default()))
}

fn note(transaction: &Transaction<'_>, sequence: i64, remark: &Remark) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE job SET remark = ?2 WHERE sequence = ?1")?
        .execute(params![sequence, as_json(remark)])?;
    Ok(())
}

fn delete(transaction: &Transaction<'_>, sequence: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM job WHERE sequence = ?1")?
        .execute(params![sequence])?;
    Ok(())
}
