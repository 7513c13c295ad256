//! The promises of a board, their grades, and the reasons of failed tests.

use std::{fmt::Display, time::Duration};

use serde::Serialize;

use crate::{board::BoardError, exit::chain, names::named, output::Tone, suggest::Suggestion};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum Promise ("promise", str::eq) {
        Answers => "answers",
        Keeps => "keeps",
        OneWinner => "one-winner",
        Renewal => "renewal",
        Lapse => "expiry",
        Fence => "fence",
        Ends => "ends",
        Whole => "whole",
        BrokenOff => "interrupted",
        Events => "events",
        Clock => "clock",
        Durable => "durable",
        Rights => "rights",
    }
}

impl Promise {
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Answers => "the server answers every request quickly",
            Self::Keeps => "posted jobs are stored unchanged",
            Self::OneWinner => "of several concurrent claims of a job, one succeeds",
            Self::Renewal => "a renewed claim does not expire",
            Self::Lapse => "a claim without renewal expires on time and not earlier",
            Self::Fence => "a former owner cannot settle the job",
            Self::Ends => "consume, trash, restore and purge take effect exactly once",
            Self::Whole => "readers never see a half-made change",
            Self::BrokenOff => "broken connections lose and duplicate nothing",
            Self::Events => "subscribers receive events immediately",
            Self::Clock => "the clocks of client and server run at the same rate",
            Self::Durable => "acknowledged data survives a crash",
            Self::Rights => "the user has the permissions that a board needs",
        }
    }

    /// Whether reading alone shows it.
    pub(super) fn is_seen(self) -> bool {
        matches!(self, Self::Durable | Self::Rights)
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub(crate) enum Grade ("grade", str::eq) {
        Ok => "ok",
        Untried => "untried",
        Weak => "weak",
        Broken => "broken",
    }
}

impl Grade {
    pub(super) fn tone(self) -> Tone {
        match self {
            Self::Ok => Tone::Good,
            Self::Untried => Tone::Faint,
            Self::Weak => Tone::Warning,
            Self::Broken => Tone::Bad,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Assessment {
    pub(super) grade: Grade,
    pub(super) why: String,
    pub(super) remedy: Option<String>,
    pub(super) command: Option<Suggestion>,
}

impl Assessment {
    pub(super) fn new(grade: Grade, why: impl Into<String>) -> Self {
        Self {
            grade,
            why: why.into(),
            remedy: None,
            command: None,
        }
    }

    pub(super) fn ok(why: impl Into<String>) -> Self {
        Self::new(Grade::Ok, why)
    }

    pub(super) fn weak(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..Self::new(Grade::Weak, why)
        }
    }

    pub(super) fn untried(why: impl Into<String>) -> Self {
        Self::new(Grade::Untried, why)
    }
}

#[derive(Debug)]
pub(super) enum TrialError {
    Broken(String),
    Board(BoardError),
    /// A local problem, which does not concern the board.
    Local(String),
}

impl From<BoardError> for TrialError {
    fn from(error: BoardError) -> Self {
        Self::Board(error)
    }
}

impl From<TrialError> for Assessment {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Broken(why) => Self::new(Grade::Broken, why),
            TrialError::Local(why) => Self::untried(why),
            TrialError::Board(error @ (BoardError::Denied { .. } | BoardError::Unsupported(_))) => {
                Self::untried(chain(&error))
            }
            // Answering is a separate promise.
            TrialError::Board(error) if error.is_away() => {
                Self::untried(format!("a request got no reply: {}", chain(&error)))
            }
            TrialError::Board(error) => Self::new(
                Grade::Broken,
                format!("the server rejected a necessary request: {}", chain(&error)),
            ),
        }
    }
}

pub(super) type TrialResult<T = Assessment> = Result<T, TrialError>;

pub(super) fn require(holds: bool, why: impl Display) -> TrialResult<()> {
    match holds {
        true => Ok(()),
        false => broken(why.to_string()),
    }
}

pub(super) fn broken<T>(why: impl Into<String>) -> TrialResult<T> {
    Err(TrialError::Broken(why.into()))
}

/// Returns the time that 99 of 100 requests do not exceed.
pub(super) fn p99(mut all: Vec<Duration>) -> Option<Duration> {
    all.sort_unstable();
    all.get((all.len() * 99 / 100).min(all.len().checked_sub(1)?))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p99_leaves_out_one_of_a_hundred() {
        let all = (1..=200).map(Duration::from_millis).rev().collect();
        assert_eq!(p99(all), Some(Duration::from_millis(199)));
        let one = Duration::from_secs(1);
        assert_eq!((p99(vec![one]), p99(Vec::new())), (Some(one), None));
    }
}
