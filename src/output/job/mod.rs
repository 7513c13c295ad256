//! A job as people and programs see it.

mod detail;
mod json;
mod past;
mod secrets;

use std::{borrow::Cow, time::Duration};

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};

pub(crate) use self::{past::PastView, secrets::covered_text};
use super::{Cell, Column, Fit, NOTHING, Record, Row, Tone};
use crate::{
    duration,
    job::{Entry, Job, Lease},
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

impl<'a> JobView<'a> {
    /// Shows a record as a listing does.
    pub(crate) fn of(entry: &'a Entry, now: DateTime<Utc>) -> Self {
        Self {
            entry,
            now,
            is_revealed: false,
        }
    }
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
    fn since(&self, time: DateTime<Utc>) -> Duration {
        (self.now - time).to_std().unwrap_or_default()
    }

    fn age(&self, job: &Job) -> Option<Duration> {
        job.created_on.map(|time| self.since(time))
    }

    fn held(&self, job: &Job) -> Option<Duration> {
        job.held_since().map(|time| self.since(time))
    }
}

impl Record for JobView<'_> {
    fn fields(&self) -> Vec<String> {
        let seconds = |time: Option<Duration>| {
            time.map(|time| time.as_secs().to_string())
                .unwrap_or_default()
        };
        let state = self.entry.state().name();

        match self.entry {
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
        }
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(self.entry.reference())
    }
}

impl Row for JobView<'_> {
    const COLUMNS: &'static [Column] = &[
        Column::new("uuid", Fit::Whole),
        Column::new("name", Fit::Shrinks),
        Column::new("state", Fit::Whole),
        Column::new("priority", Fit::Whole),
        Column::new("age", Fit::Number),
        Column::new("owner", Fit::KeepsEnds),
        Column::new("held", Fit::Number),
        Column::new("expires", Fit::Number),
    ];

    fn cells(&self) -> Vec<Cell> {
        let state = self.entry.state();
        let state = Cell::toned(Tone::of(state), state.name());
        let none = || Cell::toned(Tone::Faint, NOTHING);
        let job = match self.entry {
            Entry::Job(job) => job,
            Entry::Malformed(record) => {
                let name = Cell::vital(Tone::Bad, format!("key:{}", record.key));
                return vec![none(), name, state, none(), none(), none(), none(), none()];
            }
        };
        let span = |time: Option<Duration>| {
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
