//! The jobs on the board: counts, ages, names and owners.

use super::{ReportFacts, figure, legend, more, numbers, shown, svg, table, words};
use crate::{
    commands::report::{
        measure::Bucket,
        tables::{BarPart, JobHistogram, StateCount, Table},
    },
    output::{Html, list, tag},
    problem::Code,
};

pub(super) fn counts(facts: &ReportFacts) -> Html {
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
    let more = more((facts.more_pauses, "pauses", "resume"));
    Html::of(&[&drawn, &tiles, &pauses, &more])
}

fn tile(of: &StateCount) -> Html {
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

pub(super) fn ages(facts: &ReportFacts) -> Html {
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
    let labels: [svg::ColumnLabel; 3] = [edge, edge, tried];
    let all = facts.histograms().into_iter().zip(labels);
    list("div.charts", all.map(|(of, label)| histogram(&of, label)))
}

fn histogram(of: &JobHistogram<'_>, label: svg::ColumnLabel) -> Html {
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

pub(super) fn names(facts: &ReportFacts) -> Html {
    ranking(&facts.names_table(), "No jobs.")
}

pub(super) fn owners(facts: &ReportFacts) -> Html {
    ranking(&facts.owners_table(), "No job is claimed.")
}

fn ranking(of: &Table, none: &str) -> Html {
    let parts = |bar: &Vec<BarPart>| {
        bar.iter()
            .map(|(class, _, count)| (*class, *count))
            .collect::<Vec<_>>()
    };
    let most = of
        .bars
        .iter()
        .map(|bar| bar.iter().map(|(.., count)| count).sum())
        .max();
    let Some(most) = most else {
        return tag("p", &[&none]);
    };
    let bars = of.bars.iter().map(|it| svg::bar(&parts(it), most));
    let mut html = table(of, &bars.collect::<Vec<_>>());
    let marks: Vec<_> = of.bars[0]
        .iter()
        .map(|(class, meaning, _)| (*class, *meaning))
        .collect();
    if marks.len() > 1 {
        html.add(&legend(&marks));
    }
    html.add(&more(of.more));
    html
}
