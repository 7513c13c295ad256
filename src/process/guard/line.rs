//! The protocol between a conductor and its guard: lines of JSON.

use serde::{Deserialize, Serialize};

use crate::process::{clock::Boottime, group::ProcessGroup, label::Label, lease_times::Deadlines};

/// A command that must end in time, with all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; 3]", try_from = "[u64; 3]")]
pub(crate) struct GuardedCommand {
    pub(crate) deadlines: Deadlines,
    /// All its processes carry it.
    pub(crate) label: Label,
}

impl From<GuardedCommand> for [u64; 3] {
    fn from(GuardedCommand { deadlines, label }: GuardedCommand) -> Self {
        let [terminate, kill] = [deadlines.terminate, deadlines.kill].map(Boottime::as_nanos);
        [terminate, kill, label.number()]
    }
}

impl TryFrom<[u64; 3]> for GuardedCommand {
    type Error = &'static str;

    fn try_from([terminate, kill, label]: [u64; 3]) -> Result<Self, Self::Error> {
        let [terminate, kill] = [terminate, kill].map(Boottime::from_nanos);
        Ok(Self {
            deadlines: Deadlines { terminate, kill },
            label: Label::from_number(label).ok_or("not a label")?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum GuardLine {
    /// Identifies all commands of this conductor; comes first.
    Mark {
        mark: String,
        /// The pid of the conductor, if it adopts orphans.
        conductor: Option<i32>,
    },
    /// A command is about to start; until its group is known, only its label identifies it.
    Start(GuardedCommand),
    NotStarted,
    /// A command has started, or its lease was renewed.
    Watch(ProcessGroup, GuardedCommand),
    Forget(ProcessGroup),
    Bye,
}

impl GuardLine {
    pub(super) fn text(&self) -> String {
        // A line has no part that JSON lacks.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_round_trip() {
        let group = ProcessGroup::try_from(4711).unwrap();
        let command = GuardedCommand {
            deadlines: Deadlines::before(Boottime::from_nanos(12_000), Duration::from_nanos(1_200)),
            label: Label::new("ada", "1"),
        };
        let mark = |conductor| GuardLine::Mark {
            mark: "ada@host:host:1: with spaces".to_owned(),
            conductor,
        };
        for line in [
            mark(None),
            mark(Some(7)),
            GuardLine::Start(command),
            GuardLine::NotStarted,
            GuardLine::Watch(group, command),
            GuardLine::Forget(group),
            GuardLine::Bye,
        ] {
            let text = line.text();
            assert_eq!(GuardLine::parse(text.trim_end().as_bytes()), Some(line));
        }
    }

    #[test]
    fn line_with_an_unsafe_pid_is_refused() {
        for line in [
            r#"{"Forget":1}"#,
            r#"{"Forget":0}"#,
            r#"{"Forget":-1}"#,
            r#"{"Forget":-7}"#,
            r#"{"Watch":[1,[5,6,4611686018427387904]]}"#,
            r#"{"Watch":[7,[5,6]]}"#,
            r#"{"Watch":[7,[5,6,7]]}"#,
            r#""Start""#,
            "",
        ] {
            assert_eq!(GuardLine::parse(line.as_bytes()), None, "{line}");
        }
    }
}
