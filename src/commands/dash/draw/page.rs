//! All that is known of a job, with what there is to explain beside it; or of a conductor.

use std::ops::Range;

use super::{Canvas, table::conductor};
use crate::{
    commands::dash::state::{Opened, Overlay, State},
    output::{JobView, Page, Pieces, Report as _, Text, Tone},
};

/// From which width on what is explained stands beside the job, and not below it.
const WIDE: u16 = 120;

pub(super) fn draw(state: &State, body: Range<u16>, canvas: &mut Canvas<'_>) {
    let height = usize::from(body.end - body.start);
    let columns = page(state);
    let longest = columns.iter().map(Vec::len).max().unwrap_or_default();
    let scroll = scrolled(state).min(longest.saturating_sub(height));
    let width = state.size.0 / u16::try_from(columns.len().max(1)).unwrap_or(1);
    for (column, x) in columns.iter().zip((1..).step_by(usize::from(width))) {
        for (line, y) in column.iter().skip(scroll).zip(body.clone()) {
            canvas.line(x, y, line);
        }
    }
    if longest > height {
        let place = format!(
            "{}-{}/{longest}",
            scroll + 1,
            (scroll + height).min(longest)
        );
        canvas.right(body.end, &[(Tone::Faint, Text::from(place))]);
    }
}

fn scrolled(state: &State) -> usize {
    match &state.overlay {
        Overlay::Job(opened) => opened.scroll,
        Overlay::Conductor(_, scroll) => *scroll,
        _ => 0,
    }
}

/// Returns what is opened, in columns of lines that fit.
pub(in crate::commands::dash) fn page(state: &State) -> Vec<Vec<Pieces>> {
    let whole = usize::from(state.size.0).saturating_sub(2);
    match &state.overlay {
        Overlay::Job(opened) if state.size.0 >= WIDE => {
            let half = usize::from(state.size.0 / 2).saturating_sub(2);
            let (job, explained) = (job(state, opened, half), explained(opened, half));
            vec![wrapped(job, half), wrapped(explained, half)]
        }
        Overlay::Job(opened) => {
            // What is the matter comes first: the rest may be long.
            let (job, explained) = (job(state, opened, whole), explained(opened, whole));
            let lines = [explained, vec![Pieces::new()], job].concat();
            vec![wrapped(lines, whole)]
        }
        Overlay::Conductor(name, _) => {
            let known = state.conductors.iter().find(|it| it.name == *name);
            let lines = match known {
                Some(known) => lines(whole, |page| conductor(state, known).human(page)),
                None => said(Tone::Faint, "it is not at work any more"),
            };
            vec![wrapped(lines, whole)]
        }
        _ => Vec::new(),
    }
}

fn job(state: &State, opened: &Opened, columns: usize) -> Vec<Pieces> {
    match &opened.found {
        None => said(Tone::Faint, "looking…"),
        Some(Err(why)) => said(Tone::Bad, why),
        Some(Ok(entry)) => {
            let view = JobView::of(entry, state.now).under(&state.pauses);
            lines(columns, |page| view.human(page))
        }
    }
}

fn explained(opened: &Opened, columns: usize) -> Vec<Pieces> {
    match &opened.explained {
        None => said(Tone::Faint, "explaining…"),
        Some(Err(why)) => said(Tone::Bad, why),
        Some(Ok(explanation)) => lines(columns, |page| explanation.human(page)),
    }
}

fn said(tone: Tone, text: &str) -> Vec<Pieces> {
    vec![vec![(tone, Text::from(text))]]
}

fn lines(columns: usize, write: impl FnOnce(&mut Page)) -> Vec<Pieces> {
    let mut page = Page::new(false, Some((columns, 0)));
    write(&mut page);
    page.into_lines()
}

/// Breaks lines so that each fits.
pub(super) fn wrapped(lines: Vec<Pieces>, columns: usize) -> Vec<Pieces> {
    // On no columns at all nothing would ever fit.
    let columns = columns.max(1);
    let mut fitting = Vec::new();
    for line in lines {
        let (mut row, mut left) = (Pieces::new(), columns);
        for (tone, mut text) in line {
            while text.width() > left {
                let (head, rest) = text.split(left);
                row.push((tone, head));
                fitting.push(std::mem::take(&mut row));
                (text, left) = (rest, columns);
            }
            left -= text.width();
            row.push((tone, text));
        }
        fitting.push(row);
    }
    fitting
}
