//! Draws a frame of the dashboard from its state.
//!
//! All output goes through [`Canvas`], which takes safe text only, and only visible rows are drawn.

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

use super::{
    cursor::Lines,
    keys::{View, known},
    listing::{ListingGroup, RowOrder},
    state::{DashState, Overlay},
};
use crate::output::{Text, Tone, width};

pub(super) const SMALLEST: (u16, u16) = (60, 12);

const GUTTER: u16 = 2;

const PLACE: usize = 12;

#[derive(Debug, Clone, Copy)]
pub(super) struct DrawStyle {
    pub(super) is_ascii: bool,
    pub(super) is_coloured: bool,
}

pub(super) fn lines(state: &DashState) -> usize {
    if let Overlay::Help = state.overlay {
        return usize::from(state.size.1).saturating_sub(2).max(1);
    }
    let body = body(state);
    let titles = u16::from(!state.is_page());
    usize::from((body.end - body.start).saturating_sub(titles)).max(1)
}

pub(super) fn fit(state: &mut DashState) {
    let opened = match state.overlay {
        Overlay::Help => overlay::keys(state),
        _ => page::page(state),
    };
    state.fit(lines(state), opened.len());
}

fn body(state: &DashState) -> Range<u16> {
    let below = match &state.overlay {
        Overlay::Input(field) => 1 + overlay::under(state, field).len() as u16,
        _ => u16::from(!state.is_once),
    };
    let top = header::height(state);
    top..state.size.1.saturating_sub(below).max(top)
}

pub(super) fn draw(state: &DashState, look: DrawStyle, buffer: &mut Buffer) {
    let mut canvas = Canvas(buffer);
    let (columns, rows) = state.size;
    let (least_columns, least_rows) = SMALLEST;
    if columns < least_columns || (rows < least_rows && !state.is_once) {
        let text = format!(
            "jobboard dash needs a terminal of {least_columns}x{least_rows}; this one has {columns}x{rows}."
        );
        let lines = page::wrapped_sentences(usize::from(columns), &[(Tone::Plain, &text)]);
        for (line, y) in lines.iter().zip(0..rows) {
            canvas.line(0, y, line);
        }
    } else {
        header::draw(state, &mut canvas);
        let body = body(state);
        match state.is_page() {
            true => page::draw(state, body, &mut canvas),
            false => {
                let left = left_width(state);
                table::draw(state, body.clone(), left, &mut canvas);
                if left < columns {
                    page::draw_aside(state, body, left, &mut canvas);
                }
            }
        }
        footer(state, &mut canvas);
        overlay::draw(state, &mut canvas);
    }
    plain(look, canvas.0);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Tab(View),
    Title(RowOrder),
    Line(usize),
}

pub(super) fn hit(state: &DashState, x: u16, y: u16) -> Option<Target> {
    if !matches!(state.overlay, Overlay::None) || state.size.0 < SMALLEST.0 {
        return None;
    }
    let body = body(state);
    if y == header::tabs_line(state) {
        let mut tabs = header::tabs(state).into_iter();
        let tab = tabs.find(|it| it.columns.contains(&x))?;
        return Some(Target::Tab(tab.view));
    }
    if !body.contains(&y) || x >= left_width(state) {
        return None;
    }
    match usize::from(y - body.start) {
        0 => table::sorted_by(state, x).map(Target::Title),
        line => {
            let at = state.cursor().top + line - 1;
            (at < state.len()).then_some(Target::Line(at))
        }
    }
}

pub(super) fn left_width(state: &DashState) -> u16 {
    match state.has_aside() {
        true => state.size.0 * 3 / 5,
        false => state.size.0,
    }
}

fn footer(state: &DashState, canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    if state.is_once || matches!(state.overlay, Overlay::Input(_)) {
        return;
    }
    let room = usize::from(columns) - 2;
    if let Some((tone, text)) = &state.message {
        let lines = page::wrapped_sentences(room, &[(*tone, text.as_str())]);
        let from = rows
            .saturating_sub(u16::try_from(lines.len()).unwrap_or(rows))
            .max(rows / 2);
        for (line, y) in lines.iter().zip(from..rows) {
            canvas.wipe(0..columns, y);
            canvas.line(1, y, line);
        }
        return;
    }
    let mut keys = keys(state);
    // The last keys lead to the others and to the exit. They stay, and so do the first.
    let is_first_kept = state.is_page() || !state.marks.is_empty();
    let room = room + 2 - if state.is_page() { PLACE } else { 0 };
    while width(&keys.concat()) > room && keys.len() > 3 {
        keys.remove(usize::from(is_first_kept));
    }
    let y = rows - 1;
    let end = canvas.line(1, y, &keys.concat());
    let listing = &state.picture.listing;
    let way = if listing.is_reversed {
        ", reversed"
    } else {
        ""
    };
    let sort = Text::from(format!("by {}{way}", listing.sort.name()));
    let has_room = usize::from(columns) > usize::from(end) + sort.width();
    if state.has_rows() && !state.is_page() && has_room {
        canvas.right(y, &[(Tone::Faint, sort)]);
    }
}

fn keys(state: &DashState) -> Vec<[(Tone, Text); 2]> {
    let mut keys = Vec::new();
    let is_page = state.is_page();
    if !state.marks.is_empty() && !is_page {
        let hidden = match state.marks.len() - state.marked().len() {
            0 => String::new(),
            hidden => format!(" ({hidden} hidden)"),
        };
        let marked = format!("{} marked{hidden}  ", state.marks.len());
        keys.push([
            (Tone::Strong, Text::from(marked)),
            (Tone::Plain, Text::default()),
        ]);
    }
    let is_within = matches!(state.within, Some(ListingGroup::Problem(..)));
    let known = known(state.may_act).filter(|(keys, _, is_shown, _)| match (is_page, *keys) {
        (true, "Enter Right" | "/" | "x") => false,
        (true, "Esc Left") => true,
        (false, "F") => state.view == View::Problems && (is_within || state.len() > 0),
        (false, "x" | "A" | "T" | "R" | "C") => state.has_rows(),
        // The keys of actions need the room.
        (false, "Enter Right") => !state.may_act || !state.has_rows(),
        (false, "Space") => matches!(state.shown(), Lines::Groups(_)),
        (false, "Esc Left") => !state.marks.is_empty() || !state.picture.filters.is_empty(),
        _ => *is_shown,
    });
    keys.extend(known.map(|(keys, does, ..)| {
        let first = keys.split(' ').next().unwrap_or_default();
        let does = match (*keys, is_page) {
            ("Esc Left", false) if !state.marks.is_empty() => "unmark",
            ("Esc Left", false) => "clear filter",
            _ => does.split(';').next().unwrap_or_default(),
        };
        let does = Text::from(format!(" {does}  "));
        [(Tone::Strong, Text::from(first)), (Tone::Faint, does)]
    }));
    keys
}

fn plain(look: DrawStyle, buffer: &mut Buffer) {
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
                "▇" | "█" | "●" => "#",
                "▒" | "○" => "o",
                "░" | "◌" => ".",
                "✗" | "×" => "x",
                "✓" => "+",
                "▾" => "v",
                "▴" => "^",
                _ => "?",
            });
        }
    }
}

pub(super) struct Canvas<'a>(&'a mut Buffer);

impl Canvas<'_> {
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

    fn right(&mut self, y: u16, pieces: &[(Tone, Text)]) {
        let width = u16::try_from(width(pieces)).unwrap_or(u16::MAX);
        let x = self.0.area.width.saturating_sub(width + 1);
        // Existing text stays readable.
        if x > 0 {
            self.line(x - 1, y, &[(Tone::Plain, Text::from(" "))]);
        }
        self.line(x, y, pieces);
    }

    fn highlight(&mut self, x: Range<u16>, y: u16) {
        for x in x {
            if let Some(cell) = self.0.cell_mut((x, y)) {
                cell.fg = Color::Reset;
                cell.modifier.remove(Modifier::DIM);
                cell.modifier.insert(Modifier::REVERSED);
            }
        }
    }

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

/// Uses the terminal's own colours, which fit its background.
fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
        Tone::Faint => Style::new().add_modifier(Modifier::DIM),
        Tone::Active => Style::new().fg(Color::LightBlue),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Warning => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}
