//! The screen of `status`, and its JSON.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    commands::parts::{
        json::lines,
        tally::{ByName, ByOwner, Departures, Figures, Standing},
    },
    duration,
    job::Pause,
    output::{Cell, Column, Fit, NOTHING, Page, Record, Report, Tone},
    suggest::Suggestion,
};

/// The largest number of rows per table for people.
const MOST: usize = 10;

/// The smallest number of rows per table, even on a small terminal.
const LEAST: usize = 3;

#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) board: String,
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    pub(super) history: Option<Departures>,
    pub(super) history_problem: Option<String>,
    pub(super) conductors: Option<usize>,
    /// The number of free slots that conductors publish.
    pub(super) slots_free: u64,
    /// The number of silent conductors besides.
    pub(super) silent: u64,
    pub(super) conductors_problem: Option<String>,
    pub(super) pauses: Vec<Pause>,
    /// The number of finished jobs that conductors cannot settle.
    pub(super) unsettled: u64,
    pub(super) names: Vec<ByName>,
    pub(super) owners: Vec<ByOwner>,
    pub(super) findings: Vec<Finding>,
    #[serde(skip)]
    pub(super) now: DateTime<Utc>,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    code: &'static str,
    count: u64,
    command: Suggestion,
}

impl Status {
    /// Adds the findings; `program` starts each suggested command.
    pub(super) fn judged(mut self, program: &Suggestion) -> Self {
        let figures = &self.figures;
        let attempts = figures.poison_attempts.unwrap_or_default();
        let poison = format!("attempts>={attempts}");
        let poison = Suggestion::of("list --filter").with([&poison, "--sort", "-attempts"]);
        let failed = Suggestion::of("list --history --filter ended<1d --filter outcome=failed");
        let of = Suggestion::of;
        let past = self.history.as_ref().map_or(0, |past| past.failed);
        let findings = [
            (
                "unreadable-record",
                figures.malformed,
                of("list --state MALFORMED"),
            ),
            ("trashed", self.trashed, of("list --trash")),
            ("failed", past, failed),
            (
                "claim-never-expires",
                figures.claim_never_expires,
                of("list --filter expires=none"),
            ),
            (
                "owner-dead",
                figures.owner_dead,
                of("doctor --only owner-dead"),
            ),
            ("poison", figures.poison, poison),
            ("unsettled-job", self.unsettled, of("conductors")),
            ("conductor-silent", self.silent, of("conductors")),
            ("paused", self.pauses.len() as u64, of("resume")),
        ];
        let findings = findings.into_iter().filter(|(_, count, _)| *count > 0);
        let findings = findings.map(|(code, count, command)| Finding {
            code,
            count,
            command: command.on(program),
        });
        self.findings = findings.collect();
        self
    }

    fn age(&self, time: DateTime<Utc>) -> String {
        age(self.now, time)
    }

    /// Writes the lines above the tables; a line with a finding ends with its command.
    fn facts(&self, page: &mut Page) {
        let figures = &self.figures;
        let some = |count: u64| (count > 0).then(|| count.to_string());
        let backing_off = some(figures.backing_off).map(|count| format!(", {count} backing off"));
        let standing = |job: &Option<Standing>| job.as_ref().map(|job| job.told(self.now));
        let poison = figures.poison_attempts;
        let poison =
            poison.map(|least| format!("{} with {least} or more attempts", figures.poison));
        let lately = self.history.as_ref().map(|past| self.age(past.since));
        let lately = format!("last {}", lately.unwrap_or_default());
        let unsettled = some(self.unsettled).map(|jobs| format!(", unsettled jobs: {jobs}"));
        let conductors = self.conductors.map(|count| match count {
            0 => "none".to_owned(),
            count => {
                let (free, unsettled) = (self.slots_free, unsettled.unwrap_or_default());
                format!("{count}{unsettled}, free slots: {free}")
            }
        });
        let unclaimed = format!("{}{}", figures.unclaimed, backing_off.unwrap_or_default());
        let facts = [
            ("unclaimed", "", Some(unclaimed)),
            ("  oldest", "", standing(&figures.oldest_unclaimed)),
            ("claimed", "", Some(figures.claimed.to_string())),
            ("  longest", "", standing(&figures.longest_held)),
            ("  owner dead", "owner-dead", some(figures.owner_dead)),
            (
                "  no expiry",
                "claim-never-expires",
                some(figures.claim_never_expires),
            ),
            ("poison", "poison", poison),
            ("malformed", "unreadable-record", some(figures.malformed)),
            ("in the trash", "trashed", Some(self.trashed.to_string())),
            (&lately, "failed", self.history.as_ref().map(ended)),
            ("conductors", "unsettled-job", conductors),
            ("  silent", "conductor-silent", some(self.silent)),
        ];
        for (name, code, fact) in facts {
            let finding = self.findings.iter().find(|finding| finding.code == code);
            let tone = finding.map_or(Tone::Plain, |_| Tone::Bad);
            let command = finding.map(|finding| &finding.command);
            if let Some(fact) = fact {
                page.fact_with(name, tone, &fact, command);
            }
        }
    }

    /// Writes the pauses, each with the command that ends it.
    fn paused(&self, page: &mut Page) {
        let finding = self
            .findings
            .iter()
            .find(|finding| finding.code == "paused");
        for pause in &self.pauses {
            let resume = finding.map(|it| it.command.clone().operand(&pause.names));
            page.fact_with("paused", Tone::Bad, &pause.to_string(), resume.as_ref());
        }
    }
}

pub(crate) fn name_cells(named: &ByName, now: DateTime<Utc>) -> Vec<Cell> {
    vec![
        Cell::new(&named.name),
        Cell::new(named.jobs.to_string()),
        Cell::new(named.unclaimed.to_string()),
        Cell::new(named.claimed.to_string()),
        wrong(named.failed),
        cell(named.oldest.map(|time| age(now, time))),
    ]
}

pub(crate) const NAMES: &[Column] = &[
    Column::new("name", Fit::Shrinks),
    Column::new("jobs", Fit::Number),
    Column::new("unclaimed", Fit::Number).falling(Some(1)),
    Column::new("claimed", Fit::Number).falling(Some(0)),
    Column::new("failed", Fit::Number),
    Column::new("oldest", Fit::Number),
];

pub(crate) const OWNERS: &[Column] = &[
    Column::new("owner", Fit::KeepsEnds),
    Column::new("claims", Fit::Number),
    Column::new("held", Fit::Number),
    Column::new("expires", Fit::Number).falling(Some(0)),
    Column::new("never", Fit::Number),
    Column::new("conductor", Fit::KeepsEnds).falling(Some(1)),
];

pub(crate) fn owner_cells(owned: &ByOwner, now: DateTime<Utc>) -> Vec<Cell> {
    let unreadable = || Cell::toned(Tone::Bad, "?");
    let owner = owned.owner.as_ref();
    vec![
        owner.map_or_else(unreadable, |owner| Cell::new(owner.text())),
        Cell::new(owned.claims.to_string()),
        cell(owned.held_since.map(|time| age(now, time))),
        cell(owned.expires_in.map(duration::brief)),
        wrong(owned.claim_never_expires),
        match (owned.is_dead, owned.is_silent) {
            (true, _) => Cell::toned(Tone::Bad, "dead"),
            (_, true) => Cell::toned(Tone::Bad, "silent"),
            _ => cell(owned.conductor.clone()),
        },
    ]
}

fn age(now: DateTime<Utc>, time: DateTime<Utc>) -> String {
    duration::between(time, now)
}

fn cell(text: Option<String>) -> Cell {
    text.map_or_else(|| Cell::toned(Tone::Faint, NOTHING), Cell::new)
}

fn wrong(count: u64) -> Cell {
    match count {
        0 => cell(None),
        count => Cell::toned(Tone::Bad, count.to_string()),
    }
}

/// Words the departures, the worst first.
pub(crate) fn ended(past: &Departures) -> String {
    let counts = [past.failed, past.consumed, past.purged];
    let parts = counts.into_iter().zip(["failed", "consumed", "purged"]);
    let parts = parts.filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "nothing ended".to_owned(),
        false => parts.join(", "),
    }
}

/// Shares the remaining rows of the terminal among the two tables.
fn shares(left: Option<usize>, names: usize, owners: usize) -> (usize, usize) {
    let (names, owners) = (names.min(MOST), owners.min(MOST));
    // Each table has an empty line, a title, and a line for the remaining rows.
    let left = left.unwrap_or(usize::MAX).saturating_sub(6);
    let names = names.min(LEAST.max(left - owners.min(left / 2)));
    (names, owners.min(LEAST.max(left.saturating_sub(names))))
}

fn more(page: &mut Page, count: usize, by: &str) {
    if count > 0 {
        page.more(format!("{count} more"), &format!("list --count --by {by}"));
    }
}

impl Record for Status {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    fn lines(&self) -> Vec<Vec<String>> {
        lines(self)
    }
}

impl Report for Status {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        self.facts(page);
        self.paused(page);
        let (names, owners) = shares(page.rows_left(), self.names.len(), self.owners.len());
        let of_names = self.names.iter().take(names);
        page.table(NAMES, of_names.map(|it| name_cells(it, self.now)));
        more(page, self.names.len() - names, "name");
        let of_owners = self.owners.iter().take(owners);
        page.table(OWNERS, of_owners.map(|it| owner_cells(it, self.now)));
        more(page, self.owners.len() - owners, "owner");
    }
}
