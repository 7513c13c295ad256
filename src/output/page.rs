//! Output for people: lines of safe text, some of it coloured.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use super::{
    table::{Cell, Column, Layout},
    text::Text,
};
use crate::job::State;
use crate::suggest::Suggestion;

const INDENT: usize = 14;

/// Sentences wrap at this width without a terminal. Facts then stay on one line, for `grep`.
const PROSE: usize = 100;

const GAP: &str = "  ";

const WHOLE: usize = usize::MAX;

/// How a piece of text stands out. Meaning never depends on it alone.
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

    pub(super) fn style_if(self, is_coloured: bool) -> Style {
        match is_coloured {
            true => self.style(),
            false => Style::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    is_coloured: bool,
    /// The columns and rows of the terminal; `None` for unlimited.
    size: Option<(usize, usize)>,
    width: usize,
    /// The indentation of continuation lines; `None`: the terminal wraps.
    hang: Option<usize>,
    /// The terminal rows of the earlier lines.
    rows: usize,
    /// The lines without tables, each with the indentation of its continuation.
    lines: Vec<(usize, Pieces)>,
}

pub(crate) type Pieces = Vec<(Tone, Text)>;

impl Page {
    pub(crate) fn new(is_coloured: bool, size: Option<(usize, usize)>) -> Self {
        Self {
            text: String::new(),
            is_coloured,
            size,
            width: 0,
            hang: None,
            rows: 0,
            lines: Vec::new(),
        }
    }

    pub(crate) fn line(&mut self) -> Line<'_> {
        self.lines.push((self.hang.unwrap_or(0), Vec::new()));
        Line(self)
    }

    /// Starts a line that wraps between words, with indented continuation lines.
    pub(crate) fn sentence(&mut self, hang: usize) -> Line<'_> {
        self.hang = Some(hang);
        self.line()
    }

    pub(crate) fn fact(&mut self, name: &str, fact: impl Into<Text>) {
        let line = match self.size {
            Some(_) => self.sentence(INDENT),
            None => self.line(),
        };
        line.add(Tone::Faint, format!("{name:<INDENT$}"))
            .add(Tone::Plain, fact);
    }

    /// The fact is cut to fit; the command is shown whole, on a separate line if necessary.
    pub(crate) fn fact_with(
        &mut self,
        name: &str,
        tone: Tone,
        fact: &str,
        command: Option<&Suggestion>,
    ) {
        let room = self.size.map(|(columns, _)| columns.saturating_sub(INDENT));
        let room = room.unwrap_or(usize::MAX);
        let fact = Text::from(fact).cut(room);
        let command = command.map(|command| Text::from(command.to_string()));
        let behind = fact.width() + GAP.len();
        let line = self.line().add(Tone::Faint, format!("{name:<INDENT$}"));
        let line = line.add(tone, fact);
        match command {
            Some(command) if behind + command.width() <= room => {
                line.plain(GAP).add(Tone::Strong, command);
            }
            Some(command) => {
                drop(line);
                self.line().plain(GAP).add(Tone::Strong, command);
            }
            None => {}
        }
    }

    /// Adds a line with a command, which never wraps: its second line would be another command.
    pub(crate) fn command(&mut self, before: &str, command: &Suggestion) {
        drop(
            self.line()
                .add(Tone::Faint, before)
                .add(Tone::Strong, command.to_string()),
        );
        if let Some((hang, _)) = self.lines.last_mut() {
            *hang = WHOLE;
        }
    }

    /// Adds a table after an empty line, unless it has no rows.
    pub(crate) fn table(&mut self, columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>) {
        let room = self.size.map(|(columns, _)| columns);
        let mut layout = Layout::new(columns, room, self.is_coloured);
        let mut text: String = rows.map(|row| layout.push(row)).collect();
        text += &layout.finish();
        if !text.is_empty() {
            self.line();
            self.rows += text.lines().count();
            self.text.push_str(&text);
        }
    }

    /// Returns the width of the terminal, if there is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.size.map(|(columns, _)| columns)
    }

    /// Returns how many rows the terminal has left above its prompt.
    pub(crate) fn rows_left(&self) -> Option<usize> {
        let (_, rows) = self.size?;
        Some(rows.saturating_sub(self.rows + 1))
    }

    /// Adds a line about the rows that a table leaves out, with the command that lists them.
    pub(crate) fn more(&mut self, text: String, command: &str) {
        let line = self.line().add(Tone::Faint, text);
        if !command.is_empty() {
            line.plain(" (").add(Tone::Strong, command).plain(")");
        }
    }

    pub(crate) fn heading(&mut self, name: &str) {
        self.line().add(Tone::Faint, name);
    }

    pub(crate) fn block(&mut self, text: &str) {
        for line in text.lines() {
            self.line().add(Tone::Plain, "  ").add(Tone::Plain, line);
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Without tables. Long lines wrap, so that no text is lost.
    pub(crate) fn into_lines(self) -> Vec<Pieces> {
        let columns = self.size.map_or(usize::MAX, |(columns, _)| columns);
        let broken = |(hang, line)| broken(line, columns, hang);
        self.lines.into_iter().flat_map(broken).collect()
    }

    fn push(&mut self, tone: Tone, text: &Text) {
        let style = tone.style_if(self.is_coloured);
        if let Some((_, line)) = self.lines.last_mut() {
            line.push((tone, text.clone()));
        }
        let columns = self.size.map_or(PROSE, |(columns, _)| columns);
        let Some(hang) = self.hang else {
            self.text.push_str(&format!("{style}{text}{style:#}"));
            self.width += text.width();
            return;
        };
        self.text.push_str(&style.to_string());
        for word in text.as_str().split_inclusive(' ') {
            let width = word.trim_end().width();
            if self.width + width > columns && self.width > hang && width > 0 {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push_str(&format!("\n{:hang$}", ""));
                self.width = hang;
                self.rows += 1;
            }
            self.text.push_str(word);
            self.width += word.width();
        }
        self.text.push_str(&format!("{style:#}"));
    }
}

/// Wraps a line between words; splits a word that is too long for any line.
fn broken(line: Pieces, columns: usize, hang: usize) -> Vec<Pieces> {
    // No text would ever fit into zero columns.
    let columns = columns.max(1);
    let width = |line: &Pieces| line.iter().map(|(_, text)| text.width()).sum::<usize>();
    if hang == WHOLE && width(&line) > columns {
        let text = "    (too wide; `jobboard explain` prints this command)";
        return broken(vec![(Tone::Strong, Text::from(text))], columns, 4);
    }
    let hang = hang.min(columns / 2);
    let (mut rows, mut row, mut width) = (Vec::new(), Pieces::new(), 0);
    for (tone, text) in line {
        for word in text.as_str().split_inclusive(' ') {
            let mut word = Text::from(word);
            let seen = |word: &Text| word.as_str().trim_end().width();
            while width + seen(&word) > columns {
                if seen(&word) > columns - hang && width < columns {
                    let (head, rest) = word.split(columns - width);
                    row.push((tone, head));
                    word = rest;
                }
                rows.push(std::mem::take(&mut row));
                row.push((Tone::Plain, Text::from(" ".repeat(hang))));
                width = hang;
            }
            width += word.width();
            row.push((tone, word));
        }
    }
    rows.push(row);
    rows
}

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
        let page = &mut *self.0;
        page.text.push('\n');
        page.hang = None;
        let columns = page.size.map_or(usize::MAX, |(columns, _)| columns.max(1));
        page.rows += std::mem::take(&mut page.width).div_ceil(columns).max(1);
    }
}
