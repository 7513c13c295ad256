//! Output for people: lines of safe text, some of it coloured.

use unicode_width::UnicodeWidthStr;

use super::{
    style::{Pieces, Tone, styled, trim, width},
    table::{Cell, Column, laid_out},
    text::Text,
};
use crate::suggest::Suggestion;

const INDENT: usize = 14;

/// Sentences wrap at this width without a terminal. Facts then stay on one line, for `grep`.
pub(super) const PROSE: usize = 100;

const GAP: &str = "  ";

#[derive(Debug)]
pub(crate) struct Page {
    /// The columns and rows of the terminal; `None` for unlimited.
    size: Option<(usize, usize)>,
    lines: Vec<(Wrap, Pieces)>,
    /// Set where a line cannot be copied as a whole anyway.
    wraps_commands: bool,
}

/// Where a line continues that is wider than the terminal.
#[derive(Debug, Clone, Copy)]
enum Wrap {
    /// Anywhere, as the terminal does.
    Anywhere,
    /// Between words, with this indentation.
    Words(usize),
    /// Nowhere: the second line of a command would be another command.
    Nowhere,
}

impl Page {
    pub(crate) fn new(size: Option<(usize, usize)>) -> Self {
        Self {
            size,
            lines: Vec::new(),
            wraps_commands: false,
        }
    }

    pub(crate) fn wrapping_commands(self) -> Self {
        Self {
            wraps_commands: true,
            ..self
        }
    }

    pub(crate) fn line(&mut self) -> PageLine<'_> {
        self.push(Wrap::Anywhere)
    }

    pub(crate) fn sentence(&mut self, hang: usize) -> PageLine<'_> {
        self.push(Wrap::Words(hang))
    }

    fn push(&mut self, wrap: Wrap) -> PageLine<'_> {
        let at = self.lines.len();
        self.lines.push((wrap, Pieces::new()));
        PageLine(&mut self.lines[at].1)
    }

    pub(crate) fn fact(&mut self, name: &str, fact: impl Into<Text>) {
        let line = match self.size {
            Some(_) => self.sentence(INDENT),
            None => self.line(),
        };
        line.add(Tone::Faint, label(name)).add(Tone::Plain, fact);
    }

    /// Adds a line for each of these facts, under the same name.
    pub(crate) fn facts(&mut self, name: &str, facts: impl IntoIterator<Item: Into<Text>>) {
        facts.into_iter().for_each(|fact| self.fact(name, fact));
    }

    /// The fact is cut to fit; the command is shown whole, on a separate line if necessary.
    pub(crate) fn fact_with(
        &mut self,
        name: &str,
        tone: Tone,
        fact: &str,
        command: Option<&Suggestion>,
    ) {
        let room = self.columns().map(|it| it.saturating_sub(INDENT));
        let room = room.unwrap_or(usize::MAX);
        let fact = Text::from(fact).cut(room);
        let command = command.map(|command| Text::from(command.to_string()));
        let behind = fact.width() + GAP.len();
        let line = self.line().add(Tone::Faint, label(name));
        let line = line.add(tone, fact);
        if let Some(command) = command {
            let line = match behind + command.width() <= room {
                true => line,
                false => self.line(),
            };
            line.plain(GAP).add(Tone::Strong, command);
        }
    }

    /// Adds a line with a command, which never wraps.
    pub(crate) fn command(&mut self, before: &str, command: &Suggestion) {
        let line = self.push(Wrap::Nowhere).add(Tone::Faint, before);
        line.add(Tone::Strong, command.to_string());
    }

    pub(crate) fn table(&mut self, columns: &[Column], rows: impl Iterator<Item = Vec<Cell>>) {
        let lines = laid_out(columns, rows.collect(), self.columns());
        let blank = (!lines.is_empty()).then(Pieces::new);
        let lines = blank.into_iter().chain(lines);
        self.lines.extend(lines.map(|line| (Wrap::Anywhere, line)));
    }

    pub(crate) fn columns(&self) -> Option<usize> {
        self.size.map(|(columns, _)| columns)
    }

    /// Returns how many rows the terminal has left above its prompt.
    pub(crate) fn rows_left(&self) -> Option<usize> {
        let (columns, rows) = self.size?;
        let shown = self.rows();
        let taken = shown
            .iter()
            .map(|row| width(row).div_ceil(columns.max(1)).max(1));
        Some(rows.saturating_sub(taken.sum::<usize>() + 1))
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

    pub(super) fn rows(&self) -> Vec<Pieces> {
        let columns = self.columns().unwrap_or(PROSE);
        let rows = self.lines.iter().flat_map(|(wrap, line)| match wrap {
            Wrap::Words(hang) => wrapped(line, columns, *hang, false),
            Wrap::Anywhere | Wrap::Nowhere => vec![line.clone()],
        });
        rows.collect()
    }

    pub(crate) fn into_text(self) -> String {
        let rows = self.rows().into_iter();
        rows.map(|row| styled(&row, false) + "\n").collect()
    }

    /// Long lines wrap, so that no text is lost.
    pub(crate) fn into_lines(self) -> Vec<Pieces> {
        // No text would ever fit into zero columns.
        let columns = self.columns().map_or(usize::MAX, |columns| columns.max(1));
        let rows = self.lines.iter().flat_map(|(wrap, line)| match wrap {
            Wrap::Nowhere if width(line) > columns && !self.wraps_commands => {
                let text = "    (too wide; `jobboard explain` prints this command)";
                wrapped(&[(Tone::Strong, Text::from(text))], columns, 4, true)
            }
            Wrap::Words(hang) => wrapped(line, columns, *hang, true),
            Wrap::Nowhere => wrapped(line, columns, 4, true),
            Wrap::Anywhere => wrapped(line, columns, 0, true),
        });
        rows.collect()
    }
}

fn label(name: &str) -> String {
    format!("{:<INDENT$}", format!("{name} "))
}

fn wrapped(line: &[(Tone, Text)], columns: usize, hang: usize, splits_words: bool) -> Vec<Pieces> {
    let hang = hang.min(columns / 2);
    let (mut rows, mut row, mut width) = (Vec::new(), Pieces::new(), 0);
    for (tone, text) in line {
        for word in text.as_str().split_inclusive(' ') {
            let mut word = Text::from(word);
            let seen = |word: &Text| word.as_str().trim_end().width();
            while width + seen(&word) > columns && seen(&word) > 0 && (splits_words || width > hang)
            {
                if splits_words && seen(&word) > columns - hang && width < columns {
                    let (head, rest) = word.split(columns - width);
                    row.push((*tone, head));
                    word = rest;
                }
                trim(&mut row);
                rows.push(std::mem::take(&mut row));
                row.push((Tone::Plain, Text::from(" ".repeat(hang))));
                width = hang;
            }
            width += word.width();
            row.push((*tone, word));
        }
    }
    rows.push(row);
    rows
}

#[derive(Debug)]
pub(crate) struct PageLine<'a>(&'a mut Pieces);

impl PageLine<'_> {
    pub(crate) fn add(self, tone: Tone, text: impl Into<Text>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    pub(crate) fn plain(self, text: impl Into<Text>) -> Self {
        self.add(Tone::Plain, text)
    }
}
