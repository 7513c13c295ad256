//! Errors of commands that are not answers of a board.

use thiserror::Error;

use crate::{
    board::{BoardError, chain, url::error::InvalidUrl},
    job::{Location, Owner},
    suggest::Hint,
    trust::Untrusted,
};

#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error("{message}")]
    Usage { message: String, hint: Option<Hint> },
    #[error("{0}")]
    Nothing(String),
    #[error("the job is claimed, but its owner is unreadable")]
    UnreadableOwner,
    #[error("you already hold the claim, as {owner}")]
    AlreadyYours { owner: Owner, hint: Hint },
    #[error("the job is not claimed by {0}")]
    NotHeldBy(Owner),
    #[error("{what}")]
    MaybeClaimed {
        what: String,
        job: String,
        source: BoardError,
    },
    #[error("failed for {failed} of {total} {what}")]
    Partly {
        what: &'static str,
        failed: usize,
        total: usize,
    },
    #[error("{message}")]
    Canary { message: String, job: String },
    /// A conductor without a log has ended, and not all jobs are done.
    #[error("{message}")]
    NotAllDone {
        message: String,
        job: Option<String>,
        has_failed: bool,
    },
    #[error("{message}")]
    Mend {
        end: MendEnd,
        message: String,
        hint: Hint,
    },
    #[error("{message}")]
    Refused { message: String, hint: Option<Hint> },
    #[error("{message}")]
    JobFailed {
        message: String,
        job: Option<String>,
    },
    #[error("the job {}", place(*.0))]
    Elsewhere(Location),
    #[error("no running conductor's name begins with {0}")]
    NoConductor(String),
    #[error("no job on {board} has the uuid or name {name}")]
    NoSuchName { name: String, board: String },
    #[error("{count} jobs are named {name}: {jobs}")]
    Namesakes {
        verb: String,
        name: String,
        count: usize,
        jobs: String,
        first: String,
        is_in_trash: bool,
    },
    #[error(
        "the job is unknown: it was never posted here, {}or it ended before this board's history \
         began", if *has_peers { "a Python service ended it, " } else { "" }
    )]
    NotKnown { has_peers: bool },
    #[error("{0}")]
    TimedOut(String),
    /// No conductor started the canary in time.
    #[error("no conductor had a free slot within {0}")]
    NoSlot(String),
    /// The board was unreachable at the end of the wait, so the outcome is unknown.
    #[error("{0}")]
    OutOfReach(String),
    /// A command exited with this code, and printed its own errors.
    #[error("the command ended with code {0}")]
    Command(u8),
    #[error("{message}")]
    NotRun { code: u8, message: String },
    /// An error of this process, not of the command that it should run.
    #[error(transparent)]
    OwnError(anyhow::Error),
}

fn place(location: Location) -> &'static str {
    match location {
        Location::Board => "is on the board, not in the trash",
        Location::Trash => "is in the trash",
        Location::History => "has already ended",
    }
}

/// How the repair of a load balancer ended, if not well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MendEnd {
    /// It is no longer as planned.
    Changed,
    Failed,
    TimedOut,
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: None,
        }
    }

    /// Classifies an error of the configuration as a usage error, unless a file is untrusted.
    pub(crate) fn of_config(error: &anyhow::Error) -> Self {
        let message = chain(error.as_ref());
        match error.downcast_ref::<Untrusted>() {
            Some(untrusted) => Self::Refused {
                message,
                hint: untrusted.remedy(),
            },
            None => Self::Usage {
                hint: (error.chain().any(|it| it.is::<InvalidUrl>())).then(|| {
                    "`jobboard help boards` shows the URL format of each kind of board".into()
                }),
                message,
            },
        }
    }

    /// An error unless all succeeded; each failure was reported before.
    pub(crate) fn partly(what: &'static str, failed: usize, total: usize) -> anyhow::Result<()> {
        match failed {
            0 => Ok(()),
            failed => Err(Self::Partly {
                what,
                failed,
                total,
            }
            .into()),
        }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, text: impl Into<Hint>) -> Self {
        if let Self::Usage { hint, .. } | Self::Refused { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }
}
