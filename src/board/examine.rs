//! The checks of a backend on its own server and keys.

use super::{BoardError, chain};
use crate::problem::Problem;

/// The access to the board that a user needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Connection(Access),
    Server,
    /// The types and counters of the board's own keys, in one exchange. `highest` is the highest number of a job; the
    /// counter only grows, so read it after the jobs.
    Keys {
        highest: Option<i64>,
    },
    /// Keys that belong to no job: reads the names of all keys.
    Strays,
    /// The right to read and write the history, tested without writing. An error means that access was refused.
    History,
}

#[derive(Debug, Default)]
pub(crate) struct Examined {
    pub(crate) problems: Vec<Problem>,
    pub(crate) unseen: Vec<(String, Option<BoardError>)>,
}

impl Examined {
    pub(crate) fn add(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    pub(crate) fn unseen(&mut self, what: impl Into<String>, why: impl Into<Option<BoardError>>) {
        self.unseen.push((what.into(), why.into()));
    }

    /// Returns what could not be seen, with the reasons.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = String> {
        self.unseen.iter().map(|(what, why)| match why {
            Some(why) => format!("{what}: {}", chain(why)),
            None => what.clone(),
        })
    }
}
