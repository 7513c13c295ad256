//! The numbers and tables of a report, the same in text and HTML.

use super::{
    facts::ReportFacts,
    measure::Percentiles,
    words::{self, Remainder, seconds},
};
use crate::{
    commands::status::{NAMES, OWNERS, name_cells, owner_cells},
    diagnosis::{ByName, ByOwner, Standing},
    duration,
    output::{ABSENT, Cell, Column, Fit, Tone, grouped},
    problem::Code,
};

#[derive(Default)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
    pub(super) bars: Vec<Vec<BarPart>>,
    pub(super) more: OmittedRows,
}

/// The rows that a table or a list leaves out: their number, their kind, and the command that lists all.
pub(super) type OmittedRows = (Remainder, &'static str, &'static str);

/// A part of a bar: its mark, its meaning and its length.
pub(super) type BarPart = (&'static str, &'static str, u64);

/// One number of the board, with details and its trend over the last hour.
pub(super) struct Tile<'a> {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) number: String,
    pub(super) more: Vec<(&'static str, String)>,
    pub(super) trend: Option<(&'static str, &'a [u64])>,
}

impl Table {
    fn new(
        title: &'static str,
        columns: &[&'static str],
        rows: impl Iterator<Item = Vec<Cell>>,
    ) -> Self {
        let columns = columns.iter().map(|name| match name.strip_prefix('#') {
            Some(name) => Column::new(name, Fit::Number),
            None => Column::new(name, Fit::KeepsEnds),
        });
        Self {
            title,
            columns: columns.collect(),
            rows: rows.collect(),
            ..Self::default()
        }
    }
}

impl ReportFacts {
    pub(super) fn ago(&self, time: chrono::DateTime<chrono::Utc>) -> String {
        duration::between(time, self.at)
    }

    pub(super) fn conductors_in_words(&self) -> String {
        let alive = self.conductors.map(|it| grouped(it as u64));
        let alive = alive.unwrap_or_else(|| "unknown".to_owned());
        let absent = self.absent.iter();
        let absent = absent.map(|(word, count)| format!(", {} {word}", grouped(*count)));
        alive + &absent.collect::<String>()
    }

    pub(super) fn tiles(&self) -> Vec<Tile<'_>> {
        let figures = &self.figures;
        let some = |what, count: u64| (count > 0).then(|| (what, grouped(count)));
        let standing = |what, of: &Option<Standing>| Some((what, of.as_ref()?.in_words(self.at)));
        let tile = |name, class, number, more: Vec<Option<_>>| Tile {
            name,
            class,
            number,
            more: more.into_iter().flatten().collect(),
            trend: None,
        };
        let longest = standing("longest", &figures.longest_held);
        let waiting = vec![
            standing("oldest", &figures.oldest_unclaimed),
            some("backing off", figures.backing_off),
            some("paused", figures.paused),
        ];
        let failed = some("failed", figures.of(Code::Failed));
        let [claimed, unclaimed, trashed] =
            [figures.claimed, figures.unclaimed, self.trashed].map(grouped);
        let mut tiles = vec![
            tile("claimed", "div.claimed", claimed, vec![longest]),
            tile("unclaimed", "div.unclaimed", unclaimed, waiting),
            tile("in the trash", "div", trashed, vec![failed]),
        ];
        let [coming, done, lost] = self.hour.each_ref().map(|it| it.iter().sum::<u64>());
        let bad = if lost > 0 { "div.bad" } else { "div" };
        let hours = [
            ("posted, last hour", "div", "rect.unclaimed", coming),
            ("finished, last hour", "div.done", "rect.done", done),
            ("failed, last hour", bad, "rect.bad", lost),
        ];
        let hours = hours.into_iter().zip(&self.hour);
        tiles.extend(hours.map(|((name, class, mark, sum), counts)| Tile {
            trend: (sum > 0).then_some((mark, counts.as_slice())),
            ..tile(name, class, grouped(sum), Vec::new())
        }));
        let waited = self.waited.as_ref();
        let half = waited.map(|it| ("half within", seconds(it.p50)));
        let most = waited.map_or_else(|| ABSENT.to_owned(), |it| seconds(it.p90));
        let jobs = figures.claimed + figures.unclaimed;
        let empty = match (jobs, (done + lost).saturating_sub(coming)) {
            (0, _) => "now".to_owned(),
            (_, 0) => "not at this rate".to_owned(),
            (jobs, falls) => {
                let left = seconds(jobs as f64 * 3600.0 / falls as f64);
                format!("in {left} at this rate")
            }
        };
        tiles.push(tile("waited (p90)", "div", most, vec![half]));
        tiles.push(tile("board empty", "div", empty, Vec::new()));
        tiles
    }

    pub(super) fn names_table(&self) -> Table {
        let rows = self.names.iter().map(|it| name_cells(it, self.at));
        let bar = |it: &ByName| {
            let unclaimed = ("rect.unclaimed", "unclaimed", it.unclaimed);
            vec![unclaimed, ("rect.claimed", "claimed", it.claimed)]
        };
        Table {
            title: "Most frequent job names; `failing` counts jobs that failed since their last retry",
            columns: NAMES.to_vec(),
            rows: rows.collect(),
            bars: self.names.iter().map(bar).collect(),
            more: (self.more_names, "names", "list --count --by name"),
        }
    }

    pub(super) fn owners_table(&self) -> Table {
        let rows = self.owners.iter().map(|it| owner_cells(it, self.at));
        let bar = |it: &ByOwner| vec![("rect.claimed", "claimed", it.claims)];
        Table {
            title: "Owners with the most claims, their next expiry, and claims without expiry",
            columns: OWNERS.to_vec(),
            rows: rows.collect(),
            bars: self.owners.iter().map(bar).collect(),
            more: (self.more_owners, "owners", "list --count --by owner"),
        }
    }

    pub(super) fn failures_table(&self) -> Table {
        let rows = self.failures.iter().map(|of| {
            let failures = grouped(of.failures) + if of.at_least { "+" } else { "" };
            let (jobs, last) = (grouped(of.jobs), self.ago(of.last));
            let cells = [failures, jobs, last, of.signature.clone()];
            cells.map(Cell::new).into()
        });
        let columns = ["#failures", "#jobs", "#last", "how"];
        Table {
            more: (self.more_failures, "kinds of failures", ""),
            ..Table::new("Failures by cause", &columns, rows)
        }
    }

    pub(super) fn events_table(&self) -> Table {
        let rows = self.intervals.iter();
        let rows = rows.filter(|it| it.counts().iter().any(|count| *count > 0));
        let rows = rows.map(|it| row(words::time(it.from), &it.counts()));
        let title = "Events over time, without empty intervals";
        Table::new(title, &["from", "#posted", "#finished", "#failed"], rows)
    }

    pub(super) fn spans_table(&self) -> Table {
        let cells = |name: &str, of: &Percentiles| {
            let spans = [of.p50, of.p90, of.p99, of.longest].map(seconds);
            let mut cells = row(name.to_owned(), &[of.count]);
            cells.extend(spans.map(Cell::new));
            cells
        };
        let waited = self.waited.iter().map(|of| cells("waited", of));
        let took = self.took.iter().map(|of| cells("took", of));
        let title = "Waiting time from posting to the first claim, and run time from the last claim \
            to the end (percentiles)";
        let columns = ["how long", "#jobs", "#p50", "#p90", "#p99", "#longest"];
        Table::new(title, &columns, waited.chain(took))
    }
}

fn row(name: String, numbers: &[u64]) -> Vec<Cell> {
    let numbers = numbers.iter().map(|number| match number {
        0 => Cell::toned(Tone::Faint, ABSENT),
        number => Cell::new(grouped(*number)),
    });
    [Cell::new(name)].into_iter().chain(numbers).collect()
}
