//! The exit codes and output of a monitoring plugin.

use serde::Serialize;
use serde_json::json;

use super::{ErrorClass, PrintedError, UNREACHABLE};
use crate::{names::named, output::Output};

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
    pub(super) fn of(class: &ErrorClass) -> Self {
        match (class.code, class.kind) {
            (UNREACHABLE, "unreachable") | (_, "timeout") => Self::Critical,
            _ => Self::Unknown,
        }
    }

    pub(super) fn report(self, error: &PrintedError, out: &mut Output) {
        let PrintedError { message, hint, .. } = error;
        let first = format!("{self} - {message}");
        let lines = [Some(&first), hint.as_ref()].into_iter().flatten();
        let lines: Vec<_> = lines.map(|line| without_bars(line)).collect();
        let object = json!({
            "state": self,
            "code": self.code(),
            "summary": message,
            "kind": error.kind,
            "hint": hint,
            "commands": error.commands,
        });
        // The exit code matters even if the output is closed.
        let _ = out.answer(&lines, &object);
    }
}

pub(crate) fn without_bars(line: &str) -> String {
    line.replace('|', "/")
}
