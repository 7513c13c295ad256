//! Notes and questions on stderr.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::{Output, Page, Progress, Text, Tone, Verbosity, json, page::PROSE, width_of};

impl Output {
    pub(crate) fn note(&self, text: impl Into<Text>) {
        if self.style.verbosity != Verbosity::Quiet {
            complain(&text.into());
        }
    }

    pub(crate) fn note_unless_json(&self, text: impl Into<Text>) {
        if !self.is_json() {
            self.note(text);
        }
    }

    /// Prints a note for a person at a terminal only.
    pub(crate) fn note_at_terminal(&self, text: impl Into<Text>) {
        if self.is_watched() {
            self.note(text);
        }
    }

    /// Whether a person reads the notes, or asked for all of them.
    pub(crate) fn is_watched(&self) -> bool {
        let is_watched = io::stderr().is_terminal() && !self.is_json();
        is_watched || self.style.verbosity == Verbosity::Verbose
    }

    pub(crate) fn detail(&self, text: impl Into<Text>) {
        if self.style.verbosity == Verbosity::Verbose {
            self.note(text);
        }
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.style.verbosity == Verbosity::Verbose
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.style.verbosity == Verbosity::Quiet
    }

    pub(crate) fn progress(
        &self,
        what: impl Into<Cow<'static, str>>,
        total: Option<u64>,
    ) -> Progress {
        let is_wanted = self.style.verbosity != Verbosity::Quiet
            && !self.is_json()
            && io::stderr().is_terminal();
        Progress::new(what, total, is_wanted)
    }

    /// Asks a person; `None` without a terminal.
    pub(crate) fn ask(&self, question: impl Into<Text>, answers: &str) -> Option<String> {
        if !can_ask() {
            return None;
        }
        let mut stderr = io::stderr();
        let columns = width_of(&stderr).unwrap_or(PROSE).min(PROSE);
        let question = wrapped(question.into(), answers, columns);
        write!(stderr, "{question} ").ok()?;
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
        self.style.colours(io::stderr().is_terminal())
    }
}

/// Wraps a question between words; its answers stay in one line.
fn wrapped(question: Text, answers: &str, columns: usize) -> String {
    let mut page = Page::new(Some((columns, 0)));
    page.sentence(4).plain(question);
    let mut question = page.into_text();
    let last = question.lines().last().map_or(0, UnicodeWidthStr::width);
    // The reply takes two more columns.
    let is_full = last + answers.len() + 3 > columns;
    question.truncate(question.trim_end().len());
    question += if is_full { "\n    " } else { " " };
    question + answers
}

pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Writes a line to stderr. A failure cannot be reported anywhere.
fn complain(text: &Text) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_question_wraps_between_words_and_keeps_its_answers_together() {
        let asked = |question: &str, columns| wrapped(question.into(), "[y/N]", columns);
        assert_eq!(asked("trash 2 jobs?", 30), "trash 2 jobs? [y/N]");
        let question = "trash 2 jobs of this board?";
        assert_eq!(asked(question, 30), format!("{question}\n    [y/N]"));
        assert_eq!(
            asked(question, 15),
            "trash 2 jobs of\n    this board?\n    [y/N]"
        );
    }
}
