//! A job as JSON: every key is always there.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{JobView, rfc3339};
use crate::{
    job::{Entry, History, Job},
    secret::covered,
};

macro_rules! write_members {
    ($map:ident { $($key:literal: $value:expr,)+ }) => { $($map.serialize_entry($key, &$value)?;)+ };
}

impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (entry, job, claim) = (self.entry, self.entry.job(), self.entry.holding());
        let ended = job.and_then(|job| job.ended.as_ref());
        let history = job.map(|job| &job.history);
        let remark = history.and_then(|history| history.remark.as_ref());
        let (exit_code, signal) = job.and_then(Job::last_exit).unzip();
        let time = |time: Option<DateTime<Utc>>| time.map(rfc3339);
        let seconds = |span: Option<TimeDelta>| span.map(|span| span.as_seconds_f64());
        let (problem, raw) = match entry {
            Entry::Job(job) => (job.problem.as_deref(), &job.raw),
            Entry::Malformed(record) => (Some(&*record.problem), &record.raw),
        };
        let hides = self.is_covered && !self.is_revealed;
        let details = job.and_then(Job::details);
        let hidden = details.as_ref().filter(|_| hides).map(|it| covered(it));
        let mut map = serializer.serialize_map(None)?;
        write_members! { map {
            "uuid": job.map(|job| &job.uuid),
            "key": entry.key(),
            "name": job.map(|job| &job.name),
            "state": entry.state(),
            "priority": job.map(|job| job.priority),
            "sequence": job.and_then(|job| job.sequence),
            "created_on": time(job.and_then(|job| job.created_on)),
            "last_modified": time(job.and_then(|job| job.last_modified)),
            "owner": claim.and_then(|claim| claim.owner.as_ref()),
            "lease": claim.map(|claim| claim.lease),
            "expires_in": claim.and_then(|claim| claim.expires_in).map(|left| left.as_secs_f64()),
            "claimed_on": time(claim.and_then(|claim| claim.claimed_on)),
            "fence": claim.and_then(|claim| claim.fence.as_ref()),
            "trashed_on": time(job.and_then(|job| job.trashed_on)),
            "ended_on": time(ended.map(|ended| ended.on)),
            "outcome": ended.map(|ended| ended.departure),
            "by": remark.map(|remark| &remark.by),
            "action": remark.and_then(|remark| remark.action.as_ref()),
            "action_on": time(remark.and_then(|remark| remark.on)),
            "reason": history.and_then(History::reason),
            "waited": seconds(job.and_then(Job::waited)),
            "took": seconds(job.and_then(Job::took)),
            "exit_code": exit_code.flatten(),
            "signal": signal.flatten(),
            "book": job.and_then(|job| job.book.as_ref()),
            "details": hidden.as_ref().or(details.as_deref()),
            "attempts": history.map(|history| history.attempts),
            "postponed": history.map(|history| history.postponed),
            "not_before": time(history.and_then(|history| history.not_before)),
            "last_failure": history.and_then(|history| history.failures.last()),
            "failures": history.map(|history| &history.failures),
            "problem": problem,
        } }
        if job.is_none_or(|job| !job.raw.is_empty()) {
            // Secrets in an unreadable posting cannot be found.
            let raw = if hides { &[] } else { raw.as_slice() };
            write_members! { map { "size": entry.size(), "raw": BASE64.encode(raw), } }
        }
        map.end()
    }
}
