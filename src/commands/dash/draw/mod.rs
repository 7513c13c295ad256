//! How the dashboard looks: a frame, made of nothing but its state.
//!
//! All that is written goes through [`Canvas`], which takes safe text alone, and no more of the rows
//! than are seen.

mod header;
mod overlay;
mod page;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier, Style},
};

pub(super) use self::page::page;
use super::{
    keys::{KEYS, acts},
    state::{Overlay, State},
};
use crate::output::{Pieces, Text, Tone};

/// The smallest terminal on which there is something to be seen.
const SMALLEST: (u16, u16) = (60, 12);

/// How wide what stands before each line is: whether it is chosen, and whether it is marked.
const GUTTER: u16 = 2;

/// How many characters are used, and whether colours are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) is_ascii: bool,
    pub(super) is_coloured: bool,
}

/// Returns how many lines of a view are seen at once.
pub(super) fn lines(state: &State) -> usize {
    let body = body(state);
    let titles = u16::from(!matches!(
        state.overlay,
        Overlay::Job(_) | Overlay::Conductor(..)
    ));
    usize::from((body.end - body.start).saturating_sub(titles)).max(1)
}

/// Returns the lines of the screen between what is above the view and what is below it.
fn body(state: &State) -> Range<u16> {
    let below = match state.overlay {
        Overlay::Filter(_) => 3,
        _ => u16::from(!state.is_once),
    };
    let top = header::height(state);
    top..state.size.1.saturating_sub(below).max(top)
}

/// Draws a frame.
pub(super) fn draw(state: &State, look: Look, buffer: &mut Buffer) {
    let mut canvas = Canvas(buffer);
    let (columns, rows) = state.size;
    let (least_columns, least_rows) = SMALLEST;
    if columns < least_columns || (rows < least_rows && !state.is_once) {
        let text = format!(
            "jobboard dash takes a terminal of {least_columns}x{least_rows}; this one has {columns}x{rows}."
        );
        let lines = page::wrapped(
            vec![vec![(Tone::Plain, Text::from(text))]],
            usize::from(columns),
        );
        for (line, y) in lines.iter().zip(0..rows) {
            canvas.line(0, y, line);
        }
    } else {
        header::draw(state, &mut canvas);
        let body = body(state);
        match &state.overlay {
            Overlay::Job(_) | Overlay::Conductor(..) => page::draw(state, body, &mut canvas),
            _ => table::draw(state, body, &mut canvas),
        }
        footer(state, &mut canvas);
        overlay::draw(state, &mut canvas);
    }
    plain(look, canvas.0);
}

/// Draws the bottom line: what there is to say, or else what can be typed.
fn footer(state: &State, canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    let y = rows - 1;
    if state.is_once || matches!(state.overlay, Overlay::Filter(_)) {
        return;
    }
    if let Some((tone, text)) = &state.message {
        canvas.line(1, y, &[(*tone, text.cut(usize::from(columns) - 2))]);
        return;
    }
    let mut line = Pieces::new();
    if !state.marks.is_empty() {
        let hidden = state.marks.len() - state.marked().len();
        let hidden = if hidden > 0 {
            format!(" ({hidden} not shown here)")
        } else {
            String::new()
        };
        let marked = format!("{} marked{hidden}  ", state.marks.len());
        line.push((Tone::Strong, Text::from(marked)));
    }
    let is_page = matches!(state.overlay, Overlay::Job(_) | Overlay::Conductor(..));
    let known = KEYS.iter().filter(|keys| state.may_act || !acts(keys));
    let known = known.filter(|(keys, _, is_told, _)| match (is_page, *keys) {
        (true, "Enter Right" | "/" | "x") => false,
        (true, "Esc Left") => true,
        (true, "y") => !state.may_act,
        // Those that do something need the room.
        (false, "Enter Right") => !state.may_act,
        _ => *is_told,
    });
    for (keys, does, ..) in known {
        let first = keys.split(' ').next().unwrap_or_default();
        line.push((Tone::Strong, Text::from(first)));
        let does = does.split(';').next().unwrap_or_default();
        line.push((Tone::Faint, Text::from(format!(" {does}  "))));
    }
    let end = canvas.line(1, y, &line);
    let lens = state.picture.lens();
    let way = if lens.is_reversed { ", reversed" } else { "" };
    let sort = Text::from(format!("by {}{way}", lens.sort.name()));
    let has_room = usize::from(columns) > usize::from(end) + sort.width();
    if state.has_rows() && !is_page && has_room {
        canvas.right(y, &[(Tone::Faint, sort)]);
    }
}

/// Takes away what the terminal is not to show.
fn plain(look: Look, buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !look.is_coloured {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
        if look.is_ascii && !cell.symbol().is_ascii() {
            cell.set_symbol(match cell.symbol() {
                "…" => "~",
                "─" => "-",
                "│" => "|",
                "┌" | "┐" | "└" | "┘" => "+",
                "▁" => "_",
                "▂" | "▃" => ".",
                "▄" | "▅" => ":",
                "▆" => "+",
                "▇" | "█" => "#",
                _ => "?",
            });
        }
    }
}

/// What is drawn upon; nothing else writes to a frame.
pub(super) struct Canvas<'a>(&'a mut Buffer);

impl Canvas<'_> {
    /// Writes a line from there on, and returns where it ends.
    fn line(&mut self, x: u16, y: u16, pieces: &[(Tone, Text)]) -> u16 {
        if y >= self.0.area.height {
            return x;
        }
        let write = |x: u16, (tone, text): &(Tone, Text)| {
            if x >= self.0.area.width {
                return x;
            }
            self.0
                .set_stringn(x, y, text.as_str(), usize::MAX, style(*tone))
                .0
        };
        pieces.iter().fold(x, write)
    }

    /// Writes a line that ends at the right border.
    fn right(&mut self, y: u16, pieces: &[(Tone, Text)]) {
        let width: usize = pieces.iter().map(|(_, text)| text.width()).sum();
        let width = u16::try_from(width).unwrap_or(u16::MAX);
        let x = self.0.area.width.saturating_sub(width + 1);
        // What is there already stays readable.
        if x > 0 {
            self.line(x - 1, y, &[(Tone::Plain, Text::from(" "))]);
        }
        self.line(x, y, pieces);
    }

    /// Has a part of a line stand out, whatever colours it has.
    fn highlight(&mut self, x: Range<u16>, y: u16) {
        for x in x {
            if let Some(cell) = self.0.cell_mut((x, y)) {
                cell.fg = Color::Reset;
                cell.modifier.remove(Modifier::DIM);
                cell.modifier.insert(Modifier::REVERSED);
            }
        }
    }

    /// Wipes a part of a line, and a character that reaches into it.
    fn wipe(&mut self, x: Range<u16>, y: u16) {
        let before = x.start.saturating_sub(1);
        let reaches = |cell: &&mut Cell| Text::from(cell.symbol()).width() > 1;
        if let Some(cell) = self.0.cell_mut((before, y)).filter(reaches) {
            cell.reset();
        }
        for x in x {
            if let Some(cell) = self.0.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
}

/// Returns the look of a tone: the terminal's own colours, which suit its background.
fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Busy => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}
