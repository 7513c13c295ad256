//! The registry: the entries of Redis boards, and the status of conductors, which is the same JSON on every board.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::as_json;
use crate::job::{ConductorReport, from_json};

const MAX_REPORT_BYTES: usize = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryRecord {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) since: DateTime<Utc>,
    pub(crate) owner: String,
    /// Distinguishes two processes of the same name.
    pub(crate) token: String,
}

impl ConductorReport {
    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    /// Reads a stored report. An unreadable one counts as empty.
    pub(crate) fn read(text: &[u8]) -> Self {
        if text.len() > MAX_REPORT_BYTES {
            return Self::default();
        }
        // Earlier versions stored only their unsettled jobs.
        let earlier = |_| {
            from_json(text).map(|unsettled| Self {
                unsettled,
                ..Self::default()
            })
        };
        from_json(text).or_else(earlier).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn untrusted_conductor_status_is_rejected_or_round_trips() {
        let report = [
            r#"{"version":"0.2.0","slots":4,"lease":30.5,"course":"draining","running":1,"runs":[{"uuid":
                "u","name":"a","since":"2026-01-01T00:00:00Z","attempt":1}],"done":7,"failed":1}"#,
            r#"{"takes":{"filters":["name=a*"],"programs":null,"search":["/bin"],"variables":[],"handlers":
                {"a":null,"b":"it is no program"},"more_handlers":2,"command":{"program":"/bin/a"},"max_attempts":3},"later":[[1]]}"#,
            r#"{"passed_over":[{"reason":"r","jobs":2,"such_as":"a","job":"@1"}],"unsettled":[]}"#,
            r#"[{"uuid":"u","name":"a","reason":"it is away"}]"#,
        ];
        Corpus::of(Bounds::STORED, report).hold(|input| {
            let report = ConductorReport::read(input);
            if report == ConductorReport::default() {
                return refused("it tells nothing");
            }
            let again = report.write();
            same(
                "told again",
                &report,
                &ConductorReport::read(again.as_bytes()),
            )
            .and(Ok(Answer::Read))
        });
    }
}
