//! Why an exchange with a server has no answers, by what that means for the board.

use std::{error::Error as _, io};

use crate::{board::BoardError, job::Draft};

/// Whether what was asked for may have happened.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing was sent, or it was refused; nothing has happened.
    NotSent(BoardError),
    /// It was sent, and may have happened.
    Lost(BoardError),
}

impl From<Failure> for BoardError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(error) | Failure::Lost(error) => error,
        }
    }
}

/// For requests that change nothing, and for refusals: whatever they fail of, nothing has happened.
impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        Self::NotSent(error)
    }
}

/// Says of a request that was sent that its answer was not heard.
pub(crate) fn unknown(board: &str, error: BoardError) -> BoardError {
    BoardError::Unknown {
        board: board.to_owned(),
        source: error.into(),
    }
}

/// Says of a job whose post was not answered under which uuid it is, if it is on the board.
pub(crate) fn perhaps_posted(board: &str, draft: &Draft, error: &BoardError) -> BoardError {
    let uuid = draft.uuid;
    BoardError::Unknown {
        board: board.to_owned(),
        source: format!(
            "{}; if the job was posted, its uuid is {uuid}",
            cause(error)
        )
        .into(),
    }
}

/// Repeats for another job why an exchange did not take place.
pub(crate) fn not_done(board: &str, error: &BoardError) -> BoardError {
    BoardError::Unreachable {
        board: board.to_owned(),
        source: cause(error).into(),
    }
}

/// Returns what the system says, without its number for it.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// Returns the cause of an error, as it is repeated for each of several jobs.
pub(crate) fn cause(error: &BoardError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
