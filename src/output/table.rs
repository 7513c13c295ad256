//! Tables on a terminal, printed in pieces. Only this module uses comfy-table.

mod grid;

use std::borrow::Cow;

use comfy_table::{
    Attribute, Cell as TableCell, CellAlignment, Color, ColumnConstraint, Row, Table, Width,
    presets,
};

use self::grid::{Grid, NARROWEST};
use super::{
    page::{Pieces, Tone},
    text::Text,
};

/// The rows that determine the column widths, and the rows of one piece.
const PIECE: usize = 1000;

/// The length of a shortened id, if that is unique in its piece.
pub(super) const SHORT: usize = 8;

/// The length of a full id: a uuid.
const LONG: usize = 36;

pub(crate) const NOTHING: &str = "-";

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
    /// Makes the cell that the row needs most.
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
    /// The shown columns and their widths, once known.
    grid: Option<Grid>,
    room: Option<usize>,
    is_coloured: bool,
}

impl Layout {
    pub(super) fn new(columns: &[Column], room: Option<usize>, is_coloured: bool) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
            grid: None,
            room,
            is_coloured,
        }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) -> String {
        self.rows.push(row);
        if self.rows.len() < PIECE {
            return String::new();
        }
        self.finish()
    }

    pub(super) fn finish(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut rows = std::mem::take(&mut self.rows);
        shorten_ids(&self.columns, &mut rows);
        let is_first = self.grid.is_none();
        let grid = self
            .grid
            .take()
            .filter(|grid| grid.holds_ids(&self.columns, &rows));
        let grid = grid.unwrap_or_else(|| Grid::of(&self.columns, &rows, self.room));
        let columns: Vec<_> = grid.shown.iter().map(|&at| &self.columns[at]).collect();
        let rows: Vec<Vec<_>> = rows
            .iter()
            .map(|row| grid.shown.iter().map(|&at| &row[at]).collect())
            .collect();
        let text = self.render(&columns, &rows, &grid, is_first);
        self.grid = Some(grid);
        text
    }

    fn render(
        &self,
        columns: &[&Column],
        rows: &[Vec<&Cell>],
        grid: &Grid,
        with_titles: bool,
    ) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_truncation_indicator("…");
        if self.is_coloured {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        if with_titles {
            let titles = columns.iter().zip(&grid.widths).map(|(column, width)| {
                let title = column.heading().cut(*width);
                TableCell::new(title.as_str()).add_attribute(Attribute::Bold)
            });
            let mut titles = Row::from(titles.collect::<Vec<_>>());
            titles.max_height(1);
            table.set_header(titles);
        }
        for row in rows {
            let cells = row.iter().zip(columns).zip(&grid.widths);
            let cells = cells.map(|((cell, column), width)| styled(cell, column.fit, *width));
            let mut row = Row::from(cells.collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        let last = columns.len().saturating_sub(1);
        let settings = table.column_iter_mut().zip(&grid.widths).zip(columns);
        for (at, ((settings, width), column)) in settings.enumerate() {
            let gap = if at == last { 0 } else { grid.gap };
            settings
                .set_padding((0, u16::try_from(gap).unwrap_or_default()))
                .set_constraint(ColumnConstraint::Absolute(Width::Fixed(
                    u16::try_from(width + gap).unwrap_or(u16::MAX),
                )));
            if column.fit == Fit::Number {
                settings.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = String::new();
        let titles = usize::from(with_titles);
        for (at, line) in table.lines().enumerate() {
            let row = at.checked_sub(titles).and_then(|at| rows.get(at));
            match row.and_then(|row| spread(row, columns, grid, self.room)) {
                Some(line) => {
                    let pieces = line.iter().map(|(tone, text)| self.toned(*tone, text));
                    text.extend(pieces);
                }
                None => text.push_str(line.trim_end()),
            }
            text.push('\n');
        }
        text
    }

    fn toned(&self, tone: Tone, text: &Text) -> String {
        match self.is_coloured {
            true => format!("{0}{text}{0:#}", tone.style()),
            false => text.to_string(),
        }
    }
}

/// Lays rows out for a terminal of this width: the titles, and a line per row.
pub(crate) fn laid_out(
    columns: &[Column],
    rows: &mut [Vec<Cell>],
    room: usize,
) -> (Pieces, Vec<Pieces>) {
    shorten_ids(columns, rows);
    let grid = Grid::of(columns, rows, Some(room));
    lay(columns, rows, &grid, Some(room))
}

fn lay(
    columns: &[Column],
    rows: &[Vec<Cell>],
    grid: &Grid,
    room: Option<usize>,
) -> (Pieces, Vec<Pieces>) {
    let columns: Vec<_> = grid.shown.iter().map(|&at| &columns[at]).collect();
    let titles = columns
        .iter()
        .map(|column| Cell::toned(Tone::Strong, column.heading()));
    let titles: Vec<_> = titles.collect();
    let lines = rows.iter().map(|row| {
        let row: Vec<_> = grid.shown.iter().map(|&at| &row[at]).collect();
        spread(&row, &columns, grid, room).unwrap_or_else(|| line(&row, &columns, grid))
    });
    let lines = lines.collect();
    (
        line(&titles.iter().collect::<Vec<_>>(), &columns, grid),
        lines,
    )
}

fn line(row: &[&Cell], columns: &[&Column], grid: &Grid) -> Pieces {
    let (mut line, mut space) = (Pieces::new(), 0);
    for ((cell, column), &width) in row.iter().zip(columns).zip(&grid.widths) {
        let text = fitted(cell, column.fit, width);
        let left = width.saturating_sub(text.width());
        let (before, behind) = match column.fit {
            Fit::Number => (left, 0),
            _ => (0, left),
        };
        line.push(blank(space + before));
        line.push((cell.tone, text));
        space = behind + grid.gap;
    }
    let end = line
        .iter()
        .rposition(|(_, text)| !text.as_str().trim().is_empty());
    line.truncate(end.map_or(0, |end| end + 1));
    line
}

fn blank(columns: usize) -> (Tone, Text) {
    (Tone::Plain, Text::from(" ".repeat(columns)))
}

/// Lays out a row with a vital cell that is wider than its column.
fn spread(row: &[&Cell], columns: &[&Column], grid: &Grid, room: Option<usize>) -> Option<Pieces> {
    let mut cells = row.iter().zip(&grid.widths);
    let vital = cells.position(|(cell, width)| cell.is_vital && cell.text.width() > *width)?;
    let behind = row.iter().zip(columns).skip(vital + 1);
    let behind: Vec<_> = behind
        .filter(|(cell, _)| cell.text.as_str() != NOTHING)
        .collect();
    // Shrinking cells take the rest of the line, if it is wide enough.
    let fixed = behind.iter().filter(|(_, column)| !column.fit.gives_way());
    let fixed: usize = fixed.map(|(cell, _)| cell.text.width() + grid.gap).sum();
    let before = grid.widths[..vital].iter();
    let before: usize = before.map(|width| width + grid.gap).sum();
    let mut left = room.unwrap_or(usize::MAX).saturating_sub(before + fixed);
    let mut line = Vec::new();
    for (cell, width) in row.iter().zip(&grid.widths).take(vital) {
        line.push((cell.tone, cell.text.clone()));
        line.push(blank((width + grid.gap).saturating_sub(cell.text.width())));
    }
    let text = row[vital].text.shortened(left);
    left = left.saturating_sub(text.width());
    line.push((row[vital].tone, text));
    for (cell, column) in behind {
        let mut text = cell.text.clone();
        if column.fit.gives_way() {
            if left < grid.gap + NARROWEST.min(text.width()) {
                continue;
            }
            text = text.cut(left - grid.gap);
            left -= grid.gap + text.width();
        }
        line.push(blank(grid.gap));
        line.push((cell.tone, text));
    }
    Some(line)
}

fn styled(cell: &Cell, fit: Fit, width: usize) -> TableCell {
    let text = fitted(cell, fit, width);
    let plain = TableCell::new(text.as_str());
    match cell.tone {
        Tone::Plain => plain,
        Tone::Strong => plain.add_attribute(Attribute::Bold),
        Tone::Faint => plain.add_attribute(Attribute::Dim),
        Tone::Good => plain.fg(Color::DarkGreen),
        Tone::Busy => plain.fg(Color::DarkYellow),
        Tone::Bad => plain.fg(Color::DarkRed).add_attribute(Attribute::Bold),
    }
}

fn fitted(cell: &Cell, fit: Fit, width: usize) -> Text {
    match fit {
        Fit::KeepsEnds => cell.text.shortened(width),
        _ => cell.text.cut(width),
    }
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
