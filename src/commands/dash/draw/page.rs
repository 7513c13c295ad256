//! The page of a job with its explanation, or of a conductor.

use std::ops::Range;

use super::{Canvas, table::conductor};
use crate::{
    commands::dash::state::{DashState, Opened, Overlay},
    output::{JobView, Page, Pieces, Report as _, Text, Tone},
};

/// The width from which the explanation stands beside the job.
const WIDE: u16 = 120;

pub(super) fn draw(state: &DashState, body: Range<u16>, canvas: &mut Canvas<'_>) {
    let height = usize::from(body.end - body.start);
    let columns = columns(state);
    let longest = columns.iter().map(Vec::len).max().unwrap_or_default();
    let from = state.scroll.min(longest.saturating_sub(height));
    let width = state.size.0 / u16::try_from(columns.len().max(1)).unwrap_or(1);
    for (column, x) in columns.iter().zip((1..).step_by(usize::from(width))) {
        for (line, y) in column.iter().skip(from).zip(body.clone()) {
            canvas.line(x, y, line);
        }
    }
    if longest > height {
        let place = format!("{}-{}/{longest}", from + 1, (from + height).min(longest));
        canvas.right(body.end, &[(Tone::Faint, Text::from(place))]);
    }
}

pub(super) fn len(state: &DashState) -> usize {
    columns(state)
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or_default()
}

fn columns(state: &DashState) -> Vec<Vec<Pieces>> {
    let whole = usize::from(state.size.0).saturating_sub(2);
    match &state.overlay {
        Overlay::Job(opened) if state.size.0 >= WIDE => {
            let half = usize::from(state.size.0 / 2).saturating_sub(2);
            vec![job(state, opened, half), explained(opened, half)]
        }
        Overlay::Job(opened) => {
            // The problem comes first: the rest may be long.
            let (job, explained) = (job(state, opened, whole), explained(opened, whole));
            vec![[explained, vec![Pieces::new()], job].concat()]
        }
        Overlay::Conductor(name) => {
            let known = state.conductors.iter().find(|it| it.name == *name);
            vec![match known {
                Some(known) => lines(whole, |page| conductor(state, known).human(page)),
                None => said(whole, &[(Tone::Faint, "this conductor no longer runs")]),
            }]
        }
        _ => Vec::new(),
    }
}

fn job(state: &DashState, opened: &Opened, columns: usize) -> Vec<Pieces> {
    match &opened.found {
        None => said(columns, &[(Tone::Faint, "looking…")]),
        Some(Err(why)) => said(columns, &[(Tone::Bad, why)]),
        Some(Ok(entry)) => {
            let view = JobView::of(entry, state.now).under(&state.pauses);
            lines(columns, |page| view.human(page))
        }
    }
}

fn explained(opened: &Opened, columns: usize) -> Vec<Pieces> {
    match &opened.explained {
        None => said(columns, &[(Tone::Faint, "explaining…")]),
        Some(Err(why)) => said(columns, &[(Tone::Bad, why)]),
        Some(Ok(explanation)) => lines(columns, |page| explanation.human(page)),
    }
}

pub(super) fn said(columns: usize, sentences: &[(Tone, &str)]) -> Vec<Pieces> {
    lines(columns, |page| {
        for (tone, text) in sentences {
            page.line().add(*tone, text);
        }
    })
}

fn lines(columns: usize, write: impl FnOnce(&mut Page)) -> Vec<Pieces> {
    let mut page = Page::new(Some((columns, 0)));
    write(&mut page);
    page.into_lines()
}
