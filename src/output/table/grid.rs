//! Chooses the columns of a table and their widths, to fit a terminal.

use super::{ABSENT, Cell, Column, Fit, PIECE};

/// The minimum column width, where no more columns can be left out.
pub(super) const NARROWEST: usize = 5;

/// The minimum column width while another column can be left out.
const COMFORTABLE: usize = 13;

/// The space between columns: normal and tight.
const GAPS: [usize; 2] = [2, 1];

#[derive(Debug)]
pub(super) struct Grid {
    pub(super) shown: Vec<usize>,
    pub(super) widths: Vec<usize>,
    pub(super) gap: usize,
}

impl Grid {
    /// Chooses the columns for rows like these.
    ///
    /// Without room for all, texts are cut a little first. Then columns are left out by their order, empty ones
    /// first. In the end texts are cut to fit.
    pub(super) fn of(columns: &[Column], rows: &[Vec<Cell>], room: Option<usize>) -> Self {
        let all = Self {
            shown: (0..columns.len()).collect(),
            // With room for everything, no row has to spread.
            widths: widths(columns, rows, |_| true),
            gap: GAPS[0],
        };
        let Some(room) = room.filter(|room| all.width() > *room) else {
            return all;
        };
        let mut widths = widths(columns, rows, |cell| !cell.is_vital);
        for (width, column) in widths.iter_mut().zip(columns) {
            *width = if column.fit.gives_way() {
                room.min(*width)
            } else {
                *width
            };
        }
        let mut falling = falling(columns, rows).into_iter();
        let mut shown = all.shown;
        loop {
            let squeeze = |least, gap| {
                let widths = shown.iter().map(|&at| widths[at]).collect();
                let shown = shown.clone();
                Self { shown, widths, gap }.shrunk(columns, least, room)
            };
            let next = falling.next();
            let least = next.map_or(NARROWEST, |_| COMFORTABLE);
            let [wide, narrow] = GAPS.map(|gap| squeeze(least, gap));
            match (wide.or(narrow), next) {
                (Ok(grid), _) | (Err(grid), None) => return grid,
                (Err(_), Some(next)) => shown.retain(|&at| at != next),
            }
        }
    }

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.gap * self.widths.len().saturating_sub(1)
    }

    /// Narrows columns until all fit; returns an error if they cannot.
    fn shrunk(mut self, columns: &[Column], least: usize, room: usize) -> Result<Self, Self> {
        for _ in room..self.width() {
            // The widest shrinks first, so that short texts stay whole.
            let widest = self
                .widths
                .iter_mut()
                .zip(&self.shown)
                .filter(|(width, at)| columns[**at].fit.gives_way() && **width > least)
                .map(|(width, _)| width)
                .max();
            match widest {
                Some(widest) => *widest -= 1,
                None => return Err(self),
            }
        }
        Ok(self)
    }

    /// Whether the ids of further rows fit into the width of the first ones.
    pub(super) fn holds_ids(&self, columns: &[Column], rows: &[Vec<Cell>]) -> bool {
        let mut ids = self.shown.iter().zip(&self.widths);
        ids.all(|(&at, width)| {
            let mut texts = rows.iter().map(|row| &row[at].text);
            columns[at].fit != Fit::Id || texts.all(|text| text.width() <= *width)
        })
    }
}

fn widths(columns: &[Column], rows: &[Vec<Cell>], counts: impl Fn(&Cell) -> bool) -> Vec<usize> {
    let titles = columns.iter().map(|column| column.heading().width());
    let mut widths: Vec<_> = titles.collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row).filter(|(_, cell)| counts(cell)) {
            *width = (*width).max(cell.text.width());
        }
    }
    widths
}

fn falling(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<usize> {
    // Rows that are still to come may fill the column.
    let are_all = rows.len() < PIECE;
    let says = |at: usize| !are_all || rows.iter().any(|row| row[at].text.as_str() != ABSENT);
    let falling = columns.iter().enumerate();
    let falling = falling.filter_map(|(at, column)| Some((says(at), column.falls?, at)));
    let mut falling: Vec<_> = falling.collect();
    falling.sort_unstable();
    falling.into_iter().map(|(_, _, at)| at).collect()
}
