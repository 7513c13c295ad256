//! Restoring, retrying, editing and purging jobs.

use rusqlite::params;
use serde_json::Value;

use super::StepResult;
use crate::{
    board::{
        BoardError, EventKind, JobRef, Result, Settled,
        embedded::{
            history::Exit,
            read::{
                look,
                record::{RowJob, decode_details, priority_number},
            },
            store::transaction::Change,
        },
        wire::as_json,
    },
    job::{AuditEntry, Edit, Entry, JobChange, JobKey, Location, Outcome, Purge, Revision},
};

impl Change<'_> {
    pub(crate) fn revise(&self, revision: &Revision) -> StepResult<()> {
        let job = self.require(revision.location, &revision.key)?;
        let is_trashed = revision.location == Location::Trash;
        let (sequence, audit) = (job.sequence, revision.audit.as_ref());
        if let (JobChange::Edit(edit), true) = (&revision.change, is_trashed) {
            self.edit(&job, edit)?;
            return Ok(self.put_audit(sequence, audit)?);
        }
        if is_trashed && self.row(Location::Board, &revision.key)?.is_some() {
            return Err(BoardError::exists(job.uuid).into());
        }
        if let owner @ Some(_) = job.owner() {
            return Err(BoardError::AlreadyClaimed { owner }.into());
        }
        let job = match &revision.change {
            JobChange::Edit(edit) => {
                self.edit(&job, edit)?;
                self.require(Location::Board, &revision.key)?
            }
            JobChange::Restart | JobChange::Continue => {
                if !is_trashed {
                    let found = look::find(self, Location::Board, &JobRef::Sequence(sequence))?;
                    if let Some(Entry::Malformed(record)) = found.first() {
                        return Err(BoardError::from(record).into());
                    }
                }
                let side = job.side.clone().restarted(revision, self.now.time())?;
                self.put_unclaimed(sequence, Location::Board, &side)?;
                let not_before = None;
                RowJob { not_before, ..job }
            }
        };
        // `put_unclaimed` never removes an earlier audit entry, and an edit does not call it.
        if audit.is_none() || matches!(revision.change, JobChange::Edit(_)) {
            self.put_audit(sequence, audit)?;
        }
        Ok(self.log_exit(EventKind::Restored, &job, None, audit)?)
    }

    fn put_audit(&self, sequence: i64, audit: Option<&AuditEntry>) -> rusqlite::Result<()> {
        let sql = "UPDATE job SET remark = ?2 WHERE sequence = ?1";
        self.run(sql, params![sequence, audit.map(as_json)])
            .map(drop)
    }

    fn edit(&self, job: &RowJob, edit: &Edit) -> StepResult<()> {
        let now: Option<Value> = match edit.edits_members() {
            true => {
                let most = self.limit.stored();
                let sql = format!(
                    "SELECT details FROM job WHERE sequence = ?1 AND octet_length(details) <= {most}"
                );
                let text = self.first(&sql, [job.sequence], |row| row.get::<_, String>(0))?;
                text.and_then(|text| decode_details(text.as_bytes(), None))
            }
            false => None,
        };
        let malformed = |problem| BoardError::malformed(&JobKey::new(&job.uuid), problem);
        let details = self.edited(edit, now.as_ref()).map_err(malformed)?;
        self.run(
            "UPDATE job SET name = coalesce(?2, name), priority = coalesce(?3, priority),
                            details = coalesce(?4, details), modified_on = ?5
             WHERE sequence = ?1",
            params![
                job.sequence,
                edit.name,
                edit.priority.map(priority_number),
                details,
                self.now.wall,
            ],
        )?;
        Ok(())
    }

    /// Returns the new details, or `None` if they stay; an error explains why an edit is impossible.
    fn edited(&self, edit: &Edit, now: Option<&Value>) -> Result<Option<String>, String> {
        let details = edit.details(now).map_err(str::to_owned)?;
        let details = details.map(|details| details.to_string());
        let length = details.as_ref().map_or(0, String::len);
        match self.limit.is_exceeded(length, 0) {
            true => Err(self.limit.problem(length)),
            false => Ok(details),
        }
    }

    pub(crate) fn purge(&self, purge: &Purge) -> StepResult<Settled> {
        let job = self.require(Location::Trash, &purge.key)?;
        let exit = Exit {
            outcome: Outcome::Purged,
            has_succeeded: false,
            failures: None,
            audit: purge.audit.as_ref(),
        };
        self.put_ended(job.sequence, &exit)?;
        self.delete(job.sequence)?;
        self.log_exit(EventKind::Purged, &job, Some(exit.outcome), exit.audit)?;
        Ok(Settled::default())
    }
}
