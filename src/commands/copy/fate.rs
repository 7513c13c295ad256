//! What is known of jobs that are moved, whatever was answered and not heard.

use std::error::Error as _;

use crate::{
    board::{self, Board, BoardError},
    commands::{load::refusal, parts::loader::Loaded},
    exit::{CommandError, chain},
    job::Entry,
};

/// What is known of a job after it was to be posted on the other board.
pub(super) enum Fate {
    There,
    NotThere(anyhow::Error),
    /// It may be there: it stays claimed here for as long as a claim lasts that nobody renews.
    Unclear(anyhow::Error),
}

/// Judges what became of a job by what was answered to its post, and whether it was seen there then.
///
/// One that `is_left` behind by another move may have been there before.
pub(super) fn fate(
    entry: &Entry,
    is_left: bool,
    answer: board::Result<Loaded>,
    there: board::Result<bool>,
) -> Fate {
    match (answer, there) {
        (Ok(loaded @ (Loaded::Conflict | Loaded::Shelved)), _) => {
            Fate::NotThere(refusal(entry, loaded))
        }
        // Whatever was answered: it was not there before.
        (_, Ok(true)) => Fate::There,
        // Somebody of whom nothing is remembered may have performed it.
        (Ok(Loaded::Posted | Loaded::Exists), Ok(false)) => {
            let message = "it was posted there, and is not there any more";
            Fate::Unclear(CommandError::refused(message).into())
        }
        // What was not heard may yet be done.
        (Err(error @ BoardError::Unknown { .. }), _) | (Ok(_), Err(error)) => {
            Fate::Unclear(error.into())
        }
        (Err(error @ BoardError::Failed { .. }), Err(_)) => Fate::Unclear(error.into()),
        (Err(error), Err(_)) if is_left => Fate::Unclear(error.into()),
        (Err(error), _) => Fate::NotThere(error.into()),
    }
}

/// Whether it may be answered otherwise a little later.
pub(super) fn is_open(error: &BoardError) -> bool {
    error.is_retryable() || matches!(error, BoardError::Unknown { .. })
}

/// Repeats for one of several jobs that the exchange about all of them failed.
pub(super) fn repeated(board: &dyn Board, error: &BoardError) -> BoardError {
    match error {
        BoardError::Unknown { .. } => unheard(board, error),
        error if error.is_retryable() => BoardError::Unreachable {
            board: board.name().to_owned(),
            source: cause(error).into(),
        },
        error => BoardError::Failed {
            doing: "settle jobs of",
            board: board.name().to_owned(),
            source: chain(error).into(),
        },
    }
}

/// Says of one of several jobs that nobody knows whether it was done.
pub(super) fn unheard(board: &dyn Board, error: &BoardError) -> BoardError {
    BoardError::Unknown {
        board: board.name().to_owned(),
        source: cause(error).into(),
    }
}

fn cause(error: &BoardError) -> String {
    error.source().map_or_else(|| error.to_string(), chain)
}

/// Says of a job where it is, and what ends that.
pub(super) fn on_both(error: anyhow::Error, what: &'static str) -> anyhow::Error {
    error.context(format!("{what}; moved again, it is left on the other one"))
}
