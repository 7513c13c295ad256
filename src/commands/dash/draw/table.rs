//! Draws the visible lines of the view.

use std::{borrow::Cow, ops::Range};

use super::{Canvas, GUTTER};
use crate::{
    commands::{
        conductors,
        dash::{
            cursor::{Anchor, Lines},
            keys::View,
            listing::RowOrder,
            row::DashRow,
            state::DashState,
            summary::RowGroup,
        },
        parts::problems,
        status,
    },
    diagnosis::Holder,
    duration,
    job::{Conductor, Entry, Location},
    output::{
        ABSENT, Cell, Column, Fit, JobColumns, JobView, Page, Pieces, Report as _, Row as _, Text,
        Tone, laid_out, listed, width,
    },
    problem::{Code, Problem, Severity},
};

/// The columns that disappear if all their cells are alike.
const DROPPED: [&str; 9] = [
    "priority", "held", "expires", "attempts", "waited", "took", "trashed", "by", "reason",
];

pub(super) fn draw(state: &DashState, body: Range<u16>, columns: u16, canvas: &mut Canvas<'_>) {
    let cursor = state.cursor();
    let height = usize::from(body.end - body.start).saturating_sub(1);
    let seen = cursor.top..state.len().min(cursor.top + height);
    if seen.is_empty() {
        let nothing = Text::from(nothing(state));
        canvas.line(GUTTER, body.start + 1, &[(Tone::Faint, nothing)]);
        return;
    }
    let room = usize::from(columns - GUTTER);
    let lines = laid(state, seen.clone(), room);
    canvas.line(GUTTER, body.start, &lines[0]);
    for ((at, line), y) in seen.zip(&lines[1..]).zip(body.start + 1..) {
        let is_marked =
            matches!(state.anchor(at), Some(Anchor::Job(place)) if state.marks.contains(&place));
        let is_chosen = at == cursor.at && !state.is_once;
        for (is_there, mark, x) in [(is_chosen, ">", 0), (is_marked, "*", 1)] {
            if is_there {
                canvas.line(x, y, &[(Tone::Strong, Text::from(mark))]);
            }
        }
        canvas.line(GUTTER, y, line);
        if is_chosen {
            canvas.highlight(0..columns, y);
        }
    }
}

pub(super) fn sorted_by(state: &DashState, x: u16) -> Option<RowOrder> {
    let top = state.cursor().top;
    let seen = top..state.len().min(top + state.lines);
    if !state.has_rows() || seen.is_empty() {
        return None;
    }
    let titles = laid(state, seen, usize::from(super::left_width(state) - GUTTER)).swap_remove(0);
    let mut end = usize::from(GUTTER);
    let title = titles.into_iter().find(|(_, text)| {
        end += text.width();
        usize::from(x) < end
    });
    let title = title?.1.as_str().to_lowercase();
    let title = title.split(' ').next()?;
    let mut orders = RowOrder::ALL.iter().copied();
    orders.find(|it| sorted(*it) == title)
}

fn sorted(order: RowOrder) -> &'static str {
    match order {
        RowOrder::Problems => "state",
        RowOrder::Rank => "",
        order => order.name(),
    }
}

/// Returns the mark and the tone of a verdict. The mark alone is enough, for terminals without colour.
pub(super) fn mark(code: Code) -> (&'static str, Tone) {
    match code {
        code if code.is_problem() => mark_of(code.severity()),
        Code::Running | Code::ClaimExpiresSoon => ("●", Tone::Active),
        Code::Ready | Code::Waiting => ("○", Tone::Plain),
        Code::Ended => ("✓", Tone::Good),
        _ => ("◌", Tone::Faint),
    }
}

pub(super) fn mark_of(severity: Severity) -> (&'static str, Tone) {
    match problems::tone(severity) {
        Tone::Bad => ("✗", Tone::Bad),
        Tone::Warning => ("!", Tone::Warning),
        tone => ("○", tone),
    }
}

fn marked((mark, tone): (&str, Tone), code: Code) -> Cell {
    Cell::toned(tone, format!("{mark} {}", code.name()))
}

fn laid(state: &DashState, seen: Range<usize>, room: usize) -> Vec<Pieces> {
    let now = state.now;
    let table = |columns: &[Column], rows: Vec<Vec<Cell>>| laid_out(columns, rows, Some(room));
    match state.shown() {
        Lines::Groups(groups) => {
            let rows = groups[seen].iter().map(|it| group(state, it));
            table(GROUPS, rows.collect())
        }
        Lines::Rows => {
            let first = state.picture.at(seen.start);
            let location = first.map_or(Location::Board, |(place, _)| place.0);
            let rows = seen.filter_map(|at| state.picture.at(at));
            let rows = rows.map(|(place, row)| (row.entry(place, now), Some(row)));
            jobs(state, location, room, rows)
        }
        Lines::History => {
            let history = state.history().skip(seen.start).take(seen.len());
            jobs(
                state,
                Location::History,
                room,
                history.map(|it| (it.clone(), None)),
            )
        }
        Lines::Problems => {
            let rows = state.summary.problems[seen].iter();
            table(PROBLEMS, rows.map(|it| problem(state, it)).collect())
        }
        Lines::Owners => {
            let owners = &state.summary.owners[seen];
            let rows = owners.iter().map(|of| {
                let mut cells = status::owner_cells(of, now);
                let is_renewed = of.conductor.is_some() && !of.is_dead && of.expires_in.is_some();
                if is_renewed {
                    cells[status::EXPIRES] = Cell::new("renewing");
                }
                cells
            });
            table(status::OWNERS, rows.collect())
        }
        Lines::Conductors => {
            let rows = state.conductors().skip(seen.start).take(seen.len());
            let rows = rows.map(|it| conductor(state, it).cells());
            table(conductors::COLUMNS, rows.collect())
        }
        Lines::Events => {
            let lines = state.events.range(seen).map(|(_, happening)| {
                let mut page = Page::new(None);
                happening.human(&mut page);
                let mut line: Pieces = page.into_lines().into_iter().flatten().collect();
                if width(&line) > room {
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
    let since = (state.now - state.snapshot_read)
        .to_std()
        .unwrap_or_default();
    let silence = of.silence.map(|silence| silence + since);
    let conductor = Conductor {
        silence,
        ..of.clone()
    };
    conductors::ListedConductor::new(conductor, state.now)
}

/// Lays out jobs; drops columns whose visible cells are all equal.
fn jobs<'a>(
    state: &DashState,
    location: Location,
    room: usize,
    rows: impl Iterator<Item = (Entry, Option<&'a DashRow>)>,
) -> Vec<Pieces> {
    let columns = JobColumns::in_dash(location);
    let names = columns.names();
    let rows = rows.map(|(entry, row)| {
        let view = JobView::of(&entry, state.now).under(&state.picture.snapshot.pauses);
        let mut cells = columns.row(view).cells();
        for (cell, name) in cells.iter_mut().zip(&names) {
            match (*name, row.and_then(DashRow::verdict)) {
                ("name", _) if cell.tone == Tone::Plain => cell.tone = Tone::Strong,
                ("uuid", _) => cell.tone = Tone::Faint,
                ("state", Some(code)) => *cell = marked(mark(code), code),
                ("outcome", _) if cell.tone == Tone::Plain => {
                    *cell = Cell::toned(Tone::Good, format!("✓ {}", cell.text.as_str()));
                }
                ("outcome", _) => cell.text = Text::from(format!("✗ {}", cell.text.as_str())),
                ("expires", Some(Code::Running)) if is_renewed(state, &entry) => {
                    *cell = Cell::new("renewing");
                }
                _ => {}
            }
        }
        cells
    });
    let rows: Vec<_> = rows.collect();
    let is_shown = |at: usize| {
        let text = |row: &[Cell]| row[at].text.as_str().to_owned();
        let first = rows.first().map(|row| text(row)).unwrap_or_default();
        let may_drop = first == ABSENT || (rows.len() > 2 && DROPPED.contains(&names[at]));
        !may_drop || rows.iter().any(|row| text(row) != first)
    };
    let shown: Vec<_> = (0..names.len()).map(is_shown).collect();
    let listing = &state.picture.listing;
    let sorted = sorted(listing.sort);
    let arrow = if listing.is_reversed { "▴" } else { "▾" };
    let shapes = columns.shapes().into_iter().map(|mut shape| {
        if state.has_rows() && shape.title == sorted {
            shape.title = format!("{} {arrow}", shape.title).into();
        }
        shape
    });
    let shapes = kept(shapes, &shown);
    let rows = rows.into_iter().map(|row| kept(row.into_iter(), &shown));
    laid_out(&shapes, rows.collect(), Some(room))
}

fn kept<T>(all: impl Iterator<Item = T>, shown: &[bool]) -> Vec<T> {
    all.zip(shown)
        .filter_map(|(it, is_shown)| is_shown.then_some(it))
        .collect()
}

fn is_renewed(state: &DashState, entry: &Entry) -> bool {
    entry.holding().is_some_and(|holding| {
        let (snapshot, owner) = (&state.picture.snapshot, &holding.owner);
        let holder = owner.as_ref();
        let holder = holder.map(|it| snapshot.holder(it, holding.end, holding.claimed_on));
        matches!(holder, Some(Holder::Conductor(_)))
    })
}

const PROBLEMS: &[Column] = &[
    Column::new("problem", Fit::Whole),
    Column::new("jobs", Fit::Number),
    Column::new("since", Fit::Number),
    Column::new("cause", Fit::Shrinks),
];

fn problem(state: &DashState, problem: &Problem) -> Vec<Cell> {
    let age = |since| duration::between(since, state.now);
    vec![
        marked(mark_of(problem.severity), problem.code),
        match problem.jobs {
            0 => Cell::toned(Tone::Faint, ABSENT),
            jobs => Cell::new(jobs.to_string()),
        },
        Cell::new(problem.since.map_or_else(|| ABSENT.to_owned(), age)),
        Cell::new(&problem.summary),
    ]
}

const GROUPS: &[Column] = &[
    Column::new("reason", Fit::Shrinks),
    Column::new("jobs", Fit::Number),
    Column::new("last", Fit::Number),
    Column::new("names", Fit::Shrinks).falling(Some(0)),
];

fn group(state: &DashState, of: &RowGroup) -> Vec<Cell> {
    let age = |last| duration::between(last, state.now);
    vec![
        Cell::toned(Tone::Strong, &of.reason),
        Cell::new(format!("×{}", of.jobs)),
        Cell::new(of.last.map_or_else(|| ABSENT.to_owned(), age)),
        Cell::new(listed(of.names.iter().map(String::as_str))),
    ]
}

fn nothing(state: &DashState) -> Cow<'static, str> {
    Cow::Borrowed(match state.view {
        View::Events => "no events yet",
        _ if !state.has_read => "reading the board…",
        View::Jobs | View::Claims if state.hidden.contains(&Location::Board) => {
            "no permission to read the board"
        }
        View::Trash if state.hidden.contains(&Location::Trash) => "no permission to read the trash",
        View::History if state.history.is_none() => "reading the history…",
        View::Conductors if !state.picture.snapshot.sees_conductors => {
            "the conductors cannot be read"
        }
        View::Conductors => "no conductor is running",
        View::Problems => {
            let unseen = state.hidden.len() + state.picture.snapshot.unseen.len();
            return format!("no problem found{}", problems::unchecked(unseen)).into();
        }
        _ if !state.picture.filters.is_empty() => "no job matches",
        _ if state.within.is_some() => "no jobs left",
        View::Jobs => "no jobs",
        View::Claims => "no job is claimed",
        View::Trash => "the trash is empty",
        View::History => "the history is empty",
    })
}
