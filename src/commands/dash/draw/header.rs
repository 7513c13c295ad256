//! The header of each view: the board, its connection and its totals.

use std::{iter, ops::Range};

use chrono::{DateTime, Utc};
use clap::ValueEnum as _;

use super::Canvas;
use crate::{
    commands::{
        dash::{
            keys::View,
            listing::ListingGroup,
            rates::Rate,
            state::{DashState, Link},
        },
        parts::problems::tone,
    },
    diagnosis::Standing,
    duration,
    job::Location,
    output::{Pieces, Text, Tone, shares, short, width},
    problem::Code,
};

/// The terminal height that leaves room for the rates.
const TALL: u16 = 16;

/// The marks of claimed, ready, and delayed or paused jobs in the bar.
const MARKS: [&str; 3] = ["█", "▒", "░"];

const MINUTE: usize = 60;

const EMPTY: usize = 14;

pub(super) fn height(state: &DashState) -> u16 {
    tabs_line(state) + 1 + u16::from(narrowed(state).is_some())
}

pub(super) fn tabs_line(state: &DashState) -> u16 {
    3 + u16::from(has_rates(state))
}

fn has_rates(state: &DashState) -> bool {
    !state.is_once && state.size.1 >= TALL
}

pub(super) fn draw(state: &DashState, canvas: &mut Canvas<'_>) {
    let columns = usize::from(state.size.0);
    let reached = reached(state);
    let taken = width(&reached);
    let board = Text::from(&state.board).shortened(columns.saturating_sub(taken + 4));
    let left = columns.saturating_sub(board.width() + taken + 6);
    let mut title = vec![(Tone::Strong, board), (Tone::Plain, Text::from("  "))];
    title.extend(bar(state, left.min(columns / 2)));
    canvas.line(1, 0, &title);
    canvas.right(0, &reached);
    canvas.line(1, 1, &counts(state));
    canvas.line(1, 2, &standing(state, columns));
    if has_rates(state) {
        canvas.line(1, 3, &rates(state, columns));
    }
    let y = tabs_line(state);
    draw_tabs(state, y, canvas);
    if let Some(narrowed) = narrowed(state) {
        let text = narrowed.cut(columns - 2);
        canvas.line(1, y + 1, &[(Tone::Warning, text)]);
    }
}

fn reached(state: &DashState) -> Pieces {
    let mut pieces = Pieces::new();
    let mut add = |tone, text: &str| pieces.push((tone, Text::from(format!("  {text}"))));
    if state.may_act {
        add(Tone::Bad, "ACT");
    }
    match &state.link {
        _ if state.is_once => {
            let time = state.now.format("%Y-%m-%d %H:%M:%SZ");
            add(Tone::Faint, &time.to_string());
        }
        _ if state.is_reading && !state.has_read => {
            let read = state.picture.rows().count();
            add(Tone::Warning, &format!("reading {read}"));
        }
        Link::Connecting => add(Tone::Warning, "connecting"),
        Link::Live => add(Tone::Good, "live"),
        Link::Polling => add(Tone::Warning, "polling"),
        Link::Away(since) => add(Tone::Bad, &format!("away {}", age(state, *since))),
    }
    pieces
}

fn bar(state: &DashState, columns: usize) -> Pieces {
    let counts = state.summary.figures.by_state();
    let tones = [Tone::Active, Tone::Plain, Tone::Faint];
    let shares = shares(&counts, columns)
        .into_iter()
        .zip(MARKS.iter().zip(tones));
    let pieces = shares.map(|(columns, (mark, tone))| (tone, Text::from(mark.repeat(columns))));
    pieces.collect()
}

fn age(state: &DashState, time: DateTime<Utc>) -> String {
    duration::between(time, state.now)
}

fn counts(state: &DashState) -> Pieces {
    let figures = &state.summary.figures;
    let snapshot = &state.picture.snapshot;
    let alive = snapshot.alive().count() as u64;
    let sees_trash = !state.hidden.contains(&Location::Trash);
    let conductors = if alive == 1 {
        "conductor"
    } else {
        "conductors"
    };
    let counts = [
        (true, figures.claimed, "claimed", Tone::Active),
        (true, figures.unclaimed, "unclaimed", Tone::Plain),
        (false, figures.backing_off, "backing off", Tone::Faint),
        (false, figures.paused, "paused", Tone::Faint),
        (sees_trash, state.summary.trashed, "trashed", Tone::Plain),
        (snapshot.sees_conductors, alive, conductors, Tone::Plain),
    ];
    let absent = state.summary.absent.iter();
    let absent = absent.map(|(word, count)| (false, *count, *word, Tone::Bad));
    // The bar has the same marks.
    let marks = MARKS.iter().chain(&MARKS[2..]);
    let marks = marks.map(|mark| format!("{mark} "));
    let marks = marks.chain(iter::repeat(String::new()));
    let gap = if state.size.0 < 100 { " " } else { "  " };
    let counts = counts.into_iter().chain(absent).zip(marks);
    let shown = counts.filter(|((stays, count, ..), _)| *stays || *count > 0);
    let shown = shown.flat_map(|((_, count, what, tone), mark)| {
        let count = Text::from(count.to_string());
        [
            (tone, Text::from(mark)),
            (Tone::Strong, count),
            (tone, Text::from(format!(" {what}{gap}"))),
        ]
    });
    let hidden = state.hidden.iter().map(|location| match location {
        Location::Trash => "no permission to read the trash",
        _ => "no permission to read the board",
    });
    // The reasons are long, and `doctor` prints them.
    let unseen = snapshot.unseen.iter();
    let unseen: Vec<_> = unseen.filter_map(|what| what.split(": ").next()).collect();
    let unseen = (!unseen.is_empty()).then(|| format!("unread: {}", unseen.join(", ")));
    let hidden = hidden.map(str::to_owned).chain(unseen);
    shown
        .chain(hidden.map(|what| (Tone::Bad, Text::from(format!("{what}  ")))))
        .collect()
}

fn standing(state: &DashState, columns: usize) -> Pieces {
    let figures = &state.summary.figures;
    let room = (columns - 3) / 2;
    let mut pieces = Pieces::new();
    for (what, job) in [
        ("oldest", &figures.oldest_unclaimed),
        ("held longest", &figures.longest_held),
    ] {
        let text = job
            .as_ref()
            .map_or_else(|| "-".to_owned(), |job| in_words(state, job));
        let text = Text::from(text).cut(room.saturating_sub(what.len() + 1));
        let space = room.saturating_sub(what.len() + 1 + text.width());
        pieces.push((Tone::Faint, Text::from(format!("{what} "))));
        pieces.push((Tone::Plain, text));
        pieces.push((Tone::Plain, Text::from(" ".repeat(space + 1))));
    }
    pieces
}

fn in_words(state: &DashState, job: &Standing) -> String {
    let owner = job.owner.as_ref().map(|owner| format!(" by {owner}"));
    let (age, uuid) = (age(state, job.since), short(&job.reference));
    format!("{age} {} {uuid}{}", job.name, owner.unwrap_or_default())
}

fn rates(state: &DashState, columns: usize) -> Pieces {
    let rates = [
        ("posted", Rate::Posted, Tone::Plain),
        ("finished", Rate::Finished, Tone::Good),
        ("failed", Rate::Failed, Tone::Bad),
    ];
    let mut pieces = Pieces::new();
    for (what, rate, tone) in rates {
        let per_minute = format!("{}/min ", state.rates.of(rate));
        let room = ((columns - EMPTY) / 3)
            .saturating_sub(what.len() + 11)
            .min(MINUTE);
        let line = state.rates.line(rate, room);
        pieces.push((Tone::Faint, Text::from(format!("{what} "))));
        pieces.push((Tone::Plain, Text::from(format!("{per_minute:<8}"))));
        pieces.push((tone, Text::from(format!("{line} "))));
    }
    let figures = &state.summary.figures;
    let jobs = figures.claimed + figures.unclaimed;
    if let Some(left) = state.rates.time_until_empty(jobs) {
        let left = format!("empty in {}", duration::brief(left));
        pieces.push((Tone::Strong, Text::from(left)));
    }
    pieces
}

pub(super) struct Tab {
    pub(super) view: View,
    pub(super) columns: Range<u16>,
    title: Text,
}

/// Returns the titles of the views with their places, shortened to fit.
pub(super) fn tabs(state: &DashState) -> Vec<Tab> {
    let figures = &state.summary.figures;
    let count = |view: View| match view {
        // As `doctor` counts them: its headline separates notes from problems.
        View::Problems => {
            let problems = state.summary.problems.iter();
            Some(problems.filter(|it| it.is_wrong()).count() as u64)
        }
        View::Jobs => {
            let unreadable = figures.of(Code::UnreadableRecord);
            Some(figures.unclaimed + figures.claimed + unreadable)
        }
        View::Claims => Some(figures.claimed),
        View::Trash => Some(state.summary.trashed),
        View::Conductors => Some(state.conductors().count() as u64),
        View::History | View::Events => None,
    };
    let titles = |is_short: bool, is_counted: bool| -> Vec<_> {
        let views = View::value_variants().iter().zip(1..);
        let titles = views.map(|(view, number)| {
            let mut title = view.title();
            // Cutting a shorter title would gain little.
            if is_short && *view != state.view && title.len() > 6 {
                title.truncate(4);
            }
            let count = count(*view).filter(|count| is_counted && *count > 0);
            let count = count.map_or_else(String::new, |count| format!(" {count}"));
            match *view == state.view {
                true => format!("[{number} {title}{count}]"),
                false => format!(" {number} {title}{count} "),
            }
        });
        titles.collect()
    };
    let forms = [(false, true), (true, true), (true, false)];
    let forms = forms.map(|(is_short, is_counted)| titles(is_short, is_counted));
    let fits = |form: &&Vec<String>| {
        form.iter().map(String::len).sum::<usize>() <= usize::from(state.size.0)
    };
    let form = forms.iter().find(fits).unwrap_or(&forms[2]);
    let mut x = 0;
    let tabs = View::value_variants()
        .iter()
        .zip(form)
        .map(|(view, title)| {
            let from = x;
            x += u16::try_from(title.len()).unwrap_or(0);
            Tab {
                view: *view,
                columns: from..x,
                title: Text::from(title),
            }
        });
    tabs.collect()
}

fn draw_tabs(state: &DashState, y: u16, canvas: &mut Canvas<'_>) {
    let worst = state.summary.problems.first().map(|it| it.severity);
    let mut end = 0;
    for tab in tabs(state) {
        let tone = match (tab.view == state.view, tab.view) {
            (false, View::Problems) => worst.map_or(Tone::Faint, tone),
            (false, _) => Tone::Faint,
            (true, _) => Tone::Strong,
        };
        canvas.line(tab.columns.start, y, &[(tone, tab.title)]);
        if tab.view == state.view {
            canvas.highlight(tab.columns.clone(), y);
        }
        end = tab.columns.end;
    }
    let (at, len) = (state.cursor().at + 1, state.len());
    let place = match state.is_once {
        true => len.to_string(),
        false => format!("{}/{len}", at.min(len)),
    };
    if usize::from(state.size.0) > usize::from(end) + place.len() + 1 {
        canvas.right(y, &[(Tone::Faint, Text::from(place))]);
    }
}

fn narrowed(state: &DashState) -> Option<Text> {
    let within = state.within.as_ref().map(|within| match within {
        ListingGroup::Of(owner) => {
            format!("of {}", owner.as_deref().unwrap_or("an unreadable owner"))
        }
        ListingGroup::Problem(_, title) | ListingGroup::Reason(title) => title.clone(),
        ListingGroup::On(_) => String::new(),
    });
    let filters = &state.picture.filters;
    let judges = !matches!(state.view, View::Problems | View::Conductors | View::Events);
    let filter = (!filters.is_empty()).then(|| match judges {
        true => format!("filter: {filters}"),
        false => format!("filter: {filters} (ignored in this view)"),
    });
    let parts: Vec<_> = within.into_iter().chain(filter).collect();
    (!parts.is_empty()).then(|| Text::from(parts.join("; ")))
}
