//! Changes of jobs: each function is one step inside a transaction, with its own result.

pub(super) mod claim;
pub(super) mod post;
pub(super) mod settle;
pub(super) mod trash;

use chrono::{DateTime, Utc};
use rusqlite::{
    Error,
    ErrorCode::{ConstraintViolation, TypeMismatch},
    params,
};

use super::{
    read::record::{RowJob, location_number},
    store::transaction::Change,
};
use crate::{
    board::{
        BoardError, Result,
        wire::{as_json, sidecar::Sidecar},
    },
    job::{JobKey, Location},
};

pub(super) type StepResult<T> = std::result::Result<T, StepError>;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum StepError {
    /// The board refuses this change, and only this one.
    Refused(#[from] BoardError),
    Sqlite(#[from] Error),
}

/// Returns the answer to a step, unless the whole transaction failed.
pub(super) fn answer<T>(step: StepResult<T>) -> rusqlite::Result<Result<T>> {
    match step {
        Ok(done) => Ok(Ok(done)),
        Err(StepError::Refused(error)) => Ok(Err(error)),
        Err(StepError::Sqlite(error)) => Err(error),
    }
}

impl Change<'_> {
    pub(super) fn each<T, A>(
        &self,
        all: &[T],
        key: impl Fn(&T) -> &JobKey,
        step: impl Fn(&Self, &T) -> StepResult<A>,
    ) -> rusqlite::Result<Vec<Result<A>>> {
        // Usually every step succeeds, and one savepoint for all costs much less than one for each.
        let done = self.or_nothing(|| all.iter().map(|one| step(self, one)).collect());
        match done? {
            Ok(done) => Ok(Vec::into_iter(done).map(Ok).collect()),
            Err(StepError::Sqlite(error)) if !is_of_the_row(&error) => Err(error),
            Err(_) => {
                let alone = |one| self.alone(key(one), || step(self, one));
                all.iter().map(alone).collect()
            }
        }
    }

    /// Does one job's part of a batch. A refused step changes nothing. An error caused by the row affects this job
    /// only.
    fn alone<T>(
        &self,
        key: &JobKey,
        step: impl FnOnce() -> StepResult<T>,
    ) -> rusqlite::Result<Result<T>> {
        match self.or_nothing(step)? {
            Err(StepError::Sqlite(error)) if is_of_the_row(&error) => {
                Ok(Err(BoardError::malformed(key, error.to_string())))
            }
            done => answer(done),
        }
    }

    fn or_nothing<T>(
        &self,
        step: impl FnOnce() -> StepResult<T>,
    ) -> rusqlite::Result<StepResult<T>> {
        self.run("SAVEPOINT part", [])?;
        let done = step();
        if let Err(StepError::Sqlite(error)) = &done
            && !is_of_the_row(error)
        {
            return Ok(done);
        }
        if done.is_err() {
            self.run("ROLLBACK TO part", [])?;
        }
        self.run("RELEASE part", [])?;
        Ok(done)
    }

    fn row(&self, location: Location, key: &JobKey) -> rusqlite::Result<Option<RowJob>> {
        let columns = RowJob::columns(self);
        let sql = format!("SELECT {columns} FROM job WHERE uuid = ?1 AND shelf = ?2");
        self.first(&sql, (key.text(), location_number(location)), RowJob::read)
    }

    fn require(&self, location: Location, key: &JobKey) -> StepResult<RowJob> {
        Ok(self.row(location, key)?.ok_or(BoardError::NoSuchJob)?)
    }

    /// Stores the state of a job without a claim. The stored failures and audit entry stay unless there are new ones.
    fn put_unclaimed(
        &self,
        sequence: i64,
        location: Location,
        side: &Sidecar,
    ) -> rusqlite::Result<()> {
        let micros = |time: Option<DateTime<Utc>>| Some(time?.timestamp_micros());
        let failures = (!side.failures.is_empty()).then(|| as_json(&side.failures));
        self.run(
            "UPDATE job SET owner = NULL, fence = NULL, claimed_on = NULL, expires_boot = NULL,
                            expires_wall = NULL, modified_on = ?2, shelf = ?3, trashed_on = ?4,
                            not_before = ?5, ahead = ?6, attempts = ?7, postponed = ?8,
                            first_claimed_on = ?9, failures = coalesce(?10, failures),
                            remark = coalesce(?11, remark)
             WHERE sequence = ?1",
            params![
                sequence,
                self.now.wall,
                location_number(location),
                micros(side.trashed_on),
                micros(side.not_before),
                side.ahead,
                side.attempts,
                side.postponed,
                micros(side.first_claimed_on),
                failures,
                side.audit.as_ref().map(as_json),
            ],
        )
        .map(drop)
    }

    fn delete(&self, sequence: i64) -> rusqlite::Result<()> {
        self.run("DELETE FROM job WHERE sequence = ?1", [sequence])
            .map(drop)
    }
}

/// Whether the row, not the file, caused the error.
fn is_of_the_row(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ConstraintViolation | TypeMismatch)
        }
        _ => true,
    }
}
