//! The full description of a job and of its failed attempts.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{JobColumns, JobView, rfc3339};
use crate::{
    duration,
    job::{ClaimEnd, Entry, Failure, Holding, Job, Malformed, Pause},
    output::{Page, Report, Row as _, Tone},
    secret::{covered, covered_text},
};

impl Report for JobView<'_> {
    fn fields(&self) -> Vec<String> {
        let columns = JobColumns::of("uuid name state priority age owner held expires key");
        let row = columns.row(*self);
        row.fields().into_iter().map(Cow::into_owned).collect()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(self.entry.reference())
    }

    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        match self.entry {
            Entry::Job(job) => self.job(job, page),
            Entry::Malformed(record) => self.malformed(record, page),
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
        if job.key.text() != job.uuid {
            page.fact("key", job.key.text());
        }
        page.fact("priority", job.priority.name());
        page.facts("sequence", job.sequence.map(|it| it.to_string()));
        self.moment(page, "created", job.created_on);
        self.moment(page, "modified", job.last_modified);
        self.moment(page, "trashed", job.trashed_on);
        self.end(page, job);
        if let Some(holding) = &job.holding {
            self.holding(page, holding);
        }
        let book = job.book.as_ref();
        page.facts("book", book.map(|it| format!("{} {}", it.name, it.uuid)));
        self.attempts_and_delay(page, job);
        page.facts("problem", &job.problem);
        page.facts("paused", self.pause.map(Pause::to_string));
        if let Some(details) = &job.details() {
            self.details(page, details);
        }
    }

    fn moment(&self, page: &mut Page, name: &str, time: Option<DateTime<Utc>>) {
        let Some(time) = time else { return };
        let ago = duration::between(time, self.now);
        page.fact(name, format!("{} ({ago} ago)", rfc3339(time)));
    }

    fn end(&self, page: &mut Page, job: &Job) {
        if let Some(ended) = &job.ended {
            self.moment(page, "ended", Some(ended.on));
            page.fact("outcome", ended.outcome.name());
        }
        let spans = [("waited", job.waited()), ("took", job.took())];
        for (name, span) in spans.into_iter().filter(|_| job.ended.is_some()) {
            let span = span.and_then(|span| span.to_std().ok());
            page.facts(name, span.map(duration::brief));
        }
        if job.last_action().is_none() {
            page.facts("by", job.by());
        }
        if let Some(audit) = &job.attempts.audit {
            let ago = audit.on.map(|time| duration::between(time, self.now));
            let label = match job.last_action() {
                Some(_) => "by",
                None => "earlier",
            };
            page.fact(
                label,
                match (&audit.action, ago) {
                    (Some(action), Some(ago)) => format!("{}, {action} {ago} ago", audit.by),
                    _ => audit.by.clone(),
                },
            );
            page.facts("reason", job.reason());
        }
    }

    fn holding(&self, page: &mut Page, holding: &Holding) {
        match &holding.owner {
            Some(owner) => page.fact("owner", owner.text()),
            None => page.fact("owner", "unreadable"),
        }
        self.moment(page, "claimed", holding.claimed_on);
        page.fact(
            "expires",
            match (holding.end, holding.expires_in) {
                (ClaimEnd::Timed, Some(left)) => format!("in {}", duration::brief(left)),
                (ClaimEnd::Session, _) => "with the owner's session".to_owned(),
                _ => "never".to_owned(),
            },
        );
        page.facts("fence", holding.fence.as_ref().map(|it| &it.0));
    }

    fn attempts_and_delay(&self, page: &mut Page, job: &Job) {
        let attempts = &job.attempts;
        if attempts.count > 0 || attempts.postponed > 0 {
            let postponed = match attempts.postponed {
                0 => String::new(),
                count => format!(", postponed {count}"),
            };
            page.fact("attempts", format!("{}{postponed}", attempts.count));
        }
        if let Some(time) = attempts.not_before.filter(|time| *time > self.now) {
            let ahead = duration::between(self.now, time);
            page.fact(
                "backing off",
                format!("until {} (in {ahead})", rfc3339(time)),
            );
        }
        for failure in &attempts.failures {
            let (time, owner) = (rfc3339(failure.time), &failure.conductor);
            match failure.is_release() {
                true => page.fact("released", format!("{time}: the claim of {owner}")),
                false => page.fact(
                    "failed",
                    format!("{time} on {owner}: {}", failure.headline()),
                ),
            }
            self.last_lines(page, failure);
        }
    }

    pub(super) fn last_lines(&self, page: &mut Page, failure: &Failure) {
        for (stream, text) in failure.last_lines() {
            page.block(&format!("{stream}:"));
            let text = self.masked(text);
            text.lines()
                .for_each(|line| page.block(&format!("  {line}")));
        }
    }

    pub(super) fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.is_revealed {
            true => Cow::Borrowed(text),
            false => Cow::Owned(covered_text(text)),
        }
    }

    fn details(&self, page: &mut Page, details: &Value) {
        if details.as_object().is_some_and(serde_json::Map::is_empty) {
            return;
        }
        page.heading("details");
        let shown = if self.is_revealed {
            details.clone()
        } else {
            covered(details)
        };
        // A JSON value always has a text.
        page.block(&serde_json::to_string_pretty(&shown).unwrap_or_default());
    }

    fn malformed(&self, record: &Malformed, page: &mut Page) {
        page.line()
            .add(Tone::Strong, format!("key:{}", record.key))
            .plain("  ")
            .add(Tone::Bad, "MALFORMED");
        page.fact("problem", &record.problem);
        page.fact("size", format!("{} bytes", record.size));
        if let Some(holding) = &record.holding {
            self.holding(page, holding);
        }
        if self.is_revealed {
            page.heading("raw");
            page.block(&String::from_utf8_lossy(&record.raw));
        } else {
            // Secrets in an unreadable posting cannot be found.
            page.fact("raw", "hidden; use --reveal");
        }
    }
}

#[derive(Debug)]
pub(crate) struct FailedAttempt<'a> {
    view: JobView<'a>,
    /// `None` after `retry`, which counts from zero again.
    number: Option<u32>,
    failure: &'a Failure,
}

impl<'a> JobView<'a> {
    pub(crate) fn attempts(self) -> impl Iterator<Item = FailedAttempt<'a>> {
        self.entry.job().into_iter().flat_map(move |job| {
            let failures = &job.attempts.failures;
            let later = (0..failures.len() as u32).rev();
            failures
                .iter()
                .zip(later)
                .map(move |(failure, later)| FailedAttempt {
                    view: self,
                    number: (job.failed_attempts().checked_sub(later)).filter(|number| *number > 0),
                    failure,
                })
        })
    }
}

impl Serialize for FailedAttempt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.failure.serialize(serializer)
    }
}

impl Report for FailedAttempt<'_> {
    const IS_TEXT: bool = true;

    fn fields(&self) -> Vec<String> {
        let Failure { stdout, stderr, .. } = self.failure;
        let number = self.number.map(|number| number.to_string());
        let output = [stdout, stderr].map(|text| self.view.masked(text).into_owned());
        let facts = [
            self.view.entry.reference().into_owned(),
            number.unwrap_or_default(),
            self.failure.headline(),
            rfc3339(self.failure.time),
            self.failure.conductor.clone(),
        ];
        facts.into_iter().chain(output).collect()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(self.view.entry.reference())
    }

    fn human(&self, page: &mut Page) {
        let attempt = match self.number {
            Some(number) => format!("attempt {number}"),
            // `retry` has reset the count.
            None => "earlier attempt".to_owned(),
        };
        let ago = duration::between(self.failure.time, self.view.now);
        let (time, conductor) = (rfc3339(self.failure.time), &self.failure.conductor);
        page.sentence(2)
            .add(Tone::Strong, self.view.entry.name())
            .plain(format!("  {attempt}  "))
            .add(Tone::Bad, self.failure.headline())
            .plain(format!("  {time} ({ago} ago) on {conductor}"));
        self.view.last_lines(page, self.failure);
        if self.failure.last_lines().next().is_none() {
            page.block("it printed nothing, or its output was not kept");
        }
    }
}
