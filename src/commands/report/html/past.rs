//! What is remembered of the jobs that have left the board: when, how long, and by whom.

use chrono::TimeDelta;

use super::{Facts, count, figure, legend, more, name, shown, svg, table, text, time, words};
use crate::{
    commands::report::{
        lanes::{Lane, Run},
        measure::{Happened, Percentiles},
    },
    duration,
    output::{Html, short},
};

/// Writes all that is told of the past.
pub(super) fn past(facts: &Facts) -> Html {
    let mut html = Html::new();
    let Some(remembered) = &facts.remembered else {
        html.raw("<p>It cannot be seen.</p>\n");
        return html;
    };
    if remembered.count() > 0 {
        html.raw("<p>");
        let sums = [
            (remembered.consumed, "finished"),
            (remembered.failed, "ended as failed"),
            (remembered.purged, "removed from the trash"),
        ];
        let sums = sums.into_iter().filter(|(count, _)| *count > 0);
        for (at, (count, how)) in sums.enumerate() {
            html.raw(if at > 0 { ", " } else { "" })
                .text(words::grouped(count))
                .raw(" ")
                .raw(how);
        }
        html.raw(" since ")
            .add(&time(remembered.since))
            .raw(".</p>\n");
    } else if facts.course.is_empty() && facts.timeline.lanes.is_empty() {
        html.raw("<p>Nothing is remembered.</p>\n");
        return html;
    }
    html.add(&course(facts))
        .add(&spans(facts))
        .add(&timeline(facts));
    html
}

fn course(facts: &Facts) -> Html {
    const TITLE: &str = "Jobs posted, finished and failed";
    let Some(first) = facts.course.first() else {
        return Html::new();
    };
    let length = (first.to - first.from).to_std().unwrap_or_default();
    let remark = format!(
        "each bar is {}, each row has its own scale; what is in the trash has failed, too",
        duration::exact(length)
    );
    let rows = facts
        .course
        .iter()
        .filter(|it| it.happened != Happened::default());
    let rows = rows.map(|it| {
        let Happened {
            posted,
            finished,
            failed,
        } = it.happened;
        vec![time(it.from), count(posted), count(finished), count(failed)]
    });
    let columns = [
        ("from", ""),
        ("posted", "n"),
        ("finished", "n"),
        ("failed", "n"),
    ];
    let numbers = table(
        "What happened when; empty times are left out",
        &columns,
        rows,
    );
    let drawing = svg::course("course-figure", TITLE, &facts.course);
    figure("wide", (TITLE, &remark), &drawing, &Html::new(), &numbers)
}

fn spans(facts: &Facts) -> Html {
    const TITLE: &str = "How long jobs waited, and took";
    let rows = [
        ("waited for the first claim", &facts.waited),
        ("took from the last claim to the end", &facts.took),
    ];
    let rows: Vec<_> = rows
        .into_iter()
        .filter_map(|(name, of)| Some((name, of.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return Html::new();
    }
    let columns = [
        ("how long", ""),
        ("jobs", "n"),
        ("p50", "n"),
        ("p90", "n"),
        ("p99", "n"),
        ("longest", "n"),
    ];
    let row = |(name, of): &(&'static str, &Percentiles)| {
        let spans = [of.p50, of.p90, of.p99, of.longest].map(|it| text(words::seconds(it)));
        [text(*name), count(of.count)]
            .into_iter()
            .chain(spans)
            .collect()
    };
    let numbers = table(
        "Half, 90 and 99 of 100 jobs took no longer",
        &columns,
        rows.iter().map(row),
    );
    let drawing = svg::quantiles("spans-figure", TITLE, &rows);
    let mut html = Html::new();
    html.raw("<figure class=\"wide\">\n<figcaption>").raw(TITLE);
    html.raw("<small>the tall mark is p50, the bar reaches to p90, the line to p99</small></figcaption>\n");
    html.add(&drawing)
        .raw("\n")
        .add(&numbers)
        .raw("</figure>\n");
    html
}

fn timeline(facts: &Facts) -> Html {
    const TITLE: &str = "Who performed what when";
    let (timeline, mut html) = (&facts.timeline, Html::new());
    let Some(from) = timeline.from.filter(|_| !timeline.lanes.is_empty()) else {
        return html;
    };
    let lanes = &timeline.lanes;
    let remark = format!("{}, from a claim to its end", timeline.extent());
    let least = from.checked_add_signed(TimeDelta::seconds(1));
    let to = timeline.to.max(least).unwrap_or(from);
    let drawing = svg::lanes("lanes-figure", TITLE, lanes, (from, to));
    let marks = legend(&[
        ("main", "finished"),
        ("failed", "ended as failed"),
        ("running", "is running"),
        ("cross", "an attempt that failed"),
    ]);
    let columns = [
        ("job", ""),
        ("by", ""),
        ("from", ""),
        ("took", "n"),
        ("outcome", ""),
    ];
    let rows = lanes.iter().flat_map(|lane| rows(facts, lane));
    let numbers = table(
        "Runs and failed attempts, by who performed them",
        &columns,
        rows,
    );
    html.add(&figure(
        "wide",
        (TITLE, &remark),
        &drawing,
        &marks,
        &numbers,
    ));
    html.add(&more(Some(timeline.more), "who performed jobs"));
    html
}

fn rows<'a>(facts: &'a Facts, lane: &'a Lane) -> impl Iterator<Item = Vec<Html>> + 'a {
    let by = lane.name();
    let of_run = by.clone();
    let runs = lane.runs.iter().map(move |run| {
        let outcome = run.outcome.name();
        let took = duration::brief(length(facts, run));
        vec![
            job(&run.name, &run.job),
            shown(&of_run, 40),
            time(run.from),
            text(took),
            text(outcome),
        ]
    });
    let failures = lane.failures.iter().map(move |it| {
        vec![
            job(&it.name, &it.job),
            shown(&by, 40),
            time(it.on),
            text("–"),
            text("attempt failed"),
        ]
    });
    runs.chain(failures)
}

fn length(facts: &Facts, run: &Run) -> std::time::Duration {
    (run.to.unwrap_or(facts.at) - run.from)
        .to_std()
        .unwrap_or_default()
}

fn job(called: &str, reference: &str) -> Html {
    let mut html = shown(called, 40);
    html.raw(" <code>")
        .add(&name(short(reference)))
        .raw("</code>");
    html
}
