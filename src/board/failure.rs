//! Why an exchange with a server has no answers, by what that means for the board.

use std::{error::Error as _, io};

use super::BoardError;

/// Whether what was asked for may have happened.
#[derive(Debug)]
pub(super) enum Failure {
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

/// Returns what the system says, without its number for it.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// Returns the cause of an error, as it is repeated for each of several jobs.
pub(super) fn cause(error: &BoardError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}
