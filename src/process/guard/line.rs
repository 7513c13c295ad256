//! The protocol between a conductor and its guard: lines of text.

use std::{fmt, time::Duration};

use rustix::process::Pid;

use crate::process::{clock::Boottime, group::Group, label::Label};

/// When a command must end because its lease does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) terminate: Boottime,
    pub(crate) kill: Boottime,
}

impl Limits {
    /// Places both limits before the deadline of a lease of this length.
    pub(crate) fn before(deadline: Boottime, term: Duration) -> Self {
        Self {
            terminate: deadline - term / 6,
            kill: deadline - term / 12,
        }
    }
}

/// A command that must end in time, with all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ward {
    pub(crate) limits: Limits,
    /// All its processes carry it.
    pub(crate) label: Label,
}

impl fmt::Display for Ward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { terminate, kill } = self.limits;
        let label = self.label.number();
        write!(f, "{} {} {label}", terminate.as_nanos(), kill.as_nanos())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// Identifies all commands of this conductor; comes first.
    Mark {
        mark: String,
        /// The conductor, if it adopts orphans.
        conductor: Option<Pid>,
    },
    /// A command is about to start; until its group is known, only its label identifies it.
    Start(Ward),
    NotStarted,
    /// A command has started, or its lease was renewed.
    Watch {
        group: Group,
        ward: Ward,
    },
    Forget(Group),
    Bye,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mark { mark, conductor } => {
                let pid = conductor.map_or(0, |pid| pid.as_raw_nonzero().get());
                writeln!(f, "mark {pid} {mark}")
            }
            Self::Start(ward) => writeln!(f, "start {ward}"),
            Self::NotStarted => writeln!(f, "not-started"),
            Self::Watch { group, ward } => writeln!(f, "watch {group} {ward}"),
            Self::Forget(group) => writeln!(f, "forget {group}"),
            Self::Bye => writeln!(f, "bye"),
        }
    }
}

impl Line {
    /// Reads one line without its end; `None` if it is invalid.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split(' ');
        Some(match word {
            "mark" => Self::Mark {
                conductor: Pid::from_raw(words.next()?.parse().ok()?),
                mark: rest.split_once(' ')?.1.to_owned(),
            },
            "start" => Self::Start(ward(&mut words)?),
            "not-started" => Self::NotStarted,
            "watch" => Self::Watch {
                group: group(words.next()?)?,
                ward: ward(&mut words)?,
            },
            "forget" => Self::Forget(group(words.next()?)?),
            "bye" => Self::Bye,
            _ => return None,
        })
    }
}

fn group(word: &str) -> Option<Group> {
    let pid: u32 = word.parse().ok()?;
    Group::led_by(Pid::from_raw(pid.try_into().ok()?)?)
}

fn ward<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Ward> {
    Some(Ward {
        limits: Limits {
            terminate: moment(words.next()?)?,
            kill: moment(words.next()?)?,
        },
        label: Label::from_number(words.next()?.parse().ok()?)?,
    })
}

fn moment(word: &str) -> Option<Boottime> {
    word.parse().ok().map(Boottime::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        let group = group("4711").unwrap();
        let ward = Ward {
            limits: Limits::before(Boottime::from_nanos(12_000), Duration::from_nanos(1_200)),
            label: Label::new("ada", "1"),
        };
        let mark = |conductor| Line::Mark {
            mark: "ada@host:host:1: with spaces".to_owned(),
            conductor,
        };
        for line in [
            mark(None),
            mark(Pid::from_raw(7)),
            Line::Start(ward),
            Line::NotStarted,
            Line::Watch { group, ward },
            Line::Forget(group),
            Line::Bye,
        ] {
            assert_eq!(
                Line::parse(line.to_string().trim_end_matches('\n')),
                Some(line)
            );
        }
    }

    #[test]
    fn line_with_an_unsafe_pid_is_refused() {
        for line in [
            "forget 1",
            "forget 0",
            "forget -1",
            "forget -7",
            "watch 1 5 6 4611686018427387904",
            "watch 7 5 6",
            "start",
            "",
        ] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
    }

    #[test]
    fn both_moments_precede_the_deadline() {
        let limits = Limits::before(Boottime::from_nanos(12_000), Duration::from_nanos(12_000));
        assert_eq!(limits.terminate.as_nanos(), 10_000);
        assert_eq!(limits.kill.as_nanos(), 11_000);
    }
}
