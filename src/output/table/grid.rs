//! Which columns of a table are shown, and how wide, so that they fit a terminal.

use super::{Cell, Column, Fit, NOTHING, PIECE};

/// The narrowest that a column is made to fit the terminal, where none can be left out any more.
pub(super) const NARROWEST: usize = 5;

/// The narrowest that a column is made while there is another that can be left out.
const COMFORTABLE: usize = 13;

/// The space between columns, where there is room, and where there is not.
const GAPS: [usize; 2] = [2, 1];

#[derive(Debug)]
pub(super) struct Grid {
    /// Which of all columns these are.
    pub(super) shown: Vec<usize>,
    pub(super) widths: Vec<usize>,
    pub(super) gap: usize,
}

impl Grid {
    /// Chooses the columns for rows like these.
    ///
    /// Where there is not room for all, texts are cut a little first; then columns are left out
    /// in the order in which they fall, those before that have nothing to say; and in the end
    /// texts are cut as far as it takes.
    pub(super) fn of(columns: &[Column], rows: &[Vec<Cell>], room: Option<usize>) -> Self {
        let all = Self {
            shown: (0..columns.len()).collect(),
            // Where there is room for everything, nothing has to spread.
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
                Self { shown, widths, gap }.squeezed(columns, least, room)
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

    /// Narrows columns until all fit, which an error says they do not.
    fn squeezed(mut self, columns: &[Column], least: usize, room: usize) -> Result<Self, Self> {
        for _ in room..self.width() {
            // The widest gives way first, so that short texts stay whole.
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

    /// Whether the ids of further rows are no longer than those of the first.
    pub(super) fn holds_ids(&self, columns: &[Column], rows: &[Vec<Cell>]) -> bool {
        let mut ids = self.shown.iter().zip(&self.widths);
        ids.all(|(&at, width)| {
            let mut texts = rows.iter().map(|row| &row[at].text);
            columns[at].fit != Fit::Id || texts.all(|text| text.width() <= *width)
        })
    }
}

/// Returns how wide each column is for its title and those of its cells that count.
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
    // Of more rows that are to come nobody knows what they have to say.
    let are_all = rows.len() < PIECE;
    let says = |at: usize| !are_all || rows.iter().any(|row| row[at].text.as_str() != NOTHING);
    let falling = columns.iter().enumerate();
    let falling = falling.filter_map(|(at, column)| Some((says(at), column.falls?, at)));
    let mut falling: Vec<_> = falling.collect();
    falling.sort_unstable();
    falling.into_iter().map(|(_, _, at)| at).collect()
}
