//! The jobs on the board and the departed ones: counts, times, names and owners.

use super::{ReportFacts, figure, folded, legend, more, shown, svg, table, time};
use crate::{
    commands::{
        report::tables::{Table, Tile},
        status::ended,
    },
    duration,
    output::{Html, list, tag},
};

pub(super) fn tiles(facts: &ReportFacts) -> Html {
    let [claimed, ready, delayed] = facts.figures.by_state();
    let states = [
        ("rect.claimed", "claimed", claimed),
        ("rect.unclaimed", "ready", ready),
        ("rect.delayed", "backing off or paused", delayed),
    ];
    let mut html = Html::default();
    if states.iter().any(|(.., count)| *count > 0) {
        let text = (
            "states",
            "Jobs on the board by state",
            "the numbers are below",
        );
        html.add(&svg::parts(text, &states));
        html.add(&legend(&states));
    }
    html.add(&list("dl.tiles", facts.tiles().iter().map(tile)));
    if !facts.pauses.is_empty() {
        let pauses = facts.pauses.iter().map(|it| shown(&it.to_string(), 300));
        let pauses = list("ul.pauses", pauses.map(|it| tag("li", &[&it])));
        html.add(&tag("h3", &[&"Paused"])).add(&pauses);
        html.add(&more((facts.more_pauses, "pauses", "resume")));
    }
    html
}

fn tile(of: &Tile<'_>) -> Html {
    let (title, number) = (tag("dt", &[&of.name]), tag("dd", &[&of.number]));
    let trend = of.trend.map(|(mark, counts)| svg::trend(mark, counts));
    let trend = list("dd.more", trend);
    let more = of.more.iter();
    let more = more.map(|(what, fact)| tag("dd.more", &[what, &" ", &shown(fact, 80)]));
    tag(
        of.class,
        &[&title, &number, &trend, &more.collect::<Html>()],
    )
}

pub(super) fn times(facts: &ReportFacts) -> Html {
    let none = "No waiting or run times are recorded yet.";
    table_or(&facts.spans_table(), none)
}

pub(super) fn names(facts: &ReportFacts) -> Html {
    table_or(&facts.names_table(), "No jobs.")
}

pub(super) fn owners(facts: &ReportFacts) -> Html {
    table_or(&facts.owners_table(), "No job is claimed.")
}

fn table_or(of: &Table, none: &str) -> Html {
    match of.rows.is_empty() {
        true => tag("p", &[&none]),
        false => table(of),
    }
}

pub(super) fn history(facts: &ReportFacts) -> Html {
    let Some(lately) = &facts.history else {
        return tag("p", &[&"The history cannot be read."]);
    };
    let sums = match lately.count() {
        0 if facts.intervals.is_empty() => {
            return tag("p", &[&"The history is empty."]);
        }
        0 => Html::default(),
        _ => {
            let since = time(lately.since);
            tag("p", &[&ended(lately), &" since ", &since, &"."])
        }
    };
    Html::of(&[&sums, &events(facts)])
}

fn events(facts: &ReportFacts) -> Html {
    const TITLE: &str = "Jobs posted, finished and failed";
    let Some(first) = facts.intervals.first() else {
        return Html::default();
    };
    let length = (first.to - first.from).to_std().unwrap_or_default();
    let each = duration::exact(length);
    let note = format!(
        "one bar per {each}; rows have separate scales; jobs trashed after a failure count as failed"
    );
    let mut drawn = svg::intervals("intervals-figure", TITLE, &facts.intervals);
    let numbers = table(&facts.events_table());
    drawn.add(&folded("details", "Numbers", TITLE, &numbers));
    figure(TITLE, &note, &drawn)
}
