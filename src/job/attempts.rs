//! The attempts, failures and audit entries of a job, and a reader of our own records with a size limit.

use std::borrow::Cow;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned, Error as _},
};
use serde_json::Value;

use crate::secret::covered_text;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The exit code of the command, unless a signal ended it.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    /// The end of the command's standard output. Earlier versions did not store it.
    #[serde(default)]
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) conductor: String,
    #[serde(deserialize_with = "failure_time")]
    pub(crate) time: DateTime<Utc>,
}

const HEADLINE: usize = 160;

/// The longest stored text of arbitrary length, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 1024;

pub(crate) fn shortened(text: &str) -> String {
    cut(text, MAX_TEXT_BYTES)
}

pub(crate) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    format!("{}…", &text[..boundary(text, longest)])
}

/// Returns the end of the last character that ends by then.
pub(super) fn boundary(text: &str, end: usize) -> usize {
    let mut ends = (0..=end).rev();
    ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CapturedOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Failure {
    /// Makes a failure from a reported reason, without a command of ours.
    pub(crate) fn reported(reason: &str, by: &str) -> Self {
        Self {
            reason: shortened(reason),
            conductor: shortened(by),
            time: Utc::now().trunc_subsecs(6),
            ..Self::default()
        }
    }

    pub(crate) fn add_to(self, failures: &mut Vec<Self>) {
        failures.push(self);
        let surplus = failures.len().saturating_sub(Attempts::MAX_FAILURES);
        failures.drain(..surplus);
    }

    /// Whether an operator released the claim by force, which is no failure of the job.
    pub(crate) fn is_release(&self) -> bool {
        self.reason == RELEASED
    }

    /// Returns the failure in one line, secrets masked: `exit 3: disk full`.
    pub(crate) fn headline(&self) -> String {
        let how = self.how().unwrap_or_else(|| covered_text(&self.reason));
        match self.last_line() {
            Some(line) => cut(&format!("{how}: {line}"), HEADLINE),
            None => how,
        }
    }

    /// Returns how the command ended; `None` if only the reason describes it, as for a timeout.
    pub(crate) fn how(&self) -> Option<String> {
        let signal = self.signal.map(|signal| format!("signal {signal}"));
        self.exit_code.map(|code| format!("exit {code}")).or(signal)
    }

    /// Returns the last line of standard error, or else of standard output, secrets masked.
    pub(crate) fn last_line(&self) -> Option<String> {
        [&self.stderr, &self.stdout].into_iter().find_map(|text| {
            // Only its neighbours identify a line of a private key as secret.
            let text = match text.contains("-----") {
                true => Cow::Owned(covered_text(text)),
                false => Cow::Borrowed(text.as_str()),
            };
            let mut lines = text.lines().rev().map(str::trim);
            let last = lines.find(|line| !line.is_empty())?;
            Some(covered_text(&shortened(last)))
        })
    }

    pub(crate) fn last_lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let ends = streams.map(|(name, text)| (name, text.trim_end()));
        ends.into_iter().filter(|(_, text)| !text.is_empty())
    }
}

/// The longest claim by hand, and a day for clocks that differ.
const MAX_CLAIM: TimeDelta = TimeDelta::days(3651);

/// Failure reason after a forced release.
pub(crate) const RELEASED: &str = "an operator released the claim";

/// The attempts, failures and last audit entry of a job, read from its sidecar.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attempts {
    pub(crate) count: u32,
    pub(crate) postponed: u32,
    /// Conductors skip the job until then.
    pub(crate) not_before: Option<DateTime<Utc>>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) first_claimed_on: Option<DateTime<Utc>>,
    pub(crate) audit: Option<AuditEntry>,
}

impl Attempts {
    pub(crate) const MAX_FAILURES: usize = 3;

    /// Returns how long the former owner may still run the job: an operator released its claim by force, without proof
    /// that its command has ended.
    pub(crate) fn may_run_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let last = self.failures.last()?;
        let may_run = |time: &DateTime<Utc>| *time > now && *time - now <= MAX_CLAIM;
        self.not_before
            .filter(|time| may_run(time) && last.is_release())
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failures.iter().any(|it| !it.is_release())
    }

    /// Whether an attempt has failed since an operator last retried the job.
    pub(crate) fn is_failing(&self) -> bool {
        let audit = self.audit.as_ref();
        let retried = audit.filter(|it| it.action.as_deref() == Some(AuditEntry::RETRIED));
        let retried = retried.and_then(|it| it.on);
        // A retry restarts the count of attempts; a later audit entry replaces that of the retry.
        let attempts = usize::try_from(self.count).unwrap_or(usize::MAX);
        let failures = self.failures.iter().rev().take(attempts);
        let mut failures = failures.filter(|it| !it.is_release());
        failures.any(|it| retried.is_none_or(|on| it.time > on))
    }

    pub(crate) fn is_delayed(&self, now: DateTime<Utc>) -> bool {
        self.not_before.is_some_and(|time| time > now)
    }

    /// Whether a retry has a delay or counts to reset.
    pub(crate) fn needs_restart(&self, now: DateTime<Utc>, keeps_attempts: bool) -> bool {
        let is_counted = self.count > 0 || self.postponed > 0;
        self.is_delayed(now) || (is_counted && !keeps_attempts)
    }
}

/// An audit entry: a manual intervention, with its author, time and reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AuditEntry {
    pub(crate) by: String,
    /// The past form of the verb. Earlier versions stored neither it nor the time, and later ones may add more
    /// actions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "sortable_time"
    )]
    pub(crate) on: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// Reads a stored time. Like the scripts on Redis, it accepts only this form, without leap seconds and with at most nine
/// decimals.
pub(crate) fn sortable_time<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(reader)?;
    text.map(|text| parse_sortable(&text)).transpose()
}

fn failure_time<'de, D: Deserializer<'de>>(reader: D) -> Result<DateTime<Utc>, D::Error> {
    parse_sortable(&Cow::<'_, str>::deserialize(reader)?)
}

fn parse_sortable<E: de::Error>(text: &str) -> Result<DateTime<Utc>, E> {
    let is_in_form = text.len() <= "2026-01-01T00:00:00.123456789Z".len()
        && text.ends_with('Z')
        && text.as_bytes().get(10) == Some(&b'T');
    let time = DateTime::parse_from_rfc3339(text).ok();
    let time = time.filter(|it| is_in_form && it.timestamp_subsec_nanos() < 1_000_000_000);
    let time = time.ok_or_else(|| E::custom(format!("`{text}` is not a time")))?;
    Ok(time.to_utc())
}

impl AuditEntry {
    pub(crate) const MOVED: &str = "moved";

    pub(crate) const RECEIVED: &str = "received";

    pub(crate) const RETRIED: &str = "retried";

    pub(crate) fn now(action: &str, by: &str, reason: Option<&str>) -> Self {
        Self {
            by: shortened(by),
            action: Some(action.to_owned()),
            on: Some(Utc::now().trunc_subsecs(6)),
            reason: reason.map(shortened),
        }
    }

    pub(crate) fn is_of(&self, action: &str) -> bool {
        self.action.as_deref().is_none_or(|done| done == action)
    }
}

pub(crate) const MAX_RECORD_BYTES: usize = 256 * 1024;

const MAX_MEMBERS: usize = MAX_TEXT_BYTES / 2;

/// Reads our own record, which any peer may have changed: cuts long texts and lists.
pub(crate) fn from_json<T: DeserializeOwned>(record: &[u8]) -> serde_json::Result<T> {
    if record.len() > MAX_RECORD_BYTES {
        let length = record.len();
        return Err(serde_json::Error::custom(format!(
            "the record has {length} bytes"
        )));
    }
    let read = serde_json::from_slice(record)?;
    // A short record has no long parts.
    if record.len() <= MAX_TEXT_BYTES {
        return Ok(read);
    }
    let mut value = serde_json::from_slice(record)?;
    shorten_texts(&mut value);
    serde_json::from_value(value)
}

/// Cuts long texts and lists as [`from_json`] does.
pub(crate) fn shorten_texts(value: &mut Value) {
    shorten(value, MAX_TEXT_BYTES);
}

fn shorten(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) if text.len() > longest => *text = cut(text, longest),
        Value::Array(values) => {
            values.truncate(MAX_MEMBERS);
            values.iter_mut().for_each(|value| shorten(value, longest));
        }
        Value::Object(members) => {
            let mut room = MAX_MEMBERS;
            members.retain(|name, value| {
                // Output of commands may be longer.
                let is_output = matches!(name.as_str(), "stdout" | "stderr");
                shorten(value, MAX_TEXT_BYTES * if is_output { 2 } else { 1 });
                room = room.saturating_sub(1);
                room > 0 && name.len() <= MAX_TEXT_BYTES
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headline_is_the_end_and_the_last_line_with_secrets_masked() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nhunter2";
        for (exit_code, signal, stdout, stderr, headline) in [
            (
                Some(3),
                None,
                "out",
                "first\ndisk full\n\n",
                "exit 3: disk full",
            ),
            (None, Some(9), "out\n", " \n", "signal 9: out"),
            (Some(1), None, "", "", "exit 1"),
            (None, None, "", "", "it took longer than 5s"),
            (None, None, "", "locked", "it took longer than 5s: locked"),
            (
                Some(1),
                None,
                "",
                "password=hunter2",
                "exit 1: password=********",
            ),
            (Some(1), None, "", key, "exit 1: ********"),
        ] {
            let failure = Failure {
                exit_code,
                signal,
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                ..Failure::reported("it took longer than 5s", "night")
            };
            assert_eq!(failure.headline(), headline);
            let long = Failure {
                stderr: "é".repeat(5_000),
                ..failure
            };
            assert!(long.headline().len() <= HEADLINE + "…".len());
        }
    }
}
