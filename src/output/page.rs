//! What people read: lines of safe text, some of it coloured.

use anstyle::{AnsiColor, Style};

use super::text::Text;
use crate::job::State;

/// How a piece of text stands out; never the only carrier of a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Busy,
    Bad,
}

impl Tone {
    /// Returns the tone in which a state is shown.
    pub(crate) fn of(state: State) -> Self {
        match state {
            State::Unclaimed => Self::Good,
            State::Claimed => Self::Busy,
            State::Complete | State::Trashed => Self::Faint,
            State::Malformed => Self::Bad,
        }
    }

    pub(super) fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Busy => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// A page for people, line by line.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    is_coloured: bool,
}

impl Page {
    pub(super) fn new(is_coloured: bool) -> Self {
        Self {
            text: String::new(),
            is_coloured,
        }
    }

    /// Starts a line; what is added to it comes on the same line.
    pub(crate) fn line(&mut self) -> Line<'_> {
        Line(self)
    }

    /// Adds a line that names a fact, and the fact.
    pub(crate) fn fact(&mut self, name: &str, fact: impl Into<Text>) {
        self.line()
            .add(Tone::Faint, format!("{name:<14}"))
            .add(Tone::Plain, fact);
    }

    /// Adds a line that names what comes below it.
    pub(crate) fn heading(&mut self, name: &str) {
        self.line().add(Tone::Faint, name);
    }

    /// Adds text of several lines, indented.
    pub(crate) fn block(&mut self, text: &str) {
        for line in text.lines() {
            self.line().add(Tone::Plain, "  ").add(Tone::Plain, line);
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, tone: Tone, text: &Text) {
        let style = if self.is_coloured {
            tone.style()
        } else {
            Style::new()
        };
        self.text.push_str(&format!("{style}{text}{style:#}"));
    }
}

/// A line that is being written; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Line<'a>(&'a mut Page);

impl Line<'_> {
    pub(crate) fn add(self, tone: Tone, text: impl Into<Text>) -> Self {
        self.0.push(tone, &text.into());
        self
    }

    pub(crate) fn plain(self, text: impl Into<Text>) -> Self {
        self.add(Tone::Plain, text)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.0.text.push('\n');
    }
}
