//! A job as JSON: every key is always there.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{JobView, rfc3339};
use crate::{
    job::{Entry, Failure, History, Job},
    secret::covered,
};

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
        self.ending(&mut map)?;
        map.serialize_entry("book", &job.and_then(|job| job.book.as_ref()))?;
        let hides = self.is_covered && !self.is_revealed;
        let details = job.and_then(Job::details);
        match details.as_ref().filter(|_| hides) {
            Some(details) => map.serialize_entry("details", &covered(details))?,
            None => map.serialize_entry("details", &details)?,
        }
        let history = job.map(|job| &job.history);
        map.serialize_entry("attempts", &history.map(|history| history.attempts))?;
        map.serialize_entry("postponed", &history.map(|history| history.postponed))?;
        map.serialize_entry(
            "not_before",
            &time(history.and_then(|history| history.not_before)),
        )?;
        map.serialize_entry("last_failure", &history.and_then(last_failure))?;
        map.serialize_entry("failures", &history.map(|history| &history.failures))?;
        map.serialize_entry("problem", &self.problem())?;
        let raw = match self.entry {
            Entry::Job(job) => (job.size, &job.raw),
            Entry::Malformed(record) => (record.size, &record.raw),
        };
        if job.is_none_or(|job| !job.raw.is_empty()) {
            map.serialize_entry("size", &raw.0)?;
            // Secrets in an unreadable posting cannot be found.
            let raw = if hides { &[] } else { raw.1.as_slice() };
            map.serialize_entry("raw", &BASE64.encode(raw))?;
        }
        map.end()
    }
}

impl JobView<'_> {
    fn ending<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let job = self.entry.job();
        let ended = job.and_then(|job| job.ended.as_ref());
        let remark = job.and_then(|job| job.history.remark.as_ref());
        let seconds = |span: Option<TimeDelta>| span.map(|span| span.as_seconds_f64());
        map.serialize_entry("ended_on", &ended.map(|ended| rfc3339(ended.on)))?;
        map.serialize_entry("outcome", &ended.map(|ended| ended.departure))?;
        map.serialize_entry("by", &remark.map(|remark| &remark.by))?;
        map.serialize_entry("action", &remark.and_then(|remark| remark.action.as_ref()))?;
        let on = remark.and_then(|remark| remark.on);
        map.serialize_entry("action_on", &on.map(rfc3339))?;
        map.serialize_entry("reason", &remark.and_then(|remark| remark.reason.as_ref()))?;
        map.serialize_entry("waited", &seconds(job.and_then(Job::waited)))?;
        map.serialize_entry("took", &seconds(job.and_then(Job::took)))?;
        let (exit_code, signal) = job.and_then(Job::last_exit).unzip();
        map.serialize_entry("exit_code", &exit_code.flatten())?;
        map.serialize_entry("signal", &signal.flatten())
    }

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
