//! The jobs on the board: counts, ages, names and owners.

use super::{ReportFacts, figure, legend, more, numbers, shown, svg, table, words};
use crate::{
    commands::report::{
        measure::Bucket,
        tables::{BarPart, JobHistogram, Table, Tile},
    },
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
        let told = (
            "states",
            "Jobs on the board by state",
            "the numbers are below",
        );
        html.add(&svg::parts(told, &states));
        html.add(&legend(&states.map(|(mark, meaning, _)| (mark, meaning))));
    }
    html.add(&list("dl.tiles", facts.tiles().iter().map(tile)));
    if !facts.pauses.is_empty() {
        let pauses = facts.pauses.iter().map(|it| shown(&it.to_string(), 300));
        let pauses = list("ul.pauses", pauses.map(|it| tag("li", &[&it])));
        html.add(&tag("h3", &[&"Paused on purpose"])).add(&pauses);
        html.add(&more((facts.more_pauses, "pauses", "resume")));
    }
    html
}

fn tile(of: &Tile<'_>) -> Html {
    let more = of.more.iter();
    let more = more.map(|(what, fact)| tag("dd.more", &[what, &" ", &shown(fact, 80)]));
    let (title, number) = (tag("dt", &[&of.name]), tag("dd", &[&of.number]));
    let trend = of
        .trend
        .map(|(mark, counts)| tag("dd.more", &[&svg::trend(mark, counts)]));
    tag(
        of.class,
        &[
            &title,
            &number,
            &trend.unwrap_or_default(),
            &more.collect::<Html>(),
        ],
    )
}

pub(super) fn times(facts: &ReportFacts) -> Html {
    let spans = facts.spans_table();
    let spans = match spans.rows.is_empty() {
        true => tag("p", &[&"No job has ended yet."]),
        false => table(&spans, &[]),
    };
    let charts = list("div.charts", facts.histograms().iter().map(histogram));
    Html::of(&[&spans, &charts])
}

/// Returns the label at the left edge of a bucket: the next label has the right one.
fn edge(it: &Bucket) -> String {
    match it.from {
        0 => "0".to_owned(),
        from => words::edge(from),
    }
}

fn histogram(of: &JobHistogram<'_>) -> Html {
    let all = of.buckets.iter().map(|it| it.jobs).sum();
    if all == 0 {
        return figure("figure", (of.title, "no jobs"), &Html::default());
    }
    let mut drawn = svg::columns(
        (of.id, of.title),
        of.buckets,
        (of.kinds.map(|it| it.0), edge),
    );
    if of.buckets.iter().any(|it| it.marked > 0) {
        drawn.add(&legend(&of.kinds));
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
    let length = |bar: &Vec<BarPart>| bar.iter().map(|(.., count)| count).sum();
    let Some(most) = of.bars.iter().map(length).max() else {
        return tag("p", &[&none]);
    };
    let bars = of.bars.iter().map(|it| svg::bar(it, most));
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
