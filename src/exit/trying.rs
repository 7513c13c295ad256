//! What a command was about when it failed.

use std::fmt::{self, Display};

/// What was tried, said in front of the error that came of it.
#[derive(Debug, Clone)]
pub(crate) struct Trying {
    pub(super) verb: &'static str,
    what: String,
    pub(super) board: Option<String>,
    pub(super) job: Option<String>,
}

impl Trying {
    pub(crate) fn new(verb: &'static str, what: impl Display, board: Option<String>) -> Self {
        Self {
            verb,
            what: what.to_string(),
            board,
            job: None,
        }
    }

    /// Says which job it is about, so that a hint can tell what to do with it.
    pub(crate) fn with(mut self, job: impl Display) -> Self {
        self.job = Some(job.to_string());
        self
    }

    pub(super) fn deed(&self) -> String {
        format!("cannot {} {}", self.verb, self.what)
    }
}

impl Display for Trying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.deed())?;
        match &self.board {
            Some(board) => write!(f, " on {board}"),
            None => Ok(()),
        }
    }
}
