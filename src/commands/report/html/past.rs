//! The history of departed jobs: times, durations and owners.

use chrono::TimeDelta;

use super::{ReportFacts, figure, folded, legend, svg, table, time};
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
    let numbers = table(&facts.course_table());
    drawn.add(&folded("details", ("Numbers", TITLE), &numbers));
    figure((TITLE, &remark), &drawn)
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
    let count = |outcome| lanes.iter().map(|it| it.count(outcome)).sum();
    let mut marks = vec![
        ("rect.done", "finished", count(RunOutcome::Finished)),
        (
            "rect.failed",
            "consumed as failed",
            count(RunOutcome::Failed),
        ),
        ("rect.running", "running", count(RunOutcome::Running)),
        ("cross", "failed attempt", count(RunOutcome::Attempt)),
    ];
    marks.retain(|(.., count)| *count > 0);
    html.add(&legend(&marks)).add(&table(&facts.lanes_table()));
    let runs = table(&facts.runs_table());
    html.add(&folded("details.long", ("All runs", TITLE), &runs));
    figure((TITLE, &remark), &html)
}
