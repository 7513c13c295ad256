//! The lanes of a page: who performed which jobs when.

use chrono::{DateTime, Utc};

use super::{BELOW, Box, Drawing, axis};
use crate::{
    commands::report::lanes::{Lane, Run, RunOutcome},
    output::{Html, Text},
};

/// How high a run is drawn, and how many above each other that overlap.
const RUN: f64 = 9.0;
const DEEPEST: usize = 6;

/// How wide a run is drawn at least, in hundredths of the whole.
const NARROWEST: f64 = 0.4;

/// Draws who performed which jobs when, a lane for each.
pub(in crate::commands::report) fn lanes(
    id: &'static str,
    title: &'static str,
    lanes: &[Lane],
    (from, to): (DateTime<Utc>, DateTime<Utc>),
) -> Html {
    let packed: Vec<_> = lanes.iter().map(|lane| pack(&lane.runs, to)).collect();
    // Below the runs, if any failed, there is a row for those attempts.
    let depth = |lane: &Lane, rows: &[usize]| {
        let deepest = rows.iter().max().map_or(0, |deepest| deepest + 1);
        (deepest, deepest + usize::from(!lane.failures.is_empty()))
    };
    let height = |depth: usize| 24.0 + depth as f64 * (RUN + 2.0);
    let each = lanes.iter().zip(&packed);
    let all = each
        .map(|(lane, rows)| height(depth(lane, rows).1))
        .sum::<f64>();
    let runs = lanes.iter().map(|lane| lane.runs.len()).sum::<usize>();
    let told = format!(
        "{runs} runs in {} lanes; the table below has each",
        lanes.len()
    );
    let mut drawing = Drawing::new(id, all + BELOW + 6.0, title, told);
    let span = (to - from).as_seconds_f64().max(1e-3);
    let x = |time: DateTime<Utc>| {
        let part = (time - from).as_seconds_f64() / span;
        (part * 100.0).clamp(0.0, 100.0)
    };
    let mut top = 0.0;
    for (lane, rows) in lanes.iter().zip(&packed) {
        let name = Text::from(lane.name()).shortened(40);
        drawing.label("start", (0.0, top + 14.0), name.as_str());
        for (run, row) in lane.runs.iter().zip(rows) {
            let (left, right) = (x(run.from), run.to.map_or(100.0, x));
            let left = left.min(100.0 - NARROWEST);
            let width = (right - left).max(NARROWEST);
            run_of(&mut drawing, run, (left, width, y_of(top, *row), RUN));
        }
        let below = y_of(top, depth(lane, rows).0) + RUN / 2.0;
        for failed in &lane.failures {
            cross(&mut drawing.0, &failed.name, (x(failed.on), below));
        }
        top += height(depth(lane, rows).1);
        drawing.baseline(top);
    }
    axis(&mut drawing, top, (from, to));
    drawing.finish()
}

/// Draws an attempt that failed.
fn cross(html: &mut Html, name: &str, (x, y): (f64, f64)) {
    html.raw("<svg class=\"cross\" x=\"").number(x);
    html.raw("%\" y=\"").number(y).raw("\"><title>failed: ");
    html.text(Text::from(name).shortened(40).as_str());
    html.raw("</title><path d=\"M-4-4L4 4M4-4L-4 4\"/></svg>");
}

/// Says where a row of a lane is that begins there.
fn y_of(top: f64, row: usize) -> f64 {
    top + 20.0 + row as f64 * (RUN + 2.0)
}

fn run_of(drawing: &mut Drawing, run: &Run, (left, width, y, height): Box) {
    let class = match run.outcome {
        RunOutcome::Finished => "main",
        RunOutcome::Failed => "failed",
        RunOutcome::Running => "running",
    };
    drawing
        .0
        .raw("<g><title>")
        .text(Text::from(&run.name).shortened(40).as_str());
    drawing.0.raw(": ").raw(run.outcome.name()).raw("</title>");
    drawing.rect(class, (left, width, y, height));
    drawing.0.raw("</g>");
}

/// Says in which row of its lane each run is drawn, so that those that overlap are seen.
fn pack(runs: &[Run], at: DateTime<Utc>) -> Vec<usize> {
    let mut ends: Vec<DateTime<Utc>> = Vec::new();
    let row = |run: &Run| {
        let end = run.to.unwrap_or(at).max(run.from);
        let free = ends.iter().position(|it| *it <= run.from);
        let row = free.unwrap_or(ends.len()).min(DEEPEST - 1);
        match ends.get_mut(row) {
            Some(until) => *until = end.max(*until),
            None => ends.push(end),
        }
        row
    };
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn runs_that_overlap_are_drawn_above_each_other() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let run = |from: i64, to: Option<i64>| Run {
            job: String::new(),
            name: String::new(),
            from: start + TimeDelta::seconds(from),
            to: to.map(|to| start + TimeDelta::seconds(to)),
            outcome: RunOutcome::Finished,
        };
        let runs = [
            run(0, Some(10)),
            run(5, None),
            run(10, Some(20)),
            run(12, Some(13)),
        ];
        assert_eq!(pack(&runs, start + TimeDelta::seconds(30)), [0, 1, 0, 2]);
        let many: Vec<_> = (0..20).map(|at| run(at, None)).collect();
        assert_eq!(
            pack(&many, start + TimeDelta::seconds(99)).iter().max(),
            Some(&(DEEPEST - 1))
        );
    }
}
