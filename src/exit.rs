//! The exit codes, and the only place that selects them and prints errors.

mod hint;
mod plugin;
mod trying;

use std::{
    error::Error as StdError,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use serde::Serialize;
use thiserror::Error;

use self::{hint::JobHint, plugin::PluginFailure};
pub(crate) use self::{
    plugin::{PluginState, without_bars},
    trying::Trying,
};
pub(crate) use crate::board::chain;
use crate::{
    board::{BoardError, url::error::InvalidUrl},
    job::{Owner, Shelf},
    lease::Lost,
    logbook::LogbookError,
    output::{Closed, Output, Tone, answer, answer_json, complain_json, complain_of},
    suggest::{Hint, Suggestion},
    trust::Untrusted,
};

const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const REJECTED: u8 = 4;
const UNREACHABLE: u8 = 5;
pub(crate) const NO_JOB: u8 = 6;
const PARTLY: u8 = 7;
const REFUSED: u8 = 8;
const JOB_FAILED: u8 = 9;
const TIMED_OUT: u8 = 124;
const BOARD_FAILED: u8 = 125;

/// The command with the exit codes of monitoring plugins.
const PLUGIN: &str = "check";

/// Errors of commands that are not answers of a board.
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
    Elsewhere(Shelf),
    #[error("no running conductor's name starts with {0}")]
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
    },
    #[error(
        "the job is unknown: it was never posted here, {}or it ended before this board's history \
         began", if *has_peers { "a Python service ended it, " } else { "" }
    )]
    NotKnown { has_peers: bool },
    #[error("{0}")]
    TimedOut(String),
    /// The board was unreachable at the end of the wait, so the outcome is unknown.
    #[error("{0}")]
    OutOfReach(String),
    /// A command exited with this code, and printed its own errors.
    #[error("the command ended with code {0}")]
    Command(u8),
    /// An error of this process, not of the command that it should run.
    #[error(transparent)]
    OwnError(anyhow::Error),
}

fn place(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Board => "is on the board, not in the trash",
        Shelf::Trash => "is in the trash",
        Shelf::History => "has already ended",
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

#[derive(Debug, Serialize)]
struct PrintedError {
    code: u8,
    kind: &'static str,
    message: String,
    hint: Option<String>,
    commands: Vec<Suggestion>,
}

#[derive(Debug, Clone)]
pub(crate) struct ErrorPrinter {
    is_json: bool,
    is_coloured: bool,
    program: Suggestion,
    command: Option<String>,
    /// The board of `--to`: its name in errors, and the start of its commands.
    second: Arc<OnceLock<(String, Suggestion)>>,
}

impl ErrorPrinter {
    pub(crate) fn new(out: &Output, program: Suggestion, command: Option<String>) -> Self {
        Self {
            is_json: out.is_json(),
            is_coloured: out.colours_errors(),
            program,
            command,
            second: Arc::default(),
        }
    }

    /// Makes the hints of errors about another board use that board.
    pub(crate) fn reach_second(&self, board: &str, program: Suggestion) {
        let _ = self.second.set((board.to_owned(), program));
    }

    pub(crate) fn conclude(&self, result: anyhow::Result<()>) -> ExitCode {
        let Err(error) = result else {
            return ExitCode::SUCCESS;
        };
        // A closed output is the reader's choice.
        if error.is::<Closed>() {
            return ExitCode::SUCCESS;
        }
        if let Some(CommandError::Command(code)) = error.downcast_ref() {
            return ExitCode::from(*code);
        }
        if self.command.as_deref() == Some(PLUGIN) {
            let state = PluginState::of(&judge(&error));
            let failed = PluginFailure::new(state, self.worded(&error));
            // The exit code matters even if stderr is closed.
            let _ = match self.is_json {
                true => answer_json(&failed),
                false => answer(&failed.lines()),
            };
            return ExitCode::from(state.code());
        }
        self.print_error(&error);
        ExitCode::from(judge(&error).code)
    }

    pub(crate) fn print_error(&self, error: &anyhow::Error) {
        let printed = self.worded(error);
        if self.is_json {
            complain_json(&serde_json::json!({ "error": printed }));
            return;
        }
        let mark = match error.downcast_ref() {
            // The code marks our own errors; the kind names them.
            Some(CommandError::OwnError(_)) => format!("error ({}):", printed.kind),
            _ => "error:".to_owned(),
        };
        complain_of(Tone::Bad, &mark, &printed.message, self.is_coloured);
        if let Some(hint) = printed.hint {
            complain_of(Tone::Strong, "hint:", &hint, self.is_coloured);
        }
    }

    fn worded(&self, error: &anyhow::Error) -> PrintedError {
        let ErrorClass {
            code,
            kind,
            way_out,
        } = judge(error);
        let board = error.chain().find_map(board_error);
        let board = board.and_then(BoardError::board);
        let second = (self.second.get()).filter(|(name, _)| board == Some(name));
        let program = second.map_or(&self.program, |(_, program)| program);
        let hint = way_out.and_then(|it| it.hint.complete(program, it.job.as_deref()));
        let (hint, commands) = hint.unzip();
        PrintedError {
            code,
            kind,
            message: message(error),
            hint,
            commands: commands.unwrap_or_default(),
        }
    }
}

struct ErrorClass {
    code: u8,
    kind: &'static str,
    way_out: Option<JobHint>,
}

fn judge(error: &anyhow::Error) -> ErrorClass {
    let trying = trying(error);
    let found = error.chain().find_map(|cause| judge_cause(cause, trying));
    let mut judged = found.unwrap_or(ErrorClass {
        code: FAILED,
        kind: "failed",
        way_out: None,
    });
    if matches!(error.downcast_ref(), Some(CommandError::OwnError(_))) {
        judged.code = BOARD_FAILED;
    }
    judged
}

fn trying(error: &anyhow::Error) -> Option<&Trying> {
    match error.downcast_ref() {
        Some(CommandError::OwnError(error)) => error.downcast_ref(),
        _ => error.downcast_ref(),
    }
}

fn message(error: &anyhow::Error) -> String {
    let mut message = chain(error.as_ref());
    let board = error.chain().find_map(board_error);
    let Some(board) = board.and_then(BoardError::board) else {
        return message;
    };
    if let Some(trying) = trying(error).filter(|trying| trying.board.as_deref() == Some(board))
        && let Some(reason) = message.strip_prefix(&trying.to_string())
    {
        message = trying.deed() + reason;
    }
    let named = format!("the board {board}");
    match message.split_once(&named) {
        Some((before, behind)) => format!("{before}{named}{}", behind.replace(&named, "the board")),
        None => message,
    }
}

fn board_error<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a BoardError> {
    match cause.downcast_ref::<Arc<BoardError>>() {
        Some(error) => Some(error),
        None => cause.downcast_ref(),
    }
}

fn judge_cause(cause: &(dyn StdError + 'static), trying: Option<&Trying>) -> Option<ErrorClass> {
    if let Some(error) = cause.downcast_ref::<CommandError>() {
        return judge_command(error, trying);
    }
    if let Some(error) = board_error(cause) {
        let (code, kind) = sort(error);
        let way_out = hint::of_board(error, trying);
        return Some(ErrorClass {
            code,
            kind,
            way_out,
        });
    }
    if let Some(error) = cause.downcast_ref::<LogbookError>() {
        let (code, kind) = match error {
            LogbookError::Slow(_) | LogbookError::Unreachable(_) => (UNREACHABLE, "unreachable"),
            LogbookError::Denied(_) => (UNREACHABLE, "denied"),
            _ => (FAILED, "failed"),
        };
        return Some(ErrorClass {
            code,
            kind,
            way_out: hint::of_logbook(error, trying),
        });
    }
    match cause.downcast_ref::<Lost>() {
        // Another client may hold the claim by then.
        Some(Lost::Expired { last: None, .. }) => Some(ErrorClass {
            code: REJECTED,
            kind: "changed",
            way_out: hint::of_board(&BoardError::Changed, trying),
        }),
        _ => None,
    }
}

fn judge_command(error: &CommandError, trying: Option<&Trying>) -> Option<ErrorClass> {
    let (code, kind) = match error {
        CommandError::Usage { .. } => (USAGE, "usage"),
        CommandError::Nothing(_) => (NO_JOB, "not-found"),
        CommandError::NotKnown { .. }
        | CommandError::Elsewhere(_)
        | CommandError::NoConductor(_)
        | CommandError::NoSuchName { .. } => (NOT_FOUND, "not-found"),
        CommandError::Namesakes { .. } => (NOT_FOUND, "ambiguous"),
        CommandError::UnreadableOwner => (REJECTED, "malformed"),
        CommandError::AlreadyYours { .. } => (REJECTED, "already-claimed"),
        CommandError::NotHeldBy(_) => (REJECTED, "changed"),
        CommandError::Mend { end, .. } => match end {
            MendEnd::Changed => (REJECTED, "changed"),
            MendEnd::Failed => (JOB_FAILED, "failed"),
            MendEnd::TimedOut => (TIMED_OUT, "timeout"),
        },
        CommandError::MaybeClaimed { .. } => (FAILED, "unknown"),
        CommandError::Partly { .. }
        | CommandError::Canary { .. }
        | CommandError::NotAllDone { .. } => (PARTLY, "failed"),
        CommandError::Refused { .. } => (REFUSED, "refused"),
        CommandError::JobFailed { .. } => (JOB_FAILED, "failed"),
        CommandError::TimedOut(_) | CommandError::OutOfReach(_) => (TIMED_OUT, "timeout"),
        CommandError::Command(code) => (*code, "failed"),
        // The subject is among its own causes.
        CommandError::OwnError(error) => {
            return error.chain().find_map(|cause| judge_cause(cause, trying));
        }
    };
    let way_out = hint::of_command(error, trying);
    Some(ErrorClass {
        code,
        kind,
        way_out,
    })
}

fn sort(error: &BoardError) -> (u8, &'static str) {
    match error {
        BoardError::NoSuchJob => (NOT_FOUND, "not-found"),
        BoardError::Ambiguous { .. } => (NOT_FOUND, "ambiguous"),
        BoardError::AlreadyClaimed { .. } => (REJECTED, "already-claimed"),
        BoardError::NotClaimed => (REJECTED, "not-claimed"),
        BoardError::MayStillRun { .. } => (REJECTED, "already-claimed"),
        BoardError::NotHeldBack => (REJECTED, "not-delayed"),
        BoardError::NotOwner { .. } => (REJECTED, "not-owner"),
        BoardError::Postponed { .. } | BoardError::Changed => (REJECTED, "changed"),
        BoardError::Exists { .. }
        | BoardError::NumberTaken { .. }
        | BoardError::TrashTaken { .. }
        | BoardError::NameTaken { .. } => (REJECTED, "exists"),
        BoardError::Malformed { .. } | BoardError::Unclaimable { .. } => (REJECTED, "malformed"),
        BoardError::Unsupported { .. } => (REJECTED, "unsupported"),
        BoardError::Unreachable { .. }
        | BoardError::Misdirected { .. }
        | BoardError::NoFolder { .. } => (UNREACHABLE, "unreachable"),
        BoardError::Denied { .. } => (UNREACHABLE, "denied"),
        BoardError::NotOpened { .. } => (REFUSED, "refused"),
        BoardError::Unknown { .. } => (FAILED, "unknown"),
        BoardError::Occupied { .. } | BoardError::Crowded { .. } | BoardError::Failed { .. } => {
            (FAILED, "failed")
        }
    }
}
