//! Tables on a terminal, in as many pieces as it takes; the only place that knows comfy-table.

use comfy_table::{
    Attribute, Cell as TableCell, CellAlignment, Color, ColumnConstraint, Row, Table, Width,
    presets,
};

use super::{page::Tone, text::Text};

/// How many rows decide on the widths of the columns, and are laid out at once.
const PIECE: usize = 1000;

/// The narrowest that a column is made to fit the terminal.
const NARROWEST: usize = 5;

/// What a cell says that has nothing to say.
pub(crate) const NOTHING: &str = "-";

/// The space between columns, where there is room, and where there is not.
const GAPS: [usize; 2] = [2, 1];

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) fit: Fit,
}

impl Column {
    pub(crate) const fn new(title: &'static str, fit: Fit) -> Self {
        Self { title, fit }
    }
}

/// What happens to a column when the terminal is narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It keeps its width.
    Whole,
    /// It keeps its width, and is aligned to the right.
    Number,
    /// It gives way, and what does not fit is cut off.
    Shrinks,
    /// It gives way, and of what does not fit both ends are shown.
    KeepsEnds,
}

impl Fit {
    fn gives_way(self) -> bool {
        matches!(self, Self::Shrinks | Self::KeepsEnds)
    }
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    pub(crate) tone: Tone,
    /// Whether it is shown in full if there is any room, at the expense of the cells behind it.
    is_vital: bool,
}

impl Cell {
    /// Makes a cell without which the row is of no use.
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

/// Lays rows out as they come, with columns as wide as the first rows need.
#[derive(Debug)]
pub(super) struct Layout {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
    /// The widths of the columns and the space between them, once known.
    grid: Option<(Vec<usize>, usize)>,
    /// The width of the terminal, `None` for as wide as it gets.
    room: Option<usize>,
    is_coloured: bool,
}

impl Layout {
    pub(super) fn new(columns: &'static [Column], room: Option<usize>, is_coloured: bool) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            grid: None,
            room,
            is_coloured,
        }
    }

    /// Adds a row, and returns the text that became ready by it.
    pub(super) fn push(&mut self, row: Vec<Cell>) -> String {
        self.rows.push(row);
        if self.rows.len() < PIECE {
            return String::new();
        }
        self.finish()
    }

    /// Returns the text of the rows that are left.
    pub(super) fn finish(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let is_first = self.grid.is_none();
        let grid = self.grid.take().unwrap_or_else(|| self.measure());
        let rows = std::mem::take(&mut self.rows);
        let text = self.render(&rows, &grid, is_first);
        self.grid = Some(grid);
        text
    }

    /// Returns how wide each column is to be, and how far apart, so that all of them fit.
    fn measure(&self) -> (Vec<usize>, usize) {
        let [wide, narrow] = GAPS;
        // Where there is room for everything, nothing has to spread.
        let whole = self.widths(|_| true);
        let gaps = wide * whole.len().saturating_sub(1);
        let needed = whole.iter().sum::<usize>() + gaps;
        if self.room.is_none_or(|room| needed <= room) {
            return (whole, wide);
        }
        let mut widths = self.widths(|cell| !cell.is_vital);
        let room = self.room.unwrap_or(usize::MAX);
        let mut fitting = widths.clone();
        if self.squeeze(&mut fitting, wide, room) {
            return (fitting, wide);
        }
        self.squeeze(&mut widths, narrow, room);
        (widths, narrow)
    }

    /// Returns how wide each column is for its title and those of its cells that count.
    fn widths(&self, counts: impl Fn(&Cell) -> bool) -> Vec<usize> {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| column.title.len())
            .collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row).filter(|(_, cell)| counts(cell)) {
                *width = (*width).max(cell.text.width());
            }
        }
        widths
    }

    /// Narrows columns until all fit; returns whether they do.
    fn squeeze(&self, widths: &mut [usize], gap: usize, room: usize) -> bool {
        let gaps = gap * widths.len().saturating_sub(1);
        let mut surplus = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
        while surplus > 0 {
            // The widest gives way first, so that short texts stay whole.
            let widest = widths
                .iter_mut()
                .zip(self.columns)
                .filter(|(width, column)| column.fit.gives_way() && **width > NARROWEST)
                .map(|(width, _)| width)
                .max();
            let Some(widest) = widest else { return false };
            *widest -= 1;
            surplus -= 1;
        }
        true
    }

    fn render(
        &self,
        rows: &[Vec<Cell>],
        (widths, gap): &(Vec<usize>, usize),
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
            let titles = self.columns.iter().map(|column| {
                TableCell::new(column.title.to_uppercase()).add_attribute(Attribute::Bold)
            });
            table.set_header(Row::from(titles.collect::<Vec<_>>()));
        }
        for row in rows {
            let cells = row.iter().zip(self.columns).zip(widths);
            let cells = cells.map(|((cell, column), width)| styled(cell, column.fit, *width));
            let mut row = Row::from(cells.collect::<Vec<_>>());
            row.max_height(1);
            table.add_row(row);
        }
        let last = self.columns.len().saturating_sub(1);
        for (at, ((settings, width), column)) in table
            .column_iter_mut()
            .zip(widths)
            .zip(self.columns)
            .enumerate()
        {
            let gap = if at == last { 0 } else { *gap };
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
            match row.and_then(|row| self.spread(row, widths, *gap)) {
                Some(line) => text.push_str(&line),
                None => text.push_str(line.trim_end()),
            }
            text.push('\n');
        }
        text
    }

    /// Writes a row whose vital cell does not fit into its column; the cells behind it follow as
    /// they come.
    fn spread(&self, row: &[Cell], widths: &[usize], gap: usize) -> Option<String> {
        let mut columns = row.iter().zip(widths);
        let vital =
            columns.position(|(cell, width)| cell.is_vital && cell.text.width() > *width)?;
        let behind = row.iter().skip(vital + 1);
        let behind: Vec<_> = behind
            .filter(|cell| cell.text.as_str() != NOTHING)
            .collect();
        let before: usize = widths.iter().take(vital).map(|width| width + gap).sum();
        let needed: usize = behind.iter().map(|cell| cell.text.width() + gap).sum();
        let room = self
            .room
            .unwrap_or(usize::MAX)
            .saturating_sub(before + needed);
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths).take(vital) {
            let space = " ".repeat((width + gap).saturating_sub(cell.text.width()));
            line += &(self.toned(cell.tone, &cell.text) + &space);
        }
        line += &self.toned(row[vital].tone, &row[vital].text.shortened(room));
        for cell in behind {
            line += &(" ".repeat(gap) + &self.toned(cell.tone, &cell.text));
        }
        Some(line)
    }

    fn toned(&self, tone: Tone, text: &Text) -> String {
        match self.is_coloured {
            true => format!("{0}{text}{0:#}", tone.style()),
            false => text.to_string(),
        }
    }
}

fn styled(cell: &Cell, fit: Fit, width: usize) -> TableCell {
    let plain = match fit {
        Fit::KeepsEnds => TableCell::new(cell.text.shortened(width).as_str()),
        _ => TableCell::new(cell.text.as_str()),
    };
    match cell.tone {
        Tone::Plain => plain,
        Tone::Strong => plain.add_attribute(Attribute::Bold),
        Tone::Faint => plain.add_attribute(Attribute::Dim),
        Tone::Good => plain.fg(Color::DarkGreen),
        Tone::Busy => plain.fg(Color::DarkYellow),
        Tone::Bad => plain.fg(Color::DarkRed).add_attribute(Attribute::Bold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column {
            title: "name",
            fit: Fit::Shrinks,
        },
        Column {
            title: "age",
            fit: Fit::Number,
        },
    ];

    fn row(name: &str, age: &str) -> Vec<Cell> {
        vec![Cell::new(name), Cell::new(age)]
    }

    #[test]
    fn columns_are_as_wide_as_their_texts() {
        let mut layout = Layout::new(COLUMNS, None, false);
        assert_eq!(layout.push(row("resize", "3m")), "");
        layout.push(row("x", "10m"));
        assert_eq!(layout.finish(), "NAME    AGE\nresize   3m\nx       10m\n");
    }

    #[test]
    fn what_does_not_fit_is_cut_off_and_marked() {
        let mut layout = Layout::new(COLUMNS, Some(14), false);
        layout.push(row("a very long name", "3m"));
        let text = layout.finish();
        assert!(text.contains('…'), "{text}");
        assert!(
            text.lines().all(|line| Text::from(line).width() <= 14),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_vital_cell_is_shown_in_full_where_there_is_room() {
        const VITAL: &[Column] = &[
            Column::new("uuid", Fit::Whole),
            Column::new("name", Fit::Shrinks),
            Column::new("state", Fit::Whole),
            Column::new("owner", Fit::KeepsEnds),
        ];
        let cells = |name: Cell, state: &str, owner: &str| {
            let cells = [Cell::new("12345678"), name];
            let behind = [Cell::new(state), Cell::new(owner)];
            cells.into_iter().chain(behind).collect::<Vec<_>>()
        };
        let key = "key:job0000000012-abcdef";
        for (room, expected) in [
            (
                80,
                "UUID      NAME                      STATE      OWNER\n\
                 12345678  resize                    CLAIMED    root@host:host:4711:c0ffee\n\
                 12345678  key:job0000000012-abcdef  MALFORMED  -\n",
            ),
            (
                50,
                "UUID      NAME    STATE      OWNER\n\
                 12345678  resize  CLAIMED    root@host:…711:c0ffee\n\
                 12345678  key:job0000000012-abcdef  MALFORMED\n",
            ),
            (
                40,
                "UUID      NAME    STATE      OWNER\n\
                 12345678  resize  CLAIMED    root@…0ffee\n\
                 12345678  key:job00…12-abcdef  MALFORMED\n",
            ),
        ] {
            let mut layout = Layout::new(VITAL, Some(room), false);
            layout.push(cells(
                Cell::new("resize"),
                "CLAIMED",
                "root@host:host:4711:c0ffee",
            ));
            layout.push(cells(Cell::vital(Tone::Bad, key), "MALFORMED", NOTHING));
            assert_eq!(layout.finish(), expected);
        }
    }

    #[test]
    fn later_pieces_keep_the_widths_and_have_no_titles() {
        let mut layout = Layout::new(COLUMNS, None, false);
        let mut text = String::new();
        for _ in 0..=PIECE {
            text += &layout.push(row("resize", "3m"));
        }
        text += &layout.finish();
        assert_eq!(text.matches("NAME").count(), 1);
        assert_eq!(text.matches("\nresize   3m").count(), PIECE + 1);
    }
}
