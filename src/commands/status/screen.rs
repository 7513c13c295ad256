//! The screen of `status`, and its JSON.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    board::Health,
    commands::parts::problems::{CODE, tone},
    diagnosis::{ByName, ByOwner, Figures, OutcomeCounts, Standing, Survey},
    duration::{between, brief},
    job::Pause,
    output::{ABSENT, Cell, Column, Fit, Page, Report, Tone, count_jobs, counted},
    problem::{Code, CodeCount, Severity},
    suggest::Suggestion,
};

const MAX_LISTED: usize = 10;

const MIN_ROWS: usize = 3;

#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) board: String,
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// By code, including problems without jobs.
    pub(super) problems: Vec<CodeCount>,
    pub(super) history: Option<OutcomeCounts>,
    pub(super) history_problem: Option<String>,
    /// The parts that could not be read, and why.
    pub(super) unseen: Vec<String>,
    pub(super) conductors: Option<u64>,
    pub(super) slots_free: u64,
    /// Not counted in `conductors`.
    pub(super) silent: u64,
    /// The same conductors by `gone`, `stopped` and `silent`.
    pub(super) absent: BTreeMap<&'static str, u64>,
    pub(super) pauses: Vec<Pause>,
    pub(super) names: Vec<ByName>,
    pub(super) owners: Vec<ByOwner>,
    #[serde(skip)]
    pub(super) program: Suggestion,
    #[serde(skip)]
    pub(super) now: DateTime<Utc>,
}

impl Status {
    pub(super) fn new(
        board: String,
        program: Suggestion,
        health: &Health,
        survey: Survey,
        history: Option<OutcomeCounts>,
        history_problem: Option<String>,
    ) -> Self {
        let snapshot = &survey.snapshot;
        let unseen = history_problem.iter();
        let unseen = unseen.map(|why| format!("the history: {why}"));
        let alive = snapshot.alive().count() as u64;
        let absent = survey.absent();
        Self {
            board,
            server: health.server.clone(),
            trashed: health.trashed,
            history,
            unseen: unseen.chain(snapshot.unseen.iter().cloned()).collect(),
            history_problem,
            conductors: snapshot.sees_conductors.then_some(alive),
            slots_free: snapshot.free_slots(),
            silent: absent.values().sum(),
            absent,
            pauses: snapshot.pauses.all().cloned().collect(),
            now: snapshot.now,
            problems: CodeCount::of(survey.problems().iter().chain(&health.problem)),
            figures: survey.figures,
            names: survey.names,
            owners: survey.owners,
            program,
        }
    }

    fn facts(&self, page: &mut Page) {
        let figures = &self.figures;
        let of_these = |counts: &[(u64, &'static str)]| {
            let counts = counted(counts.iter().copied());
            match counts.is_empty() {
                true => String::new(),
                false => format!(" ({counts})"),
            }
        };
        let standing = |job: &Option<Standing>| job.as_ref().map(|job| job.in_words(self.now));
        let history = self.history.as_ref();
        let lately = history.map(|history| between(history.since, self.now));
        let lately = format!("last {}", lately.unwrap_or_default());
        let conductors = self.conductors.map(|count| match count {
            0 => "none".to_owned(),
            count => format!("{count}, free slots: {}", self.slots_free),
        });
        let waiting = [
            (figures.backing_off, "backing off"),
            (figures.paused, "paused"),
        ];
        let waiting = of_these(&waiting);
        let unreadable = match figures.of(Code::UnreadableRecord) {
            0 => String::new(),
            count => format!(" + {count} unreadable"),
        };
        let lately_trashed = of_these(&[(figures.trashed_lately, "new in the last day")]);
        let trashed = format!("{}{lately_trashed}", self.trashed);
        let count = figures.unclaimed;
        let unclaimed = format!("{count}{waiting}{unreadable}");
        let facts = [
            ("unclaimed", Some(unclaimed)),
            ("  oldest", standing(&figures.oldest_unclaimed)),
            ("claimed", Some(figures.claimed.to_string())),
            ("  longest", standing(&figures.longest_held)),
            ("in the trash", Some(trashed)),
            (&lately, history.map(ended)),
            ("conductors", conductors),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact {
                page.fact_with(name, Tone::Plain, &fact, None);
            }
        }
        let show = Suggestion::of("conductors").on(&self.program);
        for (word, count) in &self.absent {
            page.fact_with(
                &format!("  {word}"),
                Tone::Bad,
                &count.to_string(),
                Some(&show),
            );
        }
        for pause in &self.pauses {
            let resume = Suggestion::of("resume")
                .operand(&pause.names)
                .on(&self.program);
            page.fact_with("paused", Tone::Warning, &pause.to_string(), Some(&resume));
        }
    }

    fn problems(&self, page: &mut Page) {
        if self.problems.iter().any(|it| it.severity > Severity::Note) {
            page.line();
        }
        for of in &self.problems {
            let name = of.code.name();
            let line = page.line().add(tone(of.severity), format!("{name:<CODE$}"));
            let jobs = match of.jobs {
                0 => String::new(),
                jobs => count_jobs(jobs),
            };
            let line = line.plain(format!("{jobs:<10}  "));
            let command = Suggestion::of("doctor --only").with([name]);
            line.add(Tone::Strong, command.on(&self.program).to_string());
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
        cell(named.oldest.map(|time| between(time, now))),
    ]
}

pub(crate) const NAMES: &[Column] = &[
    Column::new("name", Fit::Shrinks),
    Column::new("jobs", Fit::Number),
    Column::new("unclaimed", Fit::Number).falling(Some(1)),
    Column::new("claimed", Fit::Number).falling(Some(0)),
    Column::new("failing", Fit::Number),
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

/// The column of the next expiry.
pub(crate) const EXPIRES: usize = 3;

pub(crate) fn owner_cells(owned: &ByOwner, now: DateTime<Utc>) -> Vec<Cell> {
    let unreadable = || Cell::toned(Tone::Bad, "?");
    let owner = owned.owner.as_ref();
    vec![
        owner.map_or_else(unreadable, |owner| Cell::new(owner.text())),
        Cell::new(owned.claims.to_string()),
        cell(owned.held_since.map(|time| between(time, now))),
        cell(owned.expires_in.map(brief)),
        wrong(owned.claim_never_expires),
        match owned.absence {
            Some(word) => Cell::toned(Tone::Bad, word),
            None => cell(owned.conductor.clone()),
        },
    ]
}

fn cell(text: Option<String>) -> Cell {
    text.map_or_else(|| Cell::toned(Tone::Faint, ABSENT), Cell::new)
}

fn wrong(count: u64) -> Cell {
    match count {
        0 => cell(None),
        count => Cell::toned(Tone::Bad, count.to_string()),
    }
}

pub(crate) fn ended(history: &OutcomeCounts) -> String {
    let counts = [
        (history.failed, "failed"),
        (history.consumed, "consumed"),
        (history.purged, "purged"),
        (history.moved, "moved"),
    ];
    let counts = counted(counts);
    match counts.is_empty() {
        true => "no job in the history".to_owned(),
        false => counts,
    }
}

fn shares(left: Option<usize>, names: usize, owners: usize) -> (usize, usize) {
    let (names, owners) = (names.min(MAX_LISTED), owners.min(MAX_LISTED));
    // Each table has an empty line, a title, and a line for the remaining rows.
    let left = left.unwrap_or(usize::MAX).saturating_sub(6);
    let names = names.min(MIN_ROWS.max(left - owners.min(left / 2)));
    (names, owners.min(MIN_ROWS.max(left.saturating_sub(names))))
}

fn more(page: &mut Page, count: usize, by: &str) {
    if count > 0 {
        page.more(format!("{count} more"), &format!("list --count --by {by}"));
    }
}

impl Report for Status {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        self.facts(page);
        self.problems(page);
        let (names, owners) = shares(page.rows_left(), self.names.len(), self.owners.len());
        let of_names = self.names.iter().take(names);
        page.table(NAMES, of_names.map(|it| name_cells(it, self.now)));
        more(page, self.names.len() - names, "name");
        let of_owners = self.owners.iter().take(owners);
        page.table(OWNERS, of_owners.map(|it| owner_cells(it, self.now)));
        more(page, self.owners.len() - owners, "owner");
    }
}
