//! What is said of a change that got no answer.

use super::link::Link;
use crate::{
    board::{BoardError, failure::cause},
    job::Draft,
};

/// Says of a request that was sent that its answer was not heard.
pub(super) fn unknown(link: &Link, error: BoardError) -> BoardError {
    BoardError::Unknown {
        board: link.name().to_owned(),
        source: error.into(),
    }
}

/// Says of a job whose post was not answered under which uuid it is, if it is on the board.
pub(super) fn perhaps(link: &Link, draft: &Draft, error: &BoardError) -> BoardError {
    let uuid = draft.uuid;
    BoardError::Unknown {
        board: link.name().to_owned(),
        source: format!("{}; if it was, its uuid is {uuid}", cause(error)).into(),
    }
}

/// Repeats for another job why an exchange did not take place.
pub(super) fn not_done(link: &Link, error: &BoardError) -> BoardError {
    BoardError::Unreachable {
        board: link.name().to_owned(),
        source: cause(error).into(),
    }
}
