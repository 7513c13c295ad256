//! Why an exchange with a server has no answers, by what that means for the board.

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
