//! Failed exchanges, grouped by their meaning for the board.

use crate::{
    board::{BoardError, Result},
    job::Draft,
};

/// Whether the request may have taken effect.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The request was not sent or was refused; nothing has happened.
    NotSent(BoardError),
    Lost(BoardError),
}

impl RequestFailure {
    /// Returns the error of a change: a lost request may have taken effect.
    pub(crate) fn into_unknown(self, board: &str) -> BoardError {
        match self {
            Self::NotSent(error) => error,
            // The error would repeat the board.
            Self::Lost(error) => BoardError::unknown(board, error.cause()),
        }
    }
}

impl From<RequestFailure> for BoardError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::NotSent(error) | RequestFailure::Lost(error) => error,
        }
    }
}

/// For read-only requests and refusals, which never take effect.
impl From<BoardError> for RequestFailure {
    fn from(error: BoardError) -> Self {
        Self::NotSent(error)
    }
}

/// Names the uuid under which an unanswered post may be on the board.
pub(crate) fn perhaps_posted(board: &str, draft: &Draft, error: &BoardError) -> BoardError {
    let (cause, uuid) = (error.cause(), draft.uuid);
    let source = format!("{cause}; if the job was posted, its uuid is {uuid}");
    BoardError::unknown(board, source)
}

/// Repeats for the rest of a batch why its request was not sent; an error if the whole batch remains.
pub(crate) fn refuse_rest<T>(
    answers: &mut Vec<Result<T>>,
    batch: usize,
    board: &str,
    error: BoardError,
) -> Result<()> {
    if answers.is_empty() {
        return Err(error);
    }
    answers.resize_with(batch, || match error {
        BoardError::Unknown { .. } => Err(BoardError::unreachable(board, error.cause())),
        _ => Err(error.repeated(board)),
    });
    Ok(())
}
