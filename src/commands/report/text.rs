//! A report as text, for a terminal.

use super::{
    facts::Facts,
    lanes::Lane,
    measure::{Bucket, COUNTS, Count, Percentiles},
    words,
};
use crate::{
    commands::{
        parts::signature::Alike,
        status::{NAMES, OWNERS, name_cells, owner_cells},
    },
    duration,
    output::{Cell, Column, Fit, NOTHING, Page, Report, Tone, rfc3339},
};

/// How wide the longest bar is.
const WIDEST: u64 = 30;

const HISTOGRAM: &[Column] = &[
    Column::new("", Fit::Number),
    Column::new("jobs", Fit::Number),
    Column::new("", Fit::Shrinks),
];

const FAILURES: &[Column] = &[
    Column::new("failures", Fit::Number),
    Column::new("jobs", Fit::Number),
    Column::new("last", Fit::Number),
    Column::new("how", Fit::Shrinks),
];

const SPANS: &[Column] = &[
    Column::new("", Fit::Whole),
    Column::new("jobs", Fit::Number),
    Column::new("p50", Fit::Number),
    Column::new("p90", Fit::Number),
    Column::new("p99", Fit::Number),
    Column::new("longest", Fit::Number),
];

const LANES: &[Column] = &[
    Column::new("performed by", Fit::KeepsEnds),
    Column::new("ended", Fit::Number),
    Column::new("finished", Fit::Number),
    Column::new("failed", Fit::Number),
    Column::new("running", Fit::Number),
];

impl Report for Facts {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.fact("served by", &self.server);
        page.fact("at", rfc3339(self.at));
        page.line();
        page.line().plain(self.verdict());
        self.findings.iter().for_each(|it| it.human(page));
        for explanation in &self.explained {
            page.line();
            explanation.human(page);
        }
        for it in &self.trouble {
            page.fact(it.code.name(), words::jobs(it.jobs));
        }
        for what in &self.unseen {
            page.fact("not seen", what);
        }
        page.line();
        for (name, fact) in self.counts() {
            page.fact(name, fact);
        }
        histogram(
            page,
            "Age of the jobs that nobody has",
            &self.ages,
            words::span,
        );
        histogram(
            page,
            "How long the others are held",
            &self.held,
            words::span,
        );
        histogram(
            page,
            "How often jobs on the board were tried",
            &self.attempts,
            words::attempts,
        );
        page.table(NAMES, self.names.iter().map(|it| name_cells(it, self.at)));
        page.table(
            OWNERS,
            self.owners.iter().map(|it| owner_cells(it, self.at)),
        );
        let failures = self.failures.iter();
        page.table(FAILURES, failures.map(|it| self.failed(it)));
        self.past(page);
    }
}

impl Facts {
    fn failed(&self, of: &Alike) -> Vec<Cell> {
        vec![
            Cell::new(format!(
                "{}{}",
                of.failures,
                if of.at_least { "+" } else { "" }
            )),
            Cell::new(of.jobs.to_string()),
            Cell::new(self.ago(of.last)),
            Cell::new(&of.signature),
        ]
    }

    fn past(&self, page: &mut Page) {
        let (Some(first), Some(last)) = (self.course.first(), self.course.last()) else {
            return;
        };
        let length = (first.to - first.from).to_std().unwrap_or_default();
        page.line();
        let (from, to) = (rfc3339(first.from), rfc3339(last.to));
        let each = duration::brief(length);
        page.heading(&format!("{from} to {to}, each bar {each}"));
        let counts = |of: Count| self.course.iter().map(move |it| of(&it.happened));
        let most = COUNTS.iter().flat_map(|(_, of)| counts(*of)).max();
        for (name, of) in COUNTS {
            let bars: String = counts(of)
                .map(|it| bar(it, most.unwrap_or_default()))
                .collect();
            let sum = counts(of).sum::<u64>();
            let line = page.line().add(Tone::Faint, format!("{name:<9} "));
            line.plain(format!("{bars}  {sum}"));
        }
        let spans = [("waited", &self.waited), ("took", &self.took)];
        let spans = spans
            .into_iter()
            .filter_map(|(name, of)| Some(span(name, of.as_ref()?)));
        page.table(SPANS, spans);
        if !self.timeline.lanes.is_empty() {
            page.line();
            page.heading(&format!("Who performed what: {}", self.timeline.extent()));
        }
        page.table(LANES, self.timeline.lanes.iter().map(lane));
    }
}

fn histogram(page: &mut Page, title: &str, buckets: &[Bucket], label: fn(&Bucket) -> String) {
    let most = buckets.iter().map(|it| it.jobs).max().unwrap_or_default();
    if most == 0 {
        return;
    }
    page.line();
    page.heading(title);
    let rows = buckets.iter().map(|it| {
        let bar = (it.jobs * WIDEST).div_ceil(most) as usize;
        vec![
            Cell::new(label(it)),
            Cell::new(it.jobs.to_string()),
            Cell::new("█".repeat(bar)),
        ]
    });
    page.table(HISTOGRAM, rows);
}

/// Returns a bar of one character.
fn bar(count: u64, most: u64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = (count * 8).checked_div(most).unwrap_or_default() as usize;
    BARS[height.max(usize::from(count > 0))]
}

fn span(name: &str, of: &Percentiles) -> Vec<Cell> {
    let spans = [of.p50, of.p90, of.p99, of.longest];
    let spans = spans.map(|seconds| Cell::new(words::seconds(seconds)));
    let names = [name.to_owned(), of.count.to_string()].map(Cell::new);
    names.into_iter().chain(spans).collect()
}

fn lane(lane: &Lane) -> Vec<Cell> {
    let count = |outcome| lane.runs.iter().filter(|it| it.outcome == outcome).count();
    let [finished, failed, running] = super::lanes::RunOutcome::ALL.map(count);
    let ended = lane.performed as usize;
    let numbers = [ended, finished, failed + lane.failures.len(), running];
    let numbers = numbers.map(|count| match count {
        0 => Cell::toned(Tone::Faint, NOTHING),
        count => Cell::new(count.to_string()),
    });
    [Cell::new(lane.name())]
        .into_iter()
        .chain(numbers)
        .collect()
}
