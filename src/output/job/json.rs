//! A job as JSON: every key is always there.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{JobView, rfc3339};
use crate::job::{Entry, Failure, History};

impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let job = self.entry.job();
        let holding = self.entry.holding();
        let time = |time: Option<DateTime<Utc>>| time.map(rfc3339);
        map.serialize_entry("uuid", &job.map(|job| &job.uuid))?;
        map.serialize_entry("key", self.entry.key())?;
        map.serialize_entry("name", &job.map(|job| &job.name))?;
        map.serialize_entry("state", &self.entry.state())?;
        map.serialize_entry("priority", &job.map(|job| job.priority))?;
        map.serialize_entry("sequence", &job.and_then(|job| job.sequence))?;
        map.serialize_entry("created_on", &time(job.and_then(|job| job.created_on)))?;
        map.serialize_entry(
            "last_modified",
            &time(job.and_then(|job| job.last_modified)),
        )?;
        map.serialize_entry("owner", &holding.and_then(|holding| holding.owner.as_ref()))?;
        map.serialize_entry("lease", &holding.map(|holding| holding.lease))?;
        map.serialize_entry(
            "expires_in",
            &holding
                .and_then(|holding| holding.expires_in)
                .map(|left| left.as_secs_f64()),
        )?;
        map.serialize_entry(
            "claimed_on",
            &time(holding.and_then(|holding| holding.claimed_on)),
        )?;
        map.serialize_entry("fence", &holding.and_then(|holding| holding.fence.as_ref()))?;
        map.serialize_entry("trashed_on", &time(job.and_then(|job| job.trashed_on)))?;
        map.serialize_entry("book", &job.and_then(|job| job.book.as_ref()))?;
        map.serialize_entry("details", &job.and_then(|job| job.details.as_ref()))?;
        let history = job.map(|job| &job.history);
        map.serialize_entry("attempts", &history.map(|history| history.attempts))?;
        map.serialize_entry("postponed", &history.map(|history| history.postponed))?;
        map.serialize_entry(
            "not_before",
            &time(history.and_then(|history| history.not_before)),
        )?;
        map.serialize_entry("last_failure", &history.and_then(last_failure))?;
        map.serialize_entry("problem", &self.problem())?;
        let raw = match self.entry {
            Entry::Job(job) => (job.size, &job.raw),
            Entry::Malformed(record) => (record.size, &record.raw),
        };
        if job.is_none_or(|job| !job.raw.is_empty()) {
            map.serialize_entry("size", &raw.0)?;
            map.serialize_entry("raw", &BASE64.encode(raw.1))?;
        }
        map.end()
    }
}

impl JobView<'_> {
    fn problem(&self) -> Option<&str> {
        match self.entry {
            Entry::Job(job) => job.problem.as_deref(),
            Entry::Malformed(record) => Some(&record.problem),
        }
    }
}

fn last_failure(history: &History) -> Option<&Failure> {
    history.failures.last()
}
