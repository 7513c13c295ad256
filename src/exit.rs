//! The exit codes, and the only place that selects them and prints errors.

mod command_error;
mod hint;
mod plugin;
mod trying;

use std::{
    error::Error as StdError,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use serde::Serialize;

use self::hint::JobHint;
pub(crate) use self::{
    command_error::{CommandError, MendEnd},
    plugin::{PluginState, without_bars},
    trying::{Trying, verb},
};
pub(crate) use crate::board::chain;
use crate::{
    board::{BoardError, error::NodeConflict},
    lease::Lost,
    logbook::LogbookError,
    output::{Closed, Output, Style, Tone, complain_json, complain_of},
    secret::covered_urls,
    suggest::Suggestion,
};

const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const NOT_FOUND: u8 = 3;
pub(crate) const REJECTED: u8 = 4;
const UNREACHABLE: u8 = 5;
pub(crate) const NO_JOB: u8 = 6;
pub(crate) const PARTLY: u8 = 7;
const REFUSED: u8 = 8;
const JOB_FAILED: u8 = 9;
const TIMED_OUT: u8 = 124;
const BOARD_FAILED: u8 = 125;

/// The command with the exit codes of monitoring plugins.
const PLUGIN: &str = "check";

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
    style: Style,
    is_coloured: bool,
    program: Suggestion,
    command: Option<String>,
    /// The board of `--to`: its name in errors, and the start of its commands.
    second: Arc<OnceLock<(String, Suggestion)>>,
}

impl ErrorPrinter {
    pub(crate) fn new(out: &Output, program: Suggestion, command: Option<String>) -> Self {
        Self {
            style: out.style(),
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
            let state = PluginState::of(&classify(&error));
            state.report(&self.worded(&error), &mut Output::new(self.style));
            return ExitCode::from(state.code());
        }
        self.print_error(&error);
        ExitCode::from(classify(&error).code)
    }

    pub(crate) fn print_error(&self, error: &anyhow::Error) {
        let printed = self.worded(error);
        if Output::new(self.style).is_json() {
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
        let ErrorClass { code, kind, hint } = classify(error);
        let board = error.chain().find_map(board_error);
        let board = board.and_then(BoardError::board);
        let second = (self.second.get()).filter(|(name, _)| board == Some(name));
        let program = second.map_or(&self.program, |(_, program)| program);
        let hint = hint.and_then(|it| it.hint.complete(program, it.job.as_deref()));
        let (hint, commands) = hint.unzip();
        let mut commands: Vec<Suggestion> = commands.unwrap_or_default();
        // A user who forgets --board gives the URL as another argument.
        let cover = |text: &mut String| *text = covered_urls(text).into_owned();
        commands.iter_mut().for_each(|it| it.each_word(cover));
        PrintedError {
            code,
            kind,
            message: covered_urls(&message(error)).into_owned(),
            hint: hint.map(|it| covered_urls(&it).into_owned()),
            commands,
        }
    }
}

struct ErrorClass {
    code: u8,
    kind: &'static str,
    hint: Option<JobHint>,
}

impl ErrorClass {
    fn new((code, kind): (u8, &'static str), hint: Option<JobHint>) -> Self {
        Self { code, kind, hint }
    }
}

fn classify(error: &anyhow::Error) -> ErrorClass {
    let trying = trying(error);
    let found = error
        .chain()
        .find_map(|cause| classify_cause(cause, trying));
    let mut class = found.unwrap_or(ErrorClass::new((FAILED, "failed"), None));
    if matches!(error.downcast_ref(), Some(CommandError::OwnError(_))) {
        class.code = BOARD_FAILED;
    }
    class
}

fn trying(error: &anyhow::Error) -> Option<&Trying> {
    match error.downcast_ref() {
        Some(CommandError::OwnError(error)) => error.downcast_ref(),
        _ => error.downcast_ref(),
    }
}

fn message(error: &anyhow::Error) -> String {
    let mut message = chain(error.as_ref());
    let Some(cause) = error.chain().find_map(board_error) else {
        return message;
    };
    let Some(board) = cause.board() else {
        return message;
    };
    if let Some(trying) = trying(error).filter(|trying| trying.board.as_deref() == Some(board))
        && let Some(reason) = message.strip_prefix(&trying.to_string())
    {
        let action = match cause {
            BoardError::Unknown { .. } => trying.attempt(),
            _ => trying.action(),
        };
        message = action + reason;
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

fn classify_cause(cause: &(dyn StdError + 'static), trying: Option<&Trying>) -> Option<ErrorClass> {
    if let Some(error) = cause.downcast_ref::<CommandError>() {
        return classify_command(error, trying);
    }
    if let Some(error) = board_error(cause) {
        return Some(ErrorClass::new(
            kind_of(error),
            hint::of_board(error, trying),
        ));
    }
    if let Some(error) = cause.downcast_ref::<LogbookError>() {
        let kind = match error {
            LogbookError::Slow(_) | LogbookError::Unreachable(_) => (UNREACHABLE, "unreachable"),
            LogbookError::Denied(_) => (UNREACHABLE, "denied"),
            _ => (FAILED, "failed"),
        };
        return Some(ErrorClass::new(kind, hint::of_logbook(error, trying)));
    }
    let Some(Lost::Expired { last: None, .. }) = cause.downcast_ref() else {
        return None;
    };
    // Another client may hold the claim by then.
    let hint = hint::of_board(&BoardError::Changed, trying);
    Some(ErrorClass::new((REJECTED, "changed"), hint))
}

fn classify_command(error: &CommandError, trying: Option<&Trying>) -> Option<ErrorClass> {
    let kind = match error {
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
        CommandError::TimedOut(_) | CommandError::NoSlot(_) | CommandError::OutOfReach(_) => {
            (TIMED_OUT, "timeout")
        }
        CommandError::Command(code) | CommandError::NotRun { code, .. } => (*code, "failed"),
        // The subject is among its own causes.
        CommandError::OwnError(error) => {
            return error
                .chain()
                .find_map(|cause| classify_cause(cause, trying));
        }
    };
    Some(ErrorClass::new(kind, hint::of_command(error, trying)))
}

fn kind_of(error: &BoardError) -> (u8, &'static str) {
    match error {
        BoardError::NoSuchJob => (NOT_FOUND, "not-found"),
        BoardError::Ambiguous { .. } => (NOT_FOUND, "ambiguous"),
        BoardError::AlreadyClaimed { .. } => (REJECTED, "already-claimed"),
        BoardError::NotClaimed => (REJECTED, "not-claimed"),
        BoardError::MayStillRun { .. } => (REJECTED, "already-claimed"),
        BoardError::NotDelayed => (REJECTED, "not-delayed"),
        BoardError::NotOwner { .. } => (REJECTED, "not-owner"),
        // No command reports `Delayed`: `claim --next` skips a job that was delayed after the listing.
        BoardError::Delayed { .. } | BoardError::Changed => (REJECTED, "changed"),
        BoardError::Exists { .. }
        | BoardError::NodeConflict(NodeConflict::OnBoard(_) | NodeConflict::InTrash(_))
        | BoardError::NameTaken { .. } => (REJECTED, "exists"),
        BoardError::Malformed { .. } | BoardError::Unclaimable { .. } => (REJECTED, "malformed"),
        BoardError::Unsupported(_) => (REJECTED, "unsupported"),
        BoardError::Unreachable { .. }
        | BoardError::Misdirected { .. }
        | BoardError::NoDirectory { .. } => (UNREACHABLE, "unreachable"),
        BoardError::Denied { .. } => (UNREACHABLE, "denied"),
        BoardError::NotOpened { .. } => (REFUSED, "refused"),
        BoardError::Unknown { .. } => (FAILED, "unknown"),
        BoardError::NodeConflict(NodeConflict::Children { .. })
        | BoardError::Crowded { .. }
        | BoardError::Failed { .. } => (FAILED, "failed"),
    }
}
