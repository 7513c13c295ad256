//! The header of each view: the board, its connection and its totals.

use chrono::{DateTime, Utc};
use clap::ValueEnum as _;

use super::{Canvas, overlay::board};
use crate::{
    commands::dash::{
        listing::ListingGroup,
        rates::Rate,
        state::{DashState, Link},
        view::View,
    },
    diagnosis::{Standing, is_silent},
    duration,
    job::Shelf,
    output::{Pieces, Text, Tone, short},
    problem::Code,
};

/// The terminal height that leaves room for the rates.
const TALL: u16 = 16;

const MINUTE: usize = 60;

pub(super) fn height(state: &DashState) -> u16 {
    4 + u16::from(has_rates(state)) + u16::from(narrowed(state).is_some())
}

fn has_rates(state: &DashState) -> bool {
    !state.is_once && state.size.1 >= TALL
}

pub(super) fn draw(state: &DashState, canvas: &mut Canvas<'_>) {
    let columns = usize::from(state.size.0);
    let reached = reached(state);
    let taken: usize = reached.iter().map(|(_, text)| text.width()).sum();
    let board = Text::from(board(state)).shortened(columns.saturating_sub(taken + 4));
    canvas.line(1, 0, &[(Tone::Strong, board)]);
    canvas.right(0, &reached);
    canvas.line(1, 1, &counts(state));
    canvas.line(1, 2, &standing(state, columns));
    let mut y = 3;
    if has_rates(state) {
        canvas.line(1, y, &rates(state, columns));
        y += 1;
    }
    tabs(state, y, canvas);
    if let Some(narrowed) = narrowed(state) {
        let text = narrowed.cut(columns - 2);
        canvas.line(1, y + 1, &[(Tone::Warning, text)]);
    }
}

fn reached(state: &DashState) -> Pieces {
    let mut pieces = Pieces::new();
    let mut add = |tone, text: &str| pieces.push((tone, Text::from(format!("  {text}"))));
    if state.is_paused {
        add(Tone::Warning, "PAUSED");
    }
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

fn age(state: &DashState, time: DateTime<Utc>) -> String {
    duration::between(time, state.now)
}

fn counts(state: &DashState) -> Pieces {
    let figures = &state.summary.figures;
    let silent = state.conductors.iter().filter(|it| is_silent(it)).count() as u64;
    let alive = state.conductors.len() as u64 - silent;
    let trashed = match state.summary.trashed {
        0 => Tone::Plain,
        _ => Tone::Bad,
    };
    let sees_trash = !state.hidden.contains(&Shelf::Trash);
    let conductors = if alive == 1 {
        "conductor"
    } else {
        "conductors"
    };
    let counts = [
        (true, figures.unclaimed, "unclaimed", Tone::Good),
        (true, figures.claimed, "claimed", Tone::Warning),
        (sees_trash, state.summary.trashed, "trashed", trashed),
        (true, alive, conductors, Tone::Plain),
        (false, figures.of(Code::OwnerDead), "owner dead", Tone::Bad),
        (
            false,
            figures.of(Code::UnreadableRecord),
            "unreadable",
            Tone::Bad,
        ),
        (false, silent, "silent", Tone::Bad),
        (false, figures.backing_off, "backing off", Tone::Plain),
    ];
    let gap = if state.size.0 < 80 { " " } else { "  " };
    let told = counts
        .into_iter()
        .filter(|(stays, count, ..)| *stays || *count > 0);
    let told = told.flat_map(|(_, count, what, tone)| {
        let count = Text::from(count.to_string());
        [
            (Tone::Strong, count),
            (tone, Text::from(format!(" {what}{gap}"))),
        ]
    });
    let hidden = state.hidden.iter().map(|shelf| match shelf {
        Shelf::Trash => "no permission to read the trash",
        _ => "no permission to read the board",
    });
    told.chain(hidden.map(|what| (Tone::Bad, Text::from(what))))
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
        let told = format!("{:.1}/s ", state.rates.of(rate));
        let room = (columns / 3).saturating_sub(what.len() + 11).min(MINUTE);
        let line = state.rates.line(rate, room);
        pieces.push((Tone::Faint, Text::from(format!("{what} "))));
        pieces.push((Tone::Plain, Text::from(format!("{told:<8}"))));
        pieces.push((tone, Text::from(format!("{line} "))));
    }
    pieces
}

fn tabs(state: &DashState, y: u16, canvas: &mut Canvas<'_>) {
    let (at, len) = (state.cursor().at + 1, state.len());
    let place = match state.is_once {
        true => len.to_string(),
        false => format!("{}/{len}", at.min(len)),
    };
    let columns = usize::from(state.size.0);
    let titles = View::value_variants()
        .iter()
        .map(|view| view.title().0.len());
    let is_narrow = titles.map(|title| title + 4).sum::<usize>() > columns;
    let mut x = 0;
    for (view, number) in View::value_variants().iter().zip(1..) {
        let is_shown = *view == state.view;
        let (title, least) = view.title();
        let title = match (is_shown, is_narrow) {
            (true, _) => format!("[{number} {title}]"),
            (false, true) => format!(" {number} {}", &title[..least]),
            (false, false) => format!(" {number} {title} "),
        };
        let tone = if is_shown { Tone::Strong } else { Tone::Faint };
        let end = canvas.line(x, y, &[(tone, Text::from(title))]);
        if is_shown {
            canvas.highlight(x..end, y);
        }
        x = end;
    }
    if columns > usize::from(x) + place.len() + 1 {
        canvas.right(y, &[(Tone::Faint, Text::from(place))]);
    }
}

fn narrowed(state: &DashState) -> Option<Text> {
    let within = state.within.as_ref().map(|within| match within {
        ListingGroup::Of(owner) => {
            format!("of {}", owner.as_deref().unwrap_or("an unreadable owner"))
        }
        ListingGroup::Failed(signature) => format!("failed: {signature}"),
        ListingGroup::On(_) => String::new(),
    });
    let filters = &state.picture.filters;
    let judges = !matches!(state.view, View::Conductors | View::Events);
    let filter = (!filters.is_empty()).then(|| match judges {
        true => format!("filter: {filters}"),
        false => format!("filter: {filters} (ignored in this view)"),
    });
    let parts: Vec<_> = within.into_iter().chain(filter).collect();
    (!parts.is_empty()).then(|| Text::from(parts.join("; ")))
}
