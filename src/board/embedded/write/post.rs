//! Posting jobs: new ones, and those of another board with their state.

use chrono::{DateTime, Utc};
use rusqlite::params;

use super::StepResult;
use crate::{
    board::{
        BoardError, ClaimRules, EventKind, Posted,
        embedded::{
            events::journal::LAST_NUMBER,
            read::record::{location_number, priority_number},
            store::transaction::Change,
        },
        rules::ClaimRequest,
        wire::as_json,
    },
    job::{Attempts, Claimant, Draft, Former, JobKey, Location},
};

impl Change<'_> {
    pub(crate) fn post(&self, draft: &Draft, claimant: Option<&Claimant>) -> StepResult<Posted> {
        if let Some((draft, former)) = draft.with_former() {
            return self.load(draft, former, claimant);
        }
        if self.insert(draft, None)? == 0 {
            return Err(BoardError::exists(draft.uuid).into());
        }
        let rules = ClaimRules {
            is_attempt: true,
            ..ClaimRules::BY_HAND
        };
        self.posted(draft, claimant, rules)
    }

    /// With a claimant, the same step claims the job without counting an attempt.
    fn load(
        &self,
        draft: &Draft,
        former: &Former,
        claimant: Option<&Claimant>,
    ) -> StepResult<Posted> {
        let uuid = draft.uuid.to_string();
        let sql = "SELECT shelf FROM job WHERE uuid = ?1";
        if let Some(location) = self.first(sql, [&uuid], |row| row.get::<_, i64>(0))? {
            let place = if location == location_number(Location::Board) {
                "board"
            } else {
                "trash"
            };
            return Err(BoardError::Exists { uuid, place }.into());
        }
        if self.insert(draft, Some(former))? == 0 {
            return Err(BoardError::exists(uuid).into());
        }
        let posted = self.posted(draft, claimant, ClaimRules::BY_HAND)?;
        if claimant.is_some() {
            // The transfer is not the first claim of the job.
            let first = former.attempts.first_claimed_on;
            self.run(
                "UPDATE job SET first_claimed_on = ?2 WHERE sequence = ?1",
                params![posted.sequence, first.as_ref().map(micros)],
            )?;
        }
        if former.location == Location::Trash {
            let job = self.require(Location::Trash, &posted.key)?;
            self.log_job(EventKind::Trashed, &job)?;
        }
        Ok(posted)
    }

    /// Claims the job that was just inserted, if there is a claimant.
    fn posted(
        &self,
        draft: &Draft,
        claimant: Option<&Claimant>,
        rules: ClaimRules,
    ) -> StepResult<Posted> {
        let (key, sequence) = (JobKey::from(draft.uuid), self.last_id());
        let take = |by| -> StepResult<_> {
            let job = self.require(draft.location(), &key)?;
            Ok(self.take(job, ClaimRequest::after(0, by, rules))?)
        };
        let fence = claimant.map(take).transpose()?;
        Ok(Posted {
            key,
            sequence,
            fence,
        })
    }

    /// Inserts a job with its state, and returns 1, or 0 if its uuid or number is taken.
    fn insert(&self, draft: &Draft, former: Option<&Former>) -> rusqlite::Result<usize> {
        let book = draft.book.as_ref();
        let details = match former.map(|former| std::str::from_utf8(&former.raw)) {
            Some(Ok(raw)) if !raw.is_empty() => raw.to_owned(),
            _ => draft.details.value().to_string(),
        };
        let none = Attempts::default();
        let attempts = former.map_or(&none, |former| &former.attempts);
        let failures = (!attempts.failures.is_empty()).then(|| as_json(&attempts.failures));
        let number = former.map(|it| self.number(it)).transpose()?.flatten();
        let created_on = former.and_then(|it| it.created_on.as_ref());
        let is_trashed = draft.location() == Location::Trash;
        let trashed_on = former.and_then(|it| it.trashed_on.as_ref().filter(|_| is_trashed));
        self.run(
            "INSERT INTO job (sequence, uuid, shelf, name, priority, created_on, book_name, book_uuid,
                              details, attempts, postponed, not_before, failures, trashed_on,
                              first_claimed_on, remark)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT DO NOTHING",
            params![
                number,
                draft.uuid.to_string(),
                location_number(draft.location()),
                draft.name,
                priority_number(draft.priority),
                created_on.map_or(self.now.wall, micros),
                book.map(|book| &book.name),
                book.map(|book| &book.uuid),
                details,
                attempts.count,
                attempts.postponed,
                attempts.not_before.as_ref().map(micros),
                failures,
                trashed_on.map(micros),
                attempts.first_claimed_on.as_ref().map(micros),
                attempts.audit.as_ref().map(as_json),
            ],
        )
    }

    /// `None` if it gets the next number: subscribers detect a new job by a number greater than all before.
    fn number(&self, former: &Former) -> rusqlite::Result<Option<i64>> {
        let free = match former.location {
            Location::Trash => "NOT IN (SELECT sequence FROM job)".to_owned(),
            Location::Board | Location::History => format!("> {LAST_NUMBER}"),
        };
        let sql = format!("SELECT ?1 WHERE ?1 {free}");
        let number = self.first(&sql, [former.sequence], |row| row.get(0))?;
        Ok(number.flatten())
    }
}

fn micros(time: &DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}
