//! A job as people and programs see it.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{Cell, Column, Fit, Page, Record, Report, Row, Text, Tone};
use crate::{
    duration,
    job::{Entry, Failure, Holding, Job, Lease, Malformed},
};

/// How many characters of a uuid people see, unless they ask for all of it.
const SHORT: usize = 8;

/// A record of a board, seen at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JobView<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) now: DateTime<Utc>,
    /// Whether people see what looks like a secret.
    pub(crate) is_revealed: bool,
}

/// Returns as much of a uuid as people need.
pub(crate) fn short(uuid: &str) -> &str {
    uuid.get(..SHORT).unwrap_or(uuid)
}

/// Returns a time as RFC 3339 in UTC.
pub(crate) fn rfc3339(time: DateTime<Utc>) -> String {
    time.trunc_subsecs(6)
        .to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

impl JobView<'_> {
    /// Returns how long ago a time was, never less than nothing.
    fn since(&self, time: DateTime<Utc>) -> std::time::Duration {
        (self.now - time).to_std().unwrap_or_default()
    }

    fn age(&self, job: &Job) -> Option<std::time::Duration> {
        job.created_on.map(|time| self.since(time))
    }

    fn held(&self, job: &Job) -> Option<std::time::Duration> {
        job.held_since().map(|time| self.since(time))
    }
}

impl Record for JobView<'_> {
    fn fields(&self) -> Vec<Text> {
        let seconds = |time: Option<std::time::Duration>| {
            time.map(|time| time.as_secs().to_string())
                .unwrap_or_default()
        };
        let state = self.entry.state().name();
        let fields = match self.entry {
            Entry::Malformed(record) => {
                let mut fields = vec![String::new(); 9];
                fields[2] = state.to_owned();
                fields[8] = record.key.to_string();
                fields
            }
            Entry::Job(job) => vec![
                job.uuid.clone(),
                job.name.clone(),
                state.to_owned(),
                job.priority.name().to_owned(),
                seconds(self.age(job)),
                job.owner().map(ToString::to_string).unwrap_or_default(),
                seconds(self.held(job)),
                seconds(job.holding.as_ref().and_then(|holding| holding.expires_in)),
                job.key.to_string(),
            ],
        };
        fields.into_iter().map(Text::from).collect()
    }

    fn uuid(&self) -> Option<&str> {
        self.entry.job().map(|job| job.uuid.as_str())
    }
}

const fn column(title: &'static str, fit: Fit) -> Column {
    Column { title, fit }
}

impl Row for JobView<'_> {
    const COLUMNS: &'static [Column] = &[
        column("uuid", Fit::Whole),
        column("name", Fit::Shrinks),
        column("state", Fit::Whole),
        column("priority", Fit::Whole),
        column("age", Fit::Number),
        column("owner", Fit::Shrinks),
        column("held", Fit::Number),
        column("expires", Fit::Number),
    ];

    fn cells(&self) -> Vec<Cell> {
        let state = self.entry.state();
        let state = Cell::toned(Tone::of(state), state.name());
        let none = || Cell::toned(Tone::Faint, "-");
        let job = match self.entry {
            Entry::Job(job) => job,
            Entry::Malformed(record) => {
                let name = Cell::toned(Tone::Bad, format!("key:{}", record.key));
                return vec![none(), name, state, none(), none(), none(), none(), none()];
            }
        };
        let span = |time: Option<std::time::Duration>| {
            time.map_or_else(none, |time| Cell::new(duration::brief(time)))
        };
        let holding = job.holding.as_ref();
        vec![
            Cell::toned(Tone::Strong, short(&job.uuid)),
            Cell::new(&job.name),
            state,
            Cell::new(job.priority.name()),
            span(self.age(job)),
            match (holding, job.owner()) {
                (_, Some(owner)) => Cell::new(owner.text()),
                (Some(_), None) => Cell::toned(Tone::Bad, "?"),
                (None, None) => none(),
            },
            span(self.held(job).filter(|_| holding.is_some())),
            match holding.map(|holding| (holding.lease, holding.expires_in)) {
                Some((Lease::Timed, left)) => span(left),
                Some((Lease::Session, _)) => Cell::new("session"),
                Some((Lease::None, _)) => Cell::new("never"),
                None => none(),
            },
        ]
    }
}

impl Report for JobView<'_> {
    fn human(&self, page: &mut Page) {
        match self.entry {
            Entry::Job(job) => self.job(job, page),
            Entry::Malformed(record) => malformed(record, page),
        }
    }
}

impl JobView<'_> {
    fn job(&self, job: &Job, page: &mut Page) {
        let state = job.state();
        page.line()
            .add(Tone::Strong, &job.name)
            .plain("  ")
            .add(Tone::of(state), state.name());
        page.fact("uuid", &job.uuid);
        if job.key.as_str() != job.uuid {
            page.fact("key", job.key.as_str());
        }
        page.fact("priority", job.priority.name());
        if let Some(sequence) = job.sequence {
            page.fact("sequence", sequence.to_string());
        }
        self.moment(page, "created", job.created_on);
        self.moment(page, "modified", job.last_modified);
        self.moment(page, "trashed", job.trashed_on);
        if let Some(holding) = &job.holding {
            self.holding(page, holding);
        }
        if let Some(book) = &job.book {
            page.fact("book", format!("{} {}", book.name, book.uuid));
        }
        self.history(page, job);
        if let Some(problem) = &job.problem {
            page.fact("problem", problem);
        }
        if let Some(details) = &job.details {
            self.details(page, details);
        }
    }

    fn moment(&self, page: &mut Page, name: &str, time: Option<DateTime<Utc>>) {
        let Some(time) = time else { return };
        let ago = duration::brief(self.since(time));
        page.fact(name, format!("{} ({ago} ago)", rfc3339(time)));
    }

    fn holding(&self, page: &mut Page, holding: &Holding) {
        match &holding.owner {
            Some(owner) => page.fact("owner", owner.text()),
            None => page.fact("owner", "cannot be read"),
        }
        self.moment(page, "claimed", holding.claimed_on);
        page.fact(
            "expires",
            match (holding.lease, holding.expires_in) {
                (Lease::Timed, Some(left)) => format!("in {}", duration::brief(left)),
                (Lease::Session, _) => "with its holder's session".to_owned(),
                _ => "never by itself".to_owned(),
            },
        );
        if let Some(fence) = &holding.fence {
            page.fact("fence", &fence.0);
        }
    }

    fn history(&self, page: &mut Page, job: &Job) {
        let history = &job.history;
        if history.attempts > 0 || history.postponed > 0 {
            let postponed = match history.postponed {
                0 => String::new(),
                count => format!(", postponed {count}"),
            };
            page.fact("attempts", format!("{}{postponed}", history.attempts));
        }
        if let Some(time) = history.not_before.filter(|time| *time > self.now) {
            let ahead = (time - self.now).to_std().unwrap_or_default();
            let ahead = duration::brief(ahead);
            page.fact("not before", format!("{} (in {ahead})", rfc3339(time)));
        }
        for failure in &history.failures {
            page.fact(
                "failed",
                format!(
                    "{} on {}: {}",
                    rfc3339(failure.time),
                    failure.conductor,
                    failure.reason
                ),
            );
            page.block(failure.stderr.trim_end());
        }
    }

    fn details(&self, page: &mut Page, details: &Value) {
        if details.as_object().is_some_and(serde_json::Map::is_empty) {
            return;
        }
        page.fact("details", "");
        let shown = if self.is_revealed {
            details.clone()
        } else {
            masked(details)
        };
        // A value always has a text; without one there would be nothing to show anyway.
        page.block(&serde_json::to_string_pretty(&shown).unwrap_or_default());
    }
}

fn malformed(record: &Malformed, page: &mut Page) {
    page.line()
        .add(Tone::Strong, format!("key:{}", record.key))
        .plain("  ")
        .add(Tone::Bad, "MALFORMED");
    page.fact("problem", &record.problem);
    page.fact("size", format!("{} bytes", record.size));
    page.fact("raw", "");
    page.block(&String::from_utf8_lossy(&record.raw));
}

/// Returns the value with what looks like a secret covered.
fn masked(value: &Value) -> Value {
    const COVER: &str = "******** (--reveal shows it)";
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                let member = match is_secret_name(name) && !member.is_null() {
                    true => Value::from(COVER),
                    false => masked(member),
                };
                (name.clone(), member)
            })
            .collect(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) if text.contains("-----BEGIN ") => Value::from(COVER),
        other => other.clone(),
    }
}

/// Whether a member of that name is likely to hold a secret.
fn is_secret_name(name: &str) -> bool {
    const TELLING: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "private_key",
        "privatekey",
        "secret",
        "token",
        "credential",
        "api_key",
    ];
    let name = name.to_ascii_lowercase().replace('-', "_");
    TELLING.iter().any(|telling| name.contains(telling)) || name == "server_pem"
}

impl Serialize for JobView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let job = self.entry.job();
        let holding = job.and_then(|job| job.holding.as_ref());
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
        if let Entry::Malformed(record) = self.entry {
            map.serialize_entry("size", &record.size)?;
            map.serialize_entry("raw", &BASE64.encode(&record.raw))?;
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

fn last_failure(history: &crate::job::History) -> Option<&Failure> {
    history.failures.last()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_covered_wherever_they_are() {
        let shown = masked(&json!({
            "user": "ada",
            "db_password": "x",
            "store": {"tls": [{"private_key": "y"}, "-----BEGIN RSA PRIVATE KEY-----\nz"]},
            "token": null,
        }));
        let text = shown.to_string();
        for secret in ["\"x\"", "\"y\"", "BEGIN"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(shown["user"], "ada");
        assert_eq!(shown["token"], Value::Null);
    }
}
