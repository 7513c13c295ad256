//! Draws the visible lines of the view.

use std::ops::Range;

use super::{Canvas, GUTTER};
use crate::{
    commands::{
        conductors,
        dash::{
            listing::ListingGroup,
            state::{Anchor, DashState},
            summary::RowFailures,
            view::View,
        },
        status,
    },
    duration,
    job::{Conductor, Entry, Shelf},
    output::{
        Cell, Column, Fit, JobColumns, JobView, Page, Pieces, Report as _, Row as _, Text, Tone,
        laid_out,
    },
};

pub(super) fn draw(state: &DashState, body: Range<u16>, canvas: &mut Canvas<'_>) {
    let cursor = state.cursor();
    let height = usize::from(body.end - body.start).saturating_sub(1);
    let seen = cursor.top..state.len().min(cursor.top + height);
    if seen.is_empty() {
        let nothing = Text::from(nothing(state));
        canvas.line(GUTTER, body.start + 1, &[(Tone::Faint, nothing)]);
        return;
    }
    let room = usize::from(state.size.0 - GUTTER);
    let lines = laid(state, seen.clone(), room);
    canvas.line(GUTTER, body.start, &lines[0]);
    for ((at, line), y) in seen.zip(&lines[1..]).zip(body.start + 1..) {
        let is_marked = match state.anchor(at) {
            Some(Anchor::Job(place)) => state.marks.contains(&place),
            _ => false,
        };
        let is_chosen = at == cursor.at && !state.is_once;
        let marks = [(is_chosen, '>'), (is_marked, '*')];
        let gutter: String = marks
            .map(|(is, mark)| if is { mark } else { ' ' })
            .iter()
            .collect();
        canvas.line(0, y, &[(Tone::Strong, Text::from(gutter))]);
        canvas.line(GUTTER, y, line);
        if is_chosen {
            canvas.highlight(0..state.size.0, y);
        }
    }
}

fn laid(state: &DashState, seen: Range<usize>, room: usize) -> Vec<Pieces> {
    let now = state.now;
    let jobs = |shelf, entries: &mut dyn Iterator<Item = Entry>| {
        let columns = JobColumns::usual(shelf);
        let rows = entries.map(|entry| {
            let view = JobView::of(&entry, now).under(&state.pauses);
            columns.row(view).cells()
        });
        laid_out(&columns.shapes(), rows.collect(), Some(room))
    };
    let table = |columns: &[Column], rows: Vec<Vec<Cell>>| laid_out(columns, rows, Some(room));
    match state.view {
        _ if state.has_rows() => {
            let shelf = match state.picture.listing().which {
                ListingGroup::On(shelf) => shelf,
                _ => Shelf::Board,
            };
            let rows = seen.filter_map(|at| state.picture.at(at));
            jobs(shelf, &mut rows.map(|(place, row)| row.entry(place, now)))
        }
        View::History => {
            let past = state.past.iter().flatten().cloned();
            jobs(Shelf::Past, &mut past.skip(seen.start).take(seen.len()))
        }
        View::Claims => {
            let owners = &state.summary.owners[seen];
            let rows = owners.iter().map(|of| status::owner_cells(of, now));
            table(status::OWNERS, rows.collect())
        }
        View::Failures => {
            let failures = &state.summary.failures[seen];
            table(
                FAILURES,
                failures.iter().map(|of| failed(state, of)).collect(),
            )
        }
        View::Conductors => {
            let rows = state.conductors[seen].iter();
            let rows = rows.map(|it| conductor(state, it).cells());
            table(conductors::COLUMNS, rows.collect())
        }
        View::Events | View::Jobs | View::Trash => {
            let lines = state.events.range(seen).map(|(_, happening)| {
                let mut page = Page::new(None);
                happening.human(&mut page);
                let mut line: Pieces = page.into_lines().into_iter().flatten().collect();
                if line.iter().map(|(_, text)| text.width()).sum::<usize>() > room {
                    let is_fence = |text: &Text| text.as_str().starts_with("  fence ");
                    line.retain(|(tone, text)| *tone != Tone::Faint || !is_fence(text));
                }
                line
            });
            let title = Text::from("TIME (UTC)    EVENT");
            let titles = vec![(Tone::Strong, title)];
            [titles].into_iter().chain(lines).collect()
        }
    }
}

pub(super) fn conductor(state: &DashState, of: &Conductor) -> conductors::ListedConductor {
    let since = (state.now - state.conductors_read)
        .to_std()
        .unwrap_or_default();
    let silence = of.silence.map(|silence| silence + since);
    let conductor = Conductor {
        silence,
        ..of.clone()
    };
    conductors::ListedConductor::new(conductor, state.now)
}

const FAILURES: &[Column] = &[
    Column::new("failure", Fit::Shrinks),
    Column::new("jobs", Fit::Number),
    Column::new("failures", Fit::Number).falling(Some(1)),
    Column::new("last", Fit::Number),
    Column::new("names", Fit::Shrinks).falling(Some(0)),
];

fn failed(state: &DashState, of: &RowFailures) -> Vec<Cell> {
    let names: Vec<_> = of.names.iter().map(String::as_str).collect();
    vec![
        Cell::toned(Tone::Bad, &of.signature),
        Cell::new(of.jobs.to_string()),
        Cell::new(of.failures.to_string()),
        Cell::new(duration::between(of.last, state.now)),
        Cell::new(names.join(", ")),
    ]
}

fn nothing(state: &DashState) -> &'static str {
    match state.view {
        View::Events => "no events yet",
        _ if !state.has_read => "reading the board…",
        View::Jobs | View::Claims if state.hidden.contains(&Shelf::Board) => {
            "no permission to read the board"
        }
        View::Trash if state.hidden.contains(&Shelf::Trash) => "no permission to read the trash",
        View::History if state.past.is_none() => "reading the history…",
        View::Conductors => "no conductor is running",
        _ if !state.picture.filters.is_empty() => "no job matches",
        _ if state.within.is_some() => "no jobs left",
        View::Jobs => "no jobs",
        View::Claims => "no job is claimed",
        View::Failures => "no job on the board or in the trash has failed",
        View::Trash => "the trash is empty",
        View::History => "the history is empty",
    }
}
