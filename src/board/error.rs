//! Board errors, grouped by the caller's next step.

use std::{
    error::Error as StdError,
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::url::BoardUrl;
use crate::job::{Conductor, JobKey, Malformed, Owner};
use crate::suggest::Hint;

pub(crate) type ErrorSource = Box<dyn StdError + Send + Sync>;

/// The operation of a [`BoardError::Failed`] that found something other than a board it can read.
pub(crate) const OPEN: &str = "open";

/// `Display` gives the cause and never repeats the source, which the reporter prints.
#[derive(Debug, Error)]
pub(crate) enum BoardError {
    #[error("the job does not exist")]
    NoSuchJob,
    #[error("{wanted} matches several jobs: {}", candidates.join(", "))]
    Ambiguous {
        wanted: String,
        candidates: Vec<String>,
    },
    #[error("the job is claimed by {}", name_of(owner.as_ref()))]
    AlreadyClaimed { owner: Option<Owner> },
    #[error("the job is not claimed")]
    NotClaimed,
    #[error("the job is claimed by {}, not by {wanted}", name_of(owner.as_ref()))]
    NotOwner { owner: Option<Owner>, wanted: Owner },
    #[error("the job is backing off until {until}")]
    Delayed {
        until: chrono::DateTime<chrono::Utc>,
    },
    #[error("the job is not backing off; conductors can already claim it")]
    NotDelayed,
    #[error(
        "the former owner may still be running the job until {}",
        until.format("%Y-%m-%d %H:%M:%S UTC")
    )]
    MayStillRun {
        until: chrono::DateTime<chrono::Utc>,
    },
    #[error("the job changed in the meantime")]
    Changed,
    #[error("a job with the uuid {uuid} already exists on the {place}")]
    Exists { uuid: String, place: &'static str },
    #[error(transparent)]
    NodeConflict(#[from] NodeConflict),
    #[error("a conductor named {name} is already running")]
    NameTaken { name: String },
    #[error("{} conductors are registered, too many to read", known.len() + more)]
    Crowded { known: Vec<Conductor>, more: usize },
    #[error("the record {key} is unreadable: {problem}")]
    Malformed { key: JobKey, problem: String },
    #[error("the job cannot be claimed: {problem}")]
    Unclaimable { problem: String },
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("cannot create the board {board}: the directory {} does not exist", directory.display())]
    NoDirectory { board: String, directory: PathBuf },
    #[error("the board {board} cannot be opened{qualifier}")]
    NotOpened {
        board: String,
        /// Empty, or a phrase that begins with a space.
        qualifier: &'static str,
        source: ErrorSource,
        hint: Box<Hint>,
    },
    #[error("the board {board} is unreachable")]
    Unreachable { board: String, source: ErrorSource },
    /// No board at that address: no such name, or another kind of server.
    #[error("the board {board} is unreachable")]
    Misdirected { board: String, source: ErrorSource },
    #[error("no access to the board {board}")]
    Denied { board: String, source: ErrorSource },
    #[error("the board {board} did not reply, so the outcome is unknown")]
    Unknown { board: String, source: ErrorSource },
    /// The operation failed, and repeating it does not help.
    #[error("cannot {doing} the board {board}")]
    Failed {
        doing: &'static str,
        board: String,
        source: ErrorSource,
    },
}

/// Nodes of other jobs or clients that prevent a change on ZooKeeper.
#[derive(Debug, Error)]
pub(crate) enum NodeConflict {
    #[error("the board now has another job at {0}")]
    OnBoard(String),
    #[error("the trash already has a job at {0}, from another board that shares the trash")]
    InTrash(String),
    #[error("cannot delete the node {node}: another client created nodes below it ({below})")]
    Children {
        node: String,
        below: String,
        remedy: Box<Hint>,
    },
}

/// A request that no board of this kind, or no such server, can fulfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Unsupported {
    /// Claims end with the session of their owner.
    #[error("this board cannot expire claims at a given time")]
    ExpiringClaims,
    #[error("TaskFlow cannot read this board and has no order for it")]
    PeerOrder,
    #[error(
        "this board cannot restore a job whose name has no number, because every TaskFlow \
         listing would fail on it"
    )]
    NameWithoutNumber,
    #[error("a board that is not a scratch board cannot be removed")]
    Removal,
    /// This server cannot store a board.
    #[error("{problem}")]
    Server {
        problem: &'static str,
        remedy: &'static str,
    },
}

impl BoardError {
    /// Returns the text of the source, or of the error itself.
    pub(crate) fn cause(&self) -> String {
        self.source()
            .map_or_else(|| self.to_string(), ToString::to_string)
    }

    pub(crate) fn unreachable(board: &str, source: impl Into<ErrorSource>) -> Self {
        let (board, source) = (board.to_owned(), source.into());
        Self::Unreachable { board, source }
    }

    pub(crate) fn unknown(board: &str, source: impl Into<ErrorSource>) -> Self {
        let (board, source) = (board.to_owned(), source.into());
        Self::Unknown { board, source }
    }

    pub(crate) fn failed(doing: &'static str, board: &str, source: impl Into<ErrorSource>) -> Self {
        let (board, source) = (board.to_owned(), source.into());
        Self::Failed {
            doing,
            board,
            source,
        }
    }

    /// Returns the same failure for another request of the same call.
    pub(crate) fn repeated(&self, board: &str) -> Self {
        let (board, source) = (board.to_owned(), self.cause().into());
        match self {
            Self::Denied { .. } => Self::Denied { board, source },
            Self::Unknown { .. } => Self::Unknown { board, source },
            Self::Failed { doing, .. } => Self::Failed {
                doing,
                board,
                source,
            },
            _ => Self::Unreachable { board, source },
        }
    }

    pub(crate) fn exists(uuid: impl ToString) -> Self {
        let (uuid, place) = (uuid.to_string(), "board");
        Self::Exists { uuid, place }
    }

    pub(crate) fn unclaimable(problem: Option<String>) -> Self {
        let problem = problem.unwrap_or_default();
        Self::Unclaimable { problem }
    }

    pub(crate) fn malformed(key: &JobKey, problem: impl Into<String>) -> Self {
        let (key, problem) = (key.clone(), problem.into());
        Self::Malformed { key, problem }
    }

    pub(crate) fn board(&self) -> Option<&str> {
        match self {
            Self::Unreachable { board, .. }
            | Self::Misdirected { board, .. }
            | Self::Denied { board, .. }
            | Self::Unknown { board, .. }
            | Self::NoDirectory { board, .. }
            | Self::NotOpened { board, .. }
            | Self::Failed { board, .. } => Some(board),
            _ => None,
        }
    }

    pub(crate) fn board_file(&self) -> Option<PathBuf> {
        let url: BoardUrl = self.board()?.parse().ok()?;
        url.file().map(Path::to_owned)
    }

    /// Whether the claim is gone, or is another one than expected.
    pub(crate) fn is_about_the_claim(&self) -> bool {
        matches!(
            self,
            Self::NoSuchJob | Self::NotClaimed | Self::NotOwner { .. } | Self::Changed
        )
    }

    /// Whether nothing was sent, so that the same call may be repeated.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Misdirected { .. })
    }

    /// Whether the board is unreachable or silent, rather than answering with an error.
    pub(crate) fn is_away(&self) -> bool {
        self.is_retryable() || matches!(self, Self::Unknown { .. })
    }

    /// Whether the place of the board was found, but holds something that is not opened.
    pub(crate) fn is_not_opened(&self) -> bool {
        matches!(
            self,
            Self::NotOpened { .. } | Self::Failed { doing: OPEN, .. }
        )
    }

    /// Whether the changes of a refused call may have been made, or may still be.
    pub(crate) fn may_have_taken_effect(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Failed { .. })
    }

    /// Whether the error concerns the board or the connection, not the job.
    pub(crate) fn is_about_the_board(&self) -> bool {
        self.is_retryable() || self.is_denied() || self.may_have_taken_effect()
    }

    /// Whether the board denies access, so that no retry can help.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }

    /// Whether the error ends a command that is starting. A running one waits: a full disk or a missing name server may
    /// recover.
    pub(crate) fn is_fatal_at_start(&self) -> bool {
        !matches!(self, Self::Unreachable { .. } | Self::Unknown { .. })
    }
}

impl From<&Malformed> for BoardError {
    fn from(record: &Malformed) -> Self {
        Self::malformed(&record.key, &record.problem)
    }
}

/// Returns the error of the system without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// Formats an error with all its causes, each once.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut message = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        cause = error.source();
        let text = match error.downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error().is_some() => reason(error),
            _ => error.to_string(),
        };
        // Some libraries repeat their source in their own words.
        if message.to_lowercase().ends_with(&text.to_lowercase()) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&text);
    }
    message
}

fn name_of(owner: Option<&Owner>) -> String {
    owner.map_or_else(
        || "an owner with an unreadable name".to_owned(),
        Owner::to_string,
    )
}
