//! History records on Redis and ZooKeeper.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{as_json, sidecar::Sidecar};
use crate::job::{
    AuditEntry, End, Entry, Failure, Identity, Job, JobKey, Location, Malformed, Outcome, Owner,
    Purge, Settlement, from_json, shortened,
};

const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HistoryRecord {
    v: u32,
    job: Identity,
    ended_on: DateTime<Utc>,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    succeeded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(rename = "remark", skip_serializing_if = "Option::is_none")]
    audit: Option<AuditEntry>,
}

impl HistoryRecord {
    pub(crate) fn of(settlement: &Settlement, now: DateTime<Utc>) -> Option<Self> {
        let (outcome, succeeded) = settlement.outcome()?;
        Some(Self {
            v: VERSION,
            job: settlement.job.as_ref()?.shortened(),
            ended_on: now,
            outcome,
            succeeded,
            failure: settlement.decision.failure().cloned(),
            audit: settlement.audit.clone(),
        })
    }

    pub(crate) fn purged(purge: &Purge, now: DateTime<Utc>) -> Option<Self> {
        Some(Self {
            v: VERSION,
            job: purge.job.as_ref()?.shortened(),
            ended_on: now,
            outcome: Outcome::Purged,
            succeeded: false,
            failure: None,
            audit: purge.audit.clone(),
        })
    }

    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    pub(crate) fn job(self, mut side: Sidecar, problem: Option<String>) -> Job {
        let owner = side.owner.take();
        // The last claim has a result, whenever it was made.
        side.count_ahead();
        let mut attempts = side.into_attempts();
        if let Some(failure) = self.failure {
            failure.add_to(&mut attempts.failures);
        }
        attempts.audit = self.audit.or(attempts.audit);
        Job {
            priority: self.job.priority,
            sequence: self.job.sequence,
            created_on: self.job.created_on,
            is_unfit: problem.is_some(),
            ended: Some(End {
                on: self.ended_on,
                outcome: self.outcome,
                owner: owner.map(Owner::from_stored),
                claimed_on: self.job.claimed_on,
                has_succeeded: self.succeeded,
            }),
            location: Location::History,
            book: self.job.book,
            attempts,
            problem,
            ..Job::new(JobKey::new(&self.job.uuid), self.job.uuid, self.job.name)
        }
    }
}

pub(crate) fn entry(
    key: &str,
    ended: serde_json::Result<HistoryRecord>,
    side: Sidecar,
    problem: Option<String>,
) -> Entry {
    let problem = match ended {
        Ok(read) if read.v == VERSION => return Entry::Job(Box::new(read.job(side, problem))),
        Ok(read) => format!("the record has the unknown version {}", read.v),
        Err(error) => shortened(&error.to_string()),
    };
    let problem = format!("the history record is unreadable: {problem}");
    Entry::Malformed(Malformed::new(JobKey::new(key), problem))
}

/// A history record on ZooKeeper.
#[derive(Serialize, Deserialize)]
pub(crate) struct HistoryNode {
    pub(crate) key: String,
    pub(crate) job: HistoryRecord,
    #[serde(default)]
    pub(crate) side: Sidecar,
}

impl HistoryNode {
    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    /// Reads the data of the node with this name.
    pub(crate) fn read(name: &str, data: &[u8]) -> Entry {
        match from_json::<Self>(data) {
            Ok(Self { key, job, side }) => match entry(&key, Ok(job), side, None) {
                Entry::Job(mut job) => {
                    job.key = JobKey::new(key);
                    Entry::Job(job)
                }
                malformed => malformed,
            },
            Err(error) => entry(name, Err(error), Sidecar::default(), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn untrusted_history_entries_round_trip() {
        let ends = [
            r#"{"v":1,"job":{"uuid":"3f9a12cd-0000-4000-8000-000000000001","name":"a"},
                "ended_on":"2026-01-01T00:00:00Z","outcome":"consumed","succeeded":true}"#,
            r#"{"v":1,"job":{"uuid":"b","name":"b","priority":"HIGH","sequence":7,
                "created_on":"2026-01-01T00:00:00.123456Z","book":{"name":"n","uuid":"u"},
                "claimed_on":"2026-01-01T00:00:00+01:00"},"ended_on":"2026-01-01T00:00:00Z",
                "outcome":"failed","failure":{"exit_code":3,"signal":null,"reason":"it failed",
                "stderr":"oh","conductor":"c1","time":"2026-01-01T00:00:00Z"},
                "remark":{"by":"olga","action":"purged"}}"#,
            r#"{"v":2}"#,
        ];
        Corpus::of(Bounds::STORED, ends).hold(|input| {
            let read = |bytes: &[u8]| serde_json::from_slice::<HistoryRecord>(bytes);
            let of = |ended| entry("1-1", ended, Sidecar::default(), None);
            let job = match of(read(input)) {
                Entry::Malformed(record) => return refused(&record.problem),
                Entry::Job(job) => *job,
            };
            let written = read(input).map_err(|it| it.to_string())?.write();
            let again = of(read(written.as_bytes()));
            same("written again", &Some(&job), &again.job())?;
            // Durations must not panic, even with invalid clocks.
            let _ = (job.waited(), job.took(), job.last_exit(), job.sent_by());
            Ok(Answer::Read)
        });
    }
}
