//! What happened to a job before.

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use super::Remark;
use crate::secret::covered_text;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// The exit code of the command, if it ended by itself.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    /// The end of what the command wrote to its standard output; earlier versions did not keep it.
    #[serde(default)]
    pub(crate) stdout: String,
    /// The end of what the command wrote to its standard error.
    pub(crate) stderr: String,
    pub(crate) conductor: String,
    pub(crate) time: DateTime<Utc>,
}

/// How many bytes are kept of a text that people or peers chose the length of.
pub(crate) const LONGEST: usize = 1024;

pub(crate) fn shortened(text: &str) -> String {
    cut(text, LONGEST)
}

pub(super) fn cut(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut ends = (0..=longest).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    format!("{}…", &text[..end.unwrap_or(0)])
}

/// The end of what a command wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Failure {
    /// Returns one that was told, and that no command of ours has shown.
    pub(crate) fn told(reason: &str, by: &str) -> Self {
        Self {
            exit_code: None,
            signal: None,
            reason: shortened(reason),
            stdout: String::new(),
            stderr: String::new(),
            conductor: shortened(by),
            time: Utc::now().trunc_subsecs(6),
        }
    }

    /// Adds it to those that are kept, of which the oldest gives way.
    pub(crate) fn add_to(self, failures: &mut Vec<Self>) {
        failures.push(self);
        let surplus = failures.len().saturating_sub(History::FAILURES);
        failures.drain(..surplus);
    }

    /// Returns how the attempt ended and the last line of its output, with secrets masked.
    pub(crate) fn summary(&self) -> String {
        const LONGEST: usize = 200;
        let end = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => self.reason.clone(),
        };
        let last = [&self.stderr, &self.stdout].into_iter().find_map(|text| {
            let text = covered_text(text);
            let last = text.lines().rev().map(str::trim).find(|it| !it.is_empty());
            last.map(str::to_owned)
        });
        cut(
            &last.map_or_else(|| end.clone(), |last| format!("{end}: {last}")),
            LONGEST,
        )
    }

    /// Returns what the command wrote last, each under the name of the stream, if it wrote anything.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let ends = streams.map(|(name, text)| (name, text.trim_end()));
        ends.into_iter().filter(|(_, text)| !text.is_empty())
    }
}

/// What happened to a job before, which its posting has no place for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) attempts: u32,
    /// How often the job asked to be tried later.
    pub(crate) postponed: u32,
    /// Conductors leave the job alone until then.
    pub(crate) not_before: Option<DateTime<Utc>>,
    /// The last few failures, oldest first.
    pub(crate) failures: Vec<Failure>,
    pub(crate) first_claimed_on: Option<DateTime<Utc>>,
    /// Who did the last thing to it that is not its ordinary course, and why.
    pub(crate) remark: Option<Remark>,
}

impl History {
    pub(crate) const FAILURES: usize = 3;

    /// Whether conductors leave the job alone for a time that is not over.
    pub(crate) fn is_held_back(&self, now: DateTime<Utc>) -> bool {
        self.not_before.is_some_and(|time| time > now)
    }

    /// Whether a job is held back by it, or would not be tried as if for the first time.
    pub(crate) fn is_in_the_way(&self, now: DateTime<Utc>, keeps_attempts: bool) -> bool {
        let is_counted = self.attempts > 0 || self.postponed > 0;
        self.is_held_back(now) || (is_counted && !keeps_attempts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_the_last_line_of_standard_error() {
        let failure = Failure {
            exit_code: Some(3),
            stdout: "ah\n".to_owned(),
            stderr: "oh\npassword=abc disk full\n\n".to_owned(),
            ..Failure::told("the command ended with code 3", "ada")
        };
        assert_eq!(failure.summary(), "exit 3: password=******** disk full");
        let quiet = Failure {
            stderr: "\n".to_owned(),
            ..failure.clone()
        };
        assert_eq!(quiet.summary(), "exit 3: ah");
        assert_eq!(
            Failure::told("it took too long", "ada").summary(),
            "it took too long"
        );
        let long = Failure {
            stderr: "x".repeat(999),
            ..failure
        };
        assert!(long.summary().len() < 210);
    }
}
