//! The history of departed jobs: times, durations and owners.

use chrono::TimeDelta;

use super::{ReportFacts, figure, folded, legend, more, numbers, svg, table, time};
use crate::{
    commands::{report::lanes::RunOutcome, status::ended},
    duration,
    output::{Html, tag},
};

pub(super) fn past(facts: &ReportFacts) -> Html {
    let Some(remembered) = &facts.remembered else {
        return tag("p", &[&"The history cannot be read."]);
    };
    let sums = match remembered.count() {
        0 if facts.course.is_empty() && facts.timeline.lanes.is_empty() => {
            return tag("p", &[&"The history is empty."]);
        }
        0 => Html::default(),
        _ => {
            let since = time(remembered.since);
            tag("p", &[&ended(remembered), &" since ", &since, &"."])
        }
    };
    Html::of(&[&sums, &course(facts), &timeline(facts)])
}

fn course(facts: &ReportFacts) -> Html {
    const TITLE: &str = "Jobs posted, finished and failed";
    let Some(first) = facts.course.first() else {
        return Html::default();
    };
    let length = (first.to - first.from).to_std().unwrap_or_default();
    let each = duration::exact(length);
    let remark =
        format!("one bar per {each}; rows have separate scales; trashed jobs count as failed");
    let mut drawn = svg::course(("course-figure", TITLE), &facts.course);
    drawn.add(&numbers(&facts.course_table(), TITLE));
    figure("figure.wide", (TITLE, &remark), &drawn)
}

fn timeline(facts: &ReportFacts) -> Html {
    const TITLE: &str = "Runs by conductor and owner";
    let (timeline, lanes) = (&facts.timeline, &facts.timeline.lanes);
    let Some(from) = timeline.from.filter(|_| !lanes.is_empty()) else {
        return Html::default();
    };
    let remark = format!("{}, from claim to end", timeline.extent());
    let least = from.checked_add_signed(TimeDelta::seconds(1));
    let to = timeline.to.max(least).unwrap_or(from);
    let mut html = svg::lanes(("lanes-figure", TITLE), lanes, (from, to));
    let has = |outcome| lanes.iter().any(|it| it.count(outcome) > 0);
    let marks = [
        ("rect.done", "finished", has(RunOutcome::Finished)),
        ("rect.failed", "consumed as failed", has(RunOutcome::Failed)),
        ("rect.running", "running", has(RunOutcome::Running)),
        ("cross", "failed attempt", has(RunOutcome::Attempt)),
    ];
    let marks = marks.into_iter().filter(|(.., is_there)| *is_there);
    let marks: Vec<_> = marks.map(|(mark, meaning, _)| (mark, meaning)).collect();
    html.add(&legend(&marks));
    let sums = facts.lanes_table();
    html.add(&table(&sums, &[])).add(&more(sums.more));
    let runs = table(&facts.runs_table(), &[]);
    html.add(&folded("details.long", ("All runs", TITLE), &runs));
    figure("figure.wide", (TITLE, &remark), &html)
}
