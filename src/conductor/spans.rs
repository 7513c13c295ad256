//! Exports attempts for tracing: one line of OTLP each, in one file.

use std::{
    fs::OpenOptions, io, os::unix::fs::OpenOptionsExt, path::Path, sync::Arc, time::Duration,
};

use chrono::{DateTime, Utc};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::{log::Log, meter::CountedEnd};
use crate::{
    job::{Conductor, Decision, Job},
    process::clock,
    trace::Span,
};

#[derive(Debug)]
pub(crate) struct SpanFile(Log);

impl SpanFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // A pipe without a reader fails immediately.
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.append(true).create(true).mode(0o600).open(path)?;
        Ok(Self(Log::new(None, path.to_owned(), file)))
    }
}

#[derive(Debug)]
pub(super) struct Spans {
    pub(super) file: Arc<Log>,
    board: String,
    conductor: String,
}

impl Spans {
    pub(super) fn new(file: SpanFile, board: &str, conductor: &Conductor) -> Self {
        Self {
            file: Arc::new(file.0),
            board: board.to_owned(),
            conductor: conductor.name.clone(),
        }
    }

    pub(super) fn line(
        &self,
        span: &Span,
        job: &Job,
        decision: Option<&Decision>,
        took: Duration,
    ) -> Vec<u8> {
        let ((mut span, link), ended) = (span.ids(), clock::wall());
        let nanos =
            |time: DateTime<Utc>| time.timestamp_nanos_opt().unwrap_or_default().to_string();
        let failure = decision.and_then(Decision::failure);
        let reason = match decision {
            Some(_) => failure.map(|failure| failure.reason.as_str()),
            None => Some("the claim was lost"),
        };
        let outcome = decision.map_or(CountedEnd::Lost, CountedEnd::from);
        let mut attributes = vec![
            text("messaging.system", "jobboard"),
            text("messaging.destination.name", &self.board),
            text("messaging.operation.type", "process"),
            text("messaging.message.id", &job.uuid),
            text("jobboard.job.name", &job.name),
            number("jobboard.attempt", i64::from(job.attempts.count)),
            text("jobboard.outcome", outcome.name()),
        ];
        let exit_code = failure.and_then(|failure| failure.exit_code);
        let is_done = decision == Some(&Decision::Consume);
        let exit_code = exit_code.or(is_done.then_some(0));
        attributes.extend(exit_code.map(|it| number("process.exit.code", it.into())));
        span["name"] = format!("process {}", job.name).into();
        // A consumer.
        span["kind"] = 5.into();
        span["startTimeUnixNano"] = nanos(ended - took).into();
        span["endTimeUnixNano"] = nanos(ended).into();
        span["attributes"] = attributes.into();
        span["links"] = Vec::from_iter(link).into();
        span["status"] = reason.map_or(json!({}), |reason| json!({"code": 2, "message": reason}));
        let version = env!("CARGO_PKG_VERSION");
        let resource = [
            text("service.name", "jobboard"),
            text("service.version", version),
            text("service.instance.id", &self.conductor),
        ];
        let line = json!({"resourceSpans": [{
            "resource": {"attributes": resource},
            "scopeSpans": [{
                "scope": {"name": "jobboard", "version": version},
                "spans": [span],
            }],
        }]});
        format!("{line}\n").into_bytes()
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: i64) -> Value {
    // JSON numbers have fewer than 64 bits.
    json!({"key": key, "value": {"intValue": value.to_string()}})
}
