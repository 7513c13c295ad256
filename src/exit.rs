//! The exit codes, and the one place that chooses them and words an error.

use std::{error::Error as StdError, process::ExitCode, sync::Arc};

use serde::Serialize;
use thiserror::Error;

use crate::{
    board::BoardError,
    conductor::lease::Lost,
    job::Owner,
    output::{Closed, Text, complain, complain_json},
};

const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const AGAINST_THE_RULES: u8 = 4;
const UNREACHABLE: u8 = 5;
const NOTHING: u8 = 6;
const PARTLY: u8 = 7;
const UNSAFE: u8 = 8;
const TRASHED: u8 = 9;
const TIMED_OUT: u8 = 124;
const OURS: u8 = 125;

/// What ends a command other than what a board answered.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    /// The command line or the configuration asks for something that makes no sense.
    #[error("{message}")]
    Usage {
        message: String,
        hint: Option<String>,
    },
    /// There is nothing of what was asked for, which a script may well expect.
    #[error("{0}")]
    Nothing(String),
    /// A job is claimed, and nobody can tell by whom.
    #[error("{0} is claimed, and its owner cannot be read")]
    UnreadableOwner(String),
    /// A job was to be taken from this owner alone, and is not that owner's.
    #[error("the job is not claimed by {0}")]
    NotHeldBy(Owner),
    /// A job may be claimed, and the board did not say so.
    #[error("{what}")]
    Unheard {
        what: String,
        hint: String,
        source: BoardError,
    },
    /// Some of several jobs could not be dealt with; each was reported.
    #[error("{failed} of {total} failed")]
    Partly { failed: usize, total: usize },
    /// It was not done, for safety.
    #[error("{message}")]
    Refused {
        message: String,
        hint: Option<String>,
    },
    /// A job that was waited for ended in the trash.
    #[error("{0}")]
    Trashed(String),
    #[error("{0}")]
    TimedOut(String),
    /// A command that was run ended like this; it has said itself what there is to say.
    #[error("the command ended with code {0}")]
    Command(u8),
    /// A command was to be run, and this is about us and not about the command.
    #[error(transparent)]
    Ours(anyhow::Error),
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            hint: None,
        }
    }

    /// Adds the way out, to an error that can tell one.
    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Usage { hint, .. } | Self::Refused { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }
}

/// An error as it is told, in words and as an object.
#[derive(Debug, Serialize)]
struct Told {
    code: u8,
    kind: &'static str,
    message: String,
    hint: Option<String>,
}

/// Returns the code for the way a command ended, after telling of an error.
pub(crate) fn conclude(result: anyhow::Result<()>, is_json: bool) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    // Whoever closed our output has seen enough.
    if error.is::<Closed>() {
        return ExitCode::SUCCESS;
    }
    if let Some(CommandError::Command(code)) = error.downcast_ref() {
        return ExitCode::from(*code);
    }
    tell(&error, is_json);
    ExitCode::from(judge(&error).code)
}

/// Tells of an error, without ending anything.
pub(crate) fn tell(error: &anyhow::Error, is_json: bool) {
    let told = judge(error);
    if is_json {
        complain_json(&serde_json::json!({ "error": told }));
        return;
    }
    let mark = match error.downcast_ref() {
        // The code says only that it is ours; the kind says what it is.
        Some(CommandError::Ours(_)) => format!("error ({}): ", told.kind),
        _ => "error: ".to_owned(),
    };
    complain(&Text::from(mark + &told.message));
    if let Some(hint) = told.hint {
        complain(&Text::from(format!("hint: {hint}")));
    }
}

/// Sorts an error by what it is about.
fn judge(error: &anyhow::Error) -> Told {
    let (code, kind, hint) = error
        .chain()
        .find_map(judge_cause)
        .unwrap_or((FAILED, "failed", None));
    let is_ours = matches!(error.downcast_ref(), Some(CommandError::Ours(_)));
    Told {
        code: if is_ours { OURS } else { code },
        kind,
        message: chain(error.as_ref()),
        hint,
    }
}

fn judge_cause(cause: &(dyn StdError + 'static)) -> Option<Judgement> {
    if let Some(error) = cause.downcast_ref::<CommandError>() {
        return judge_command(error);
    }
    if let Some(error) = cause.downcast_ref::<Arc<BoardError>>() {
        return Some(judge_board(error));
    }
    if let Some(error) = cause.downcast_ref::<BoardError>() {
        return Some(judge_board(error));
    }
    match cause.downcast_ref::<Lost>() {
        // By then somebody else may have the job.
        Some(Lost::Expired { last: None, .. }) => Some((AGAINST_THE_RULES, "changed", None)),
        _ => None,
    }
}

/// A code, a kind, and the way out.
type Judgement = (u8, &'static str, Option<String>);

fn judge_command(error: &CommandError) -> Option<Judgement> {
    Some(match error {
        CommandError::Usage { hint, .. } => (USAGE, "usage", hint.clone()),
        CommandError::Nothing(_) => (NOTHING, "not-found", None),
        CommandError::UnreadableOwner(_) => (
            AGAINST_THE_RULES,
            "malformed",
            Some("`jobboard abandon --force JOB` frees it".to_owned()),
        ),
        CommandError::NotHeldBy(_) => (
            AGAINST_THE_RULES,
            "changed",
            Some("nothing was done; `jobboard owner JOB` shows who holds it".to_owned()),
        ),
        CommandError::Unheard { hint, .. } => (FAILED, "unknown", Some(hint.clone())),
        CommandError::Partly { .. } => (PARTLY, "failed", None),
        CommandError::Refused { hint, .. } => (UNSAFE, "refused", hint.clone()),
        CommandError::Trashed(_) => (
            TRASHED,
            "failed",
            Some("`jobboard list --trash` shows what is in the trash".to_owned()),
        ),
        CommandError::TimedOut(_) => (TIMED_OUT, "timeout", None),
        CommandError::Command(code) => (*code, "failed", None),
        // What it is about is among its own causes.
        CommandError::Ours(error) => return error.chain().find_map(judge_cause),
    })
}

fn judge_board(error: &BoardError) -> Judgement {
    let (code, kind) = sort(error);
    let hint = match error {
        BoardError::Occupied { remedy, .. } => Some(remedy.clone()),
        error => way_out(error).map(str::to_owned),
    };
    (code, kind, hint)
}

/// Sorts what a board answers by what the caller can do about it.
fn sort(error: &BoardError) -> (u8, &'static str) {
    match error {
        BoardError::NoSuchJob => (NOT_FOUND, "not-found"),
        BoardError::Ambiguous { .. } => (NOT_FOUND, "ambiguous"),
        BoardError::AlreadyClaimed { .. } => (AGAINST_THE_RULES, "already-claimed"),
        BoardError::NotClaimed => (AGAINST_THE_RULES, "not-claimed"),
        BoardError::NotOwner { .. } => (AGAINST_THE_RULES, "not-owner"),
        BoardError::Postponed { .. } | BoardError::Changed => (AGAINST_THE_RULES, "changed"),
        BoardError::Exists { .. }
        | BoardError::NumberTaken { .. }
        | BoardError::TrashTaken { .. }
        | BoardError::NameTaken { .. } => (AGAINST_THE_RULES, "exists"),
        BoardError::Malformed { .. } | BoardError::Unfit { .. } => (AGAINST_THE_RULES, "malformed"),
        BoardError::Unsupported { .. } => (AGAINST_THE_RULES, "unsupported"),
        BoardError::Unreachable { .. } | BoardError::Misdirected { .. } => {
            (UNREACHABLE, "unreachable")
        }
        BoardError::Denied { .. } => (UNREACHABLE, "denied"),
        BoardError::Unknown { .. } => (FAILED, "unknown"),
        BoardError::Occupied { .. } | BoardError::Failed { .. } => (FAILED, "failed"),
    }
}

/// Says what to do about what a board answers, where that is not plain.
fn way_out(error: &BoardError) -> Option<&'static str> {
    Some(match error {
        BoardError::NoSuchJob => {
            "`jobboard list` shows the jobs on the board, `list --trash` those in the trash"
        }
        BoardError::Ambiguous { .. } => "give more of the uuid; nothing was done",
        BoardError::AlreadyClaimed { .. } => {
            "if its holder is gone, `jobboard abandon --force JOB` frees it"
        }
        BoardError::NotClaimed => "`jobboard claim JOB` claims it",
        BoardError::NotOwner { .. } => {
            "--who NAME acts as its owner; `jobboard abandon --force JOB` frees it"
        }
        BoardError::Postponed { .. } => "`jobboard claim JOB` claims it all the same",
        BoardError::Changed => "nothing was done; `jobboard show JOB` shows how it is now",
        BoardError::TrashTaken { .. } => {
            "nothing was done; `jobboard list --trash --shared` shows it: restore it on its board, or \
             purge it, first"
        }
        BoardError::NumberTaken { .. } => {
            "nothing was done; it can be restored once that one is gone from the board"
        }
        BoardError::NameTaken { .. } => {
            "`jobboard conductors` shows who is at work; choose another --name"
        }
        BoardError::Malformed { .. } => "`jobboard trash --force key:TEXT` takes it off the board",
        BoardError::Unfit { .. } => {
            "`jobboard claim JOB` alone claims it all the same; `jobboard trash --force JOB` takes it off the board"
        }
        BoardError::Unsupported { hint, .. } => return *hint,
        BoardError::Unreachable { .. } | BoardError::Misdirected { .. } => {
            "`jobboard ping` shows whether the board answers"
        }
        BoardError::Unknown { .. } => "`jobboard show UUID` shows whether it was done",
        BoardError::Denied { .. } => "`jobboard config` shows which board is used, and as whom",
        BoardError::Exists { .. } | BoardError::Occupied { .. } | BoardError::Failed { .. } => {
            return None;
        }
    })
}

/// Words an error with all its causes, each once.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut message = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        cause = error.source();
        let text = error.to_string();
        // Some libraries repeat their source in their own words.
        if message.ends_with(&text) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&text);
    }
    message
}
