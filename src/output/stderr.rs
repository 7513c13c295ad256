//! Notes and questions on stderr.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;

use super::{Output, Progress, Text, Tone, Verbosity, json};

impl Output {
    pub(crate) fn note(&self, text: impl Into<Text>) {
        if self.verbosity != Verbosity::Quiet {
            complain(&text.into());
        }
    }

    /// Prints a note for a person at a terminal only.
    pub(crate) fn remark(&self, text: impl Into<Text>) {
        let is_watched = io::stderr().is_terminal() && !self.is_json();
        if is_watched || self.verbosity == Verbosity::Verbose {
            self.note(text);
        }
    }

    pub(crate) fn detail(&self, text: impl Into<Text>) {
        if self.verbosity == Verbosity::Verbose {
            self.note(text);
        }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    pub(crate) fn progress(
        &self,
        what: impl Into<Cow<'static, str>>,
        total: Option<u64>,
    ) -> Progress {
        let is_wanted =
            self.verbosity != Verbosity::Quiet && !self.is_json() && io::stderr().is_terminal();
        Progress::new(what, total, is_wanted)
    }

    pub(crate) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a person; `None` without a terminal.
    pub(crate) fn ask(&self, question: impl Into<Text>) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        let mut stderr = io::stderr();
        write!(stderr, "{} ", question.into()).ok()?;
        stderr.flush().ok()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        // Ctrl-D leaves the line open.
        if !answer.ends_with('\n') {
            writeln!(stderr).ok()?;
        }
        Some(answer.trim().to_owned())
    }

    pub(crate) fn colours_errors(&self) -> bool {
        self.color
            .applies(io::stderr().is_terminal(), self.is_plain)
    }
}

/// Writes a line to stderr. A failure cannot be reported anywhere.
pub(crate) fn complain(text: &Text) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a line to stderr, its first word coloured if colours are on.
pub(crate) fn complain_of(tone: Tone, mark: &str, text: &str, is_coloured: bool) {
    let style = tone.style_if(is_coloured);
    let (mark, text) = (Text::from(mark), Text::from(text));
    let _ = writeln!(io::stderr(), "{style}{mark}{style:#} {text}");
}

pub(crate) fn complain_json(value: &impl Serialize) {
    if let Ok(line) = json::line(value) {
        let _ = io::stderr().write_all(&line);
    }
}
