//! The jobs on the board: counts, ages, names and owners.

use super::{Facts, figure, legend, more, numbers, shown, svg, table, words};
use crate::{
    commands::report::{
        measure::Bucket,
        tables::{Count, Histogram},
    },
    output::{Html, list, tag},
    problem::Code,
};

pub(super) fn counts(facts: &Facts) -> Html {
    let figures = &facts.figures;
    let states = [
        ("rect.unclaimed", figures.unclaimed),
        ("rect.claimed", figures.claimed),
        ("rect.gone", facts.trashed),
        ("rect.failed", figures.of(Code::UnreadableRecord)),
    ];
    let told = ("states", "Jobs by state", "the numbers are below");
    let drawn = match states.iter().any(|(_, count)| *count > 0) {
        true => svg::parts(told, &states),
        false => Html::default(),
    };
    let tiles = list("dl.tiles", facts.counts().iter().map(tile));
    let pauses = facts.pauses.iter().map(|it| shown(&it.to_string(), 300));
    let pauses: Html = pauses.map(|it| tag("p", &[&it])).collect();
    let more = more(facts.more_pauses, "pauses", "jobboard resume");
    Html::of(&[&drawn, &tiles, &pauses, &more])
}

fn tile(of: &Count) -> Html {
    let name = match (of.name, of.number.as_str()) {
        ("unclaimed", _) => "div.unclaimed",
        ("claimed", _) => "div.claimed",
        ("in the trash", _) => "div.gone",
        ("unreadable", "0") => "div",
        ("unreadable", _) => "div.bad",
        _ => "div",
    };
    let more = of.more.iter();
    let more = more.map(|(what, fact)| tag("dd.more", &[what, &" ", &shown(fact, 80)]));
    let (title, number) = (tag("dt", &[&of.name]), tag("dd", &[&of.number]));
    tag(name, &[&title, &number, &more.collect::<Html>()])
}

pub(super) fn ages(facts: &Facts) -> Html {
    let edge = |it: &Bucket| {
        let label = words::span(it);
        // Only its left edge: the next label has the right one.
        let (edge, _) = label.split_once(' ').unwrap_or_default();
        (true, edge.replace("below", "0"))
    };
    let tried = |it: &Bucket| match it.to {
        Some(_) => (false, it.from.to_string()),
        None => (false, format!("{}+", it.from)),
    };
    let labels: [svg::Label; 3] = [edge, edge, tried];
    let all = facts.histograms().into_iter().zip(labels);
    list("div.charts", all.map(|(of, label)| histogram(&of, label)))
}

fn histogram(of: &Histogram<'_>, label: svg::Label) -> Html {
    let all = of.buckets.iter().map(|it| it.jobs).sum();
    if all == 0 {
        return figure("figure", (of.title, "no jobs"), &Html::default());
    }
    let mut drawn = svg::columns((of.id, of.title), of.buckets, label);
    if of.buckets.iter().any(|it| it.marked > 0) {
        let [plain, marked] = of.kinds;
        drawn.add(&legend(&[("rect.main", plain), ("rect.marked", marked)]));
    }
    drawn.add(&numbers(&of.table(), of.title));
    figure("figure", (of.title, &words::jobs(all)), &drawn)
}

pub(super) fn names(facts: &Facts) -> Html {
    let Some(most) = facts.names.iter().map(|it| it.jobs).max() else {
        return tag("p", &[&"No jobs."]);
    };
    let bars = facts.names.iter().map(|it| {
        let parts = [
            ("rect.unclaimed", it.unclaimed),
            ("rect.claimed", it.claimed),
        ];
        svg::bar(&parts, most)
    });
    let mut html = table(&facts.names_table(), &bars.collect::<Vec<_>>());
    html.add(&legend(&[
        ("rect.unclaimed", "unclaimed"),
        ("rect.claimed", "claimed"),
    ]));
    html.add(&more(
        facts.more_names,
        "names",
        "jobboard list --count --by name",
    ));
    html
}

pub(super) fn owners(facts: &Facts) -> Html {
    let Some(most) = facts.owners.iter().map(|it| it.claims).max() else {
        return tag("p", &[&"No job is claimed."]);
    };
    let bars = facts.owners.iter();
    let bars = bars.map(|it| svg::bar(&[("rect.claimed", it.claims)], most));
    let mut html = table(&facts.owners_table(), &bars.collect::<Vec<_>>());
    html.add(&more(
        facts.more_owners,
        "owners",
        "jobboard list --count --by owner",
    ));
    html
}
