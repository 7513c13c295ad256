//! The failed action of a command, as context for its error.

use std::fmt::{self, Display};

/// Verbs with special hints for their errors.
pub(crate) mod verb {
    pub(crate) const ABANDON: &str = "abandon";
    pub(crate) const CHANGE: &str = "change";
    pub(crate) const CLAIM: &str = "claim";
    pub(crate) const CONSUME: &str = "consume";
    pub(crate) const EXTEND: &str = "extend";
    pub(crate) const MEND: &str = "mend";
    pub(crate) const PURGE: &str = "purge";
    pub(crate) const RESUME: &str = "resume";
    pub(crate) const RETRY: &str = "retry";
    pub(crate) const SHOW_FLOW: &str = "show the flow of";
    pub(crate) const TRASH: &str = "trash";
    pub(crate) const TRY_CANARY: &str = "try";
}

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

    pub(crate) fn with(mut self, job: impl Display) -> Self {
        self.job = Some(job.to_string());
        self
    }

    pub(super) fn action(&self) -> String {
        format!("cannot {} {}", self.verb, self.what)
    }

    /// The action if its outcome is unknown.
    pub(super) fn attempt(&self) -> String {
        format!("tried to {} {}", self.verb, self.what)
    }
}

impl Display for Trying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action())?;
        match &self.board {
            Some(board) => write!(f, " on {board}"),
            None => Ok(()),
        }
    }
}
