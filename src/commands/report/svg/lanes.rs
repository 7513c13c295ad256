//! Draws the timeline: runs per owner over time.

use chrono::{DateTime, Utc};

use super::{BELOW, axis, baseline, figure, label, number, percent, rect};
use crate::{
    commands::report::lanes::{Lane, LaneRun, RunOutcome},
    output::{Html, Text, element, tag},
};

const RUN: f64 = 9.0;
const DEEPEST: usize = 6;

const NARROWEST: f64 = 0.4;

pub(in crate::commands::report) fn lanes(
    (id, title): (&'static str, &'static str),
    lanes: &[Lane],
    times: (DateTime<Utc>, DateTime<Utc>),
) -> Html {
    let (mut drawn, mut top) = (Html::default(), 0.0);
    for lane in lanes {
        let height = one(lane, top, times, &mut drawn);
        top += height;
        drawn.add(&baseline(top));
    }
    drawn.add(&axis(top, times));
    let runs = lanes.iter().map(|lane| lane.runs.len()).sum::<usize>();
    let all = lanes.len();
    let told = format!("{runs} runs in {all} lanes; the tables below list all of them");
    figure((id, title, &told), top + BELOW + 6.0, &drawn)
}

fn one(lane: &Lane, top: f64, (from, to): (DateTime<Utc>, DateTime<Utc>), drawn: &mut Html) -> f64 {
    let span = (to - from).as_seconds_f64().max(1e-3);
    let x = |time: DateTime<Utc>| {
        let part = (time - from).as_seconds_f64() / span;
        (part * 100.0).clamp(0.0, 100.0)
    };
    let y = |row: usize| 20.0 + row as f64 * (RUN + 2.0);
    let rows = pack(&lane.runs, to);
    let deepest = rows.iter().flatten().max();
    let depth = deepest.map_or(0, |deepest| deepest + 1);
    let name = Text::from(lane.name()).shortened(40);
    drawn.add(&label("text.start", (0.0, top + 14.0), name.as_str()));
    for (run, row) in lane.runs.iter().zip(&rows) {
        let class = match run.outcome {
            RunOutcome::Finished => "rect.done",
            RunOutcome::Running => "rect.running",
            RunOutcome::Failed | RunOutcome::Attempt => "rect.failed",
        };
        let name = Text::from(&run.name).shortened(40);
        let name = tag("title", &[&name, &": ", &run.outcome.name()]);
        let right = run.to.map_or(100.0, x);
        drawn.add(&match (row, run.from) {
            (Some(row), Some(from)) => {
                let left = x(from).min(100.0 - NARROWEST);
                let width = (right - left).max(NARROWEST);
                tag(
                    "g",
                    &[&name, &rect(class, (left, width, top + y(*row), RUN))],
                )
            }
            // Failed attempts have a row below the runs.
            _ => cross(&percent(right), top + y(depth) + RUN / 2.0, &name),
        });
    }
    y(depth + usize::from(rows.contains(&None))) + 4.0
}

pub(in crate::commands::report) fn cross(x: &str, y: f64, title: &Html) -> Html {
    const PATH: &str = "M-4-4L4 4M4-4L-4 4";
    let path = element("path", &[("d", &PATH)], &[]);
    element(
        "svg.cross",
        &[("x", &x), ("y", &number(y))],
        &[title, &path],
    )
}

/// Assigns rows to overlapping runs; a run without a known start gets none.
fn pack(runs: &[LaneRun], at: DateTime<Utc>) -> Vec<Option<usize>> {
    let mut ends: Vec<DateTime<Utc>> = Vec::new();
    let row = |run: &LaneRun| {
        let from = run.from?;
        let end = run.to.unwrap_or(at).max(from);
        let free = ends.iter().position(|it| *it <= from);
        let row = free.unwrap_or(ends.len()).min(DEEPEST - 1);
        match ends.get_mut(row) {
            Some(until) => *until = end.max(*until),
            None => ends.push(end),
        }
        Some(row)
    };
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn overlapping_runs_are_drawn_in_separate_rows() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let run = |from: i64, to: Option<i64>| LaneRun {
            job: String::new(),
            name: String::new(),
            from: Some(start + TimeDelta::seconds(from)),
            to: to.map(|to| start + TimeDelta::seconds(to)),
            outcome: RunOutcome::Finished,
        };
        let runs = [
            run(0, Some(10)),
            run(5, None),
            run(10, Some(20)),
            run(12, Some(13)),
        ];
        assert_eq!(
            pack(&runs, start + TimeDelta::seconds(30)),
            [0, 1, 0, 2].map(Some)
        );
        let many: Vec<_> = (0..20).map(|at| run(at, None)).collect();
        assert_eq!(
            pack(&many, start + TimeDelta::seconds(99)).iter().max(),
            Some(&Some(DEEPEST - 1))
        );
    }
}
