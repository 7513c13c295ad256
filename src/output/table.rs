//! Tables, laid out in pieces for printing and for `dash`. Only this module uses comfy-table.

mod grid;

use std::borrow::Cow;

use comfy_table::{Cell as TableCell, CellAlignment, ColumnConstraint, Table, Width, presets};

use self::grid::{Grid, NARROWEST};
use super::{
    style::{Pieces, Tone, trim},
    text::Text,
};

/// The rows that determine the column widths, and the rows of one piece.
const PIECE: usize = 1000;

/// The widest column; comfy-table counts with 16 bits.
const MAX_WIDTH: usize = 60_000;

/// The length of a shortened id, if that is unique in its piece.
pub(super) const SHORT: usize = 8;

const LONG: usize = 36;

pub(crate) const ABSENT: &str = "-";

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    pub(crate) fit: Fit,
    /// Columns with the lowest number disappear first when room is short; `None`: never.
    pub(super) falls: Option<u8>,
}

impl Column {
    pub(crate) const fn new(title: &'static str, fit: Fit) -> Self {
        Self {
            title: Cow::Borrowed(title),
            fit,
            falls: None,
        }
    }

    pub(crate) fn titled(title: String, fit: Fit) -> Self {
        Self {
            title: Cow::Owned(title),
            ..Self::new("", fit)
        }
    }

    pub(crate) const fn falling(mut self, falls: Option<u8>) -> Self {
        self.falls = falls;
        self
    }

    fn heading(&self) -> Text {
        Text::from(self.title.to_uppercase())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Whole,
    /// Keeps its width, aligned to the right.
    Number,
    /// Shrinks; the end is cut off.
    Shrinks,
    /// Shrinks in the middle, so that both ends stay.
    KeepsEnds,
    /// Shows the shortest unique prefix.
    Id,
}

impl Fit {
    fn gives_way(self) -> bool {
        matches!(self, Self::Shrinks | Self::KeepsEnds)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    pub(crate) tone: Tone,
    /// Whether it is shown in full if possible, at the expense of the cells after it.
    is_vital: bool,
}

impl Cell {
    pub(crate) fn vital(tone: Tone, text: impl Into<Text>) -> Self {
        Self {
            is_vital: true,
            ..Self::toned(tone, text)
        }
    }

    pub(crate) fn new(text: impl Into<Text>) -> Self {
        Self::toned(Tone::Plain, text)
    }

    pub(crate) fn toned(tone: Tone, text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            tone,
            is_vital: false,
        }
    }
}

/// Lays rows out as they arrive, with columns as wide as the first rows need.
#[derive(Debug)]
pub(super) struct Layout {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    grid: Option<Grid>,
    room: Option<usize>,
}

impl Layout {
    pub(super) fn new(columns: &[Column], room: Option<usize>) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
            grid: None,
            room,
        }
    }

    /// Adds a row, and returns the lines of a complete piece.
    pub(super) fn push(&mut self, row: Vec<Cell>) -> Vec<Pieces> {
        self.rows.push(row);
        match self.rows.len() < PIECE {
            true => Vec::new(),
            false => self.finish(),
        }
    }

    /// Returns the lines of the remaining rows. The first line of a table has the titles.
    pub(super) fn finish(&mut self) -> Vec<Pieces> {
        let mut rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Vec::new();
        }
        shorten_ids(&self.columns, &mut rows);
        let is_first = self.grid.is_none();
        let known = self.grid.take();
        let known = known.filter(|grid| grid.holds_ids(&self.columns, &rows));
        let grid = known.unwrap_or_else(|| Grid::of(&self.columns, &rows, self.room));
        let titles = self
            .columns
            .iter()
            .map(|column| Cell::toned(Tone::Strong, column.heading()));
        let titles: Vec<_> = titles.collect();
        let rows = is_first.then_some(&titles).into_iter().chain(&rows);
        let lines: Vec<_> = rows.map(|row| self.line(row, &grid)).collect();
        // A row with a wide cell has columns of its own.
        let widths = |line: &Vec<TableSlot>| line.iter().map(|it| it.width).collect::<Vec<_>>();
        let alike = lines.chunk_by(|one, other| widths(one) == widths(other));
        let lines = alike.flat_map(|lines| padded(lines, grid.gap)).collect();
        self.grid = Some(grid);
        lines
    }

    fn line(&self, row: &[Cell], grid: &Grid) -> Vec<TableSlot> {
        let mut room = self.room.unwrap_or(MAX_WIDTH);
        let mut slots = Vec::with_capacity(grid.shown.len());
        let mut shown = grid
            .shown
            .iter()
            .map(|&at| (&row[at], self.columns[at].fit))
            .zip(&grid.widths);
        while let Some(((cell, fit), &width)) = shown.next() {
            if cell.is_vital && cell.text.width() > width {
                let behind = shown.map(|(cell, _)| cell);
                slots.extend(spread(cell, behind, room, grid.gap));
                break;
            }
            let width = width.min(MAX_WIDTH);
            slots.push(TableSlot {
                tone: cell.tone,
                text: match fit {
                    Fit::KeepsEnds => cell.text.shortened(width),
                    _ => cell.text.cut(width),
                },
                is_number: fit == Fit::Number,
                width,
            });
            room = room.saturating_sub(width + grid.gap);
        }
        slots
    }
}

#[derive(Debug)]
struct TableSlot {
    tone: Tone,
    text: Text,
    is_number: bool,
    width: usize,
}

/// Shows a cell that is wider than its column in full, at the expense of the cells behind it.
fn spread<'a>(
    vital: &'a Cell,
    behind: impl Iterator<Item = (&'a Cell, Fit)>,
    mut room: usize,
    gap: usize,
) -> Vec<TableSlot> {
    let slot = |cell: &Cell, text: Text| TableSlot {
        tone: cell.tone,
        width: text.width(),
        text,
        is_number: false,
    };
    let behind: Vec<_> = behind
        .filter(|(cell, _)| cell.text.as_str() != ABSENT)
        .collect();
    // Shrinking cells take the rest of the line, if it is wide enough.
    let fixed = behind.iter().filter(|(_, fit)| !fit.gives_way());
    let fixed: usize = fixed.map(|(cell, _)| cell.text.width() + gap).sum();
    room = room.saturating_sub(fixed);
    let mut slots = vec![slot(vital, vital.text.shortened(room))];
    room = room.saturating_sub(slots[0].width);
    for (cell, fit) in behind {
        let mut text = cell.text.clone();
        if fit.gives_way() {
            if room < gap + NARROWEST.min(text.width()) {
                continue;
            }
            text = text.cut(room - gap);
            room -= gap + text.width();
        }
        slots.push(slot(cell, text));
    }
    slots
}

fn padded(lines: &[Vec<TableSlot>], gap: usize) -> Vec<Pieces> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for line in lines {
        let cells = line.iter().map(|slot| {
            TableCell::new(slot.text.as_str()).set_alignment(match slot.is_number {
                true => CellAlignment::Right,
                false => CellAlignment::Left,
            })
        });
        table.add_row(cells);
    }
    let columns = lines.first().into_iter().flatten();
    for (column, slot) in table.column_iter_mut().zip(columns) {
        let [width, gap] = [slot.width + gap, gap].map(|it| u16::try_from(it).unwrap_or(u16::MAX));
        column
            .set_padding((0, gap))
            .set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
    }
    let lines = table.lines().zip(lines).map(|(line, slots)| {
        let mut rest = Text::from(line);
        let pieces = slots.iter().map(|slot| {
            let (text, behind) = rest.split(slot.width + gap);
            rest = behind;
            (slot.tone, text)
        });
        let mut pieces: Pieces = pieces.collect();
        trim(&mut pieces);
        pieces
    });
    lines.collect()
}

pub(crate) fn laid_out(
    columns: &[Column],
    rows: Vec<Vec<Cell>>,
    room: Option<usize>,
) -> Vec<Pieces> {
    let mut layout = Layout::new(columns, room);
    let mut lines: Vec<_> = rows.into_iter().flat_map(|row| layout.push(row)).collect();
    lines.extend(layout.finish());
    lines
}

/// Cuts each id to the shortest prefix that is unique among these rows.
fn shorten_ids(columns: &[Column], rows: &mut [Vec<Cell>]) {
    let ids = columns.iter().enumerate();
    for (at, _) in ids.filter(|(_, column)| column.fit == Fit::Id) {
        // A key cannot be abbreviated.
        let is_uuid = |row: &&mut Vec<Cell>| !row[at].text.as_str().starts_with("key:");
        let mut rows: Vec<_> = rows.iter_mut().filter(is_uuid).collect();
        let mut ids: Vec<_> = rows.iter().map(|row| row[at].text.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let alike = |pair: &[&str]| {
            let pairs = pair[0].chars().zip(pair[1].chars());
            pairs.take_while(|(one, other)| one == other).count()
        };
        let alike = ids.windows(2).map(alike).max().unwrap_or_default();
        let length = (alike + 1).clamp(SHORT, LONG);
        for row in &mut rows {
            row[at].text.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests;
