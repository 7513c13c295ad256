//! The exit codes and output of a monitoring plugin.

use serde::Serialize;

use super::{ErrorClass, PrintedError, UNREACHABLE};
use crate::names::named;
use crate::suggest::Suggestion;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum PluginState ("state", str::eq) {
        Ok = 0 => "OK",
        Warning = 1 => "WARNING",
        Critical = 2 => "CRITICAL",
        Unknown = 3 => "UNKNOWN",
    }
}

impl PluginState {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn severity(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Unknown => 2,
            Self::Critical => 3,
        }
    }

    /// Classifies an error: an unreachable board is critical, all other errors are our own.
    pub(super) fn of(judged: &ErrorClass) -> Self {
        match (judged.code, judged.kind) {
            (UNREACHABLE, "unreachable") | (_, "timeout") => Self::Critical,
            _ => Self::Unknown,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct PluginFailure {
    state: PluginState,
    code: u8,
    summary: String,
    kind: &'static str,
    hint: Option<String>,
    commands: Vec<Suggestion>,
}

impl PluginFailure {
    pub(super) fn new(state: PluginState, error: PrintedError) -> Self {
        Self {
            state,
            code: state.code(),
            summary: error.message,
            kind: error.kind,
            hint: error.hint,
            commands: error.commands,
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let first = format!("{} - {}", self.state, self.summary);
        let lines = [Some(first), self.hint.clone()].into_iter().flatten();
        lines.map(|line| without_bars(&line)).collect()
    }
}

pub(crate) fn without_bars(line: &str) -> String {
    line.replace('|', "/")
}
