//! The screen of `doctor`.

use std::{borrow::Cow, collections::BTreeSet};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::plan::FixStep;
use crate::{
    board::BoardError,
    commands::parts::problems,
    diagnosis::{Checkup, Snapshot},
    job::Pause,
    output::{Cell, Page, Report, Row, Tone, count_jobs},
    problem::{Code, Group, Problem, Severity},
    suggest::Suggestion,
};

#[derive(Debug, Serialize)]
pub(super) struct Diagnosis {
    board: String,
    server: Option<String>,
    /// In seconds.
    round_trip: Option<f64>,
    pub(super) sound: bool,
    /// The error that kept it from reading the jobs.
    #[serde(skip)]
    pub(super) unread: Option<BoardError>,
    groups: Vec<GroupState>,
    pub(super) problems: Vec<Problem>,
    /// The number of jobs with a paused name, of jobs that are backing off, and of those that wait for a free slot.
    paused: u64,
    backing_off: u64,
    waiting: u64,
    #[serde(skip)]
    busy: String,
    pauses: Vec<Pause>,
    unseen: Vec<Unseen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fixed: Option<Vec<FixStep>>,
    #[serde(skip)]
    only: String,
    #[serde(skip)]
    now: DateTime<Utc>,
    #[serde(skip)]
    program: Suggestion,
}

#[derive(Debug, Serialize)]
struct GroupState {
    group: Group,
    /// `ok`, the worst of its problems, or `unknown`.
    state: &'static str,
}

#[derive(Debug, Serialize)]
struct Unseen {
    group: Group,
    what: String,
}

impl Diagnosis {
    pub(super) fn new(
        board: &str,
        checkup: Checkup,
        groups: &[Group],
        only: String,
        program: Suggestion,
    ) -> Self {
        let unseen = checkup.unseen.into_iter();
        let unseen: Vec<_> = unseen.map(|(group, what)| Unseen { group, what }).collect();
        let problems = checkup.problems.into_iter().map(|it| it.on(&program));
        let problems: Vec<_> = problems.collect();
        let state = |group: &Group| {
            let of = problems.iter().filter(|it| it.code.group() == *group);
            let is_unseen = unseen.iter().any(|it| it.group == *group);
            let state = match of.map(|it| it.severity).max() {
                Some(severity) if severity > Severity::Note || !is_unseen => severity.name(),
                _ if is_unseen => "unknown",
                _ => "ok",
            };
            GroupState {
                group: *group,
                state,
            }
        };
        let snapshot = checkup.survey.as_ref().map(|it| &it.snapshot);
        let pauses = snapshot.iter().flat_map(|it| it.pauses.all());
        let figures = checkup.survey.as_ref().map(|it| &it.figures);
        Self {
            board: board.to_owned(),
            server: checkup.health.map(|health| health.server),
            round_trip: checkup.round_trip.map(|it| it.as_secs_f64()),
            sound: checkup.unread.is_none() && !problems.iter().any(Problem::is_wrong),
            unread: checkup.unread,
            groups: groups.iter().map(state).collect(),
            paused: figures.map_or(0, |it| it.paused),
            backing_off: figures.map_or(0, |it| it.backing_off),
            waiting: figures.map_or(0, |it| it.waiting),
            busy: snapshot.map(Snapshot::busy).unwrap_or_default(),
            pauses: pauses.cloned().collect(),
            problems,
            unseen,
            fixed: None,
            only,
            now: Utc::now(),
            program,
        }
    }

    fn headline(&self, page: &mut Page) {
        let wrong = self.problems.iter().filter(|it| it.is_wrong()).count();
        let notes = self.problems.len() - wrong;
        // Several groups may lack the same part.
        let unseen: BTreeSet<_> = self.unseen.iter().map(|it| &it.what).collect();
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let wrong = match wrong {
            0 if self.unread.is_some() => "the jobs could not be read".to_owned(),
            0 if unseen.is_empty() => "no problems".to_owned(),
            0 => format!("no problems found{}", problems::unchecked(unseen.len())),
            wrong => format!("{wrong} problem{}", plural(wrong)),
        };
        let notes = match notes {
            0 => String::new(),
            notes => format!(", {notes} note{}", plural(notes)),
        };
        let line = page.sentence(2).add(Tone::Strong, &self.board);
        let only = match self.only.as_str() {
            "" => String::new(),
            only => format!(" ({only} only)"),
        };
        let line = line.plain(format!(": {wrong}{notes}{only}"));
        if let Some(server) = &self.server {
            let round_trip = self.round_trip.map(|it| format!(", {:.2} ms", it * 1e3));
            let server = format!("  ({server}{})", round_trip.unwrap_or_default());
            line.add(Tone::Faint, server);
        }
    }

    fn on_purpose(&self, page: &mut Page) {
        if self.groups.iter().all(|it| it.group != Group::Jobs) {
            return;
        }
        let mut facts = Vec::new();
        if self.paused > 0 {
            let pauses = self.pauses.iter().take(3);
            let pauses: Vec<_> = pauses.map(ToString::to_string).collect();
            facts.push(format!("{} paused ({})", self.paused, pauses.join("; ")));
        }
        if self.backing_off > 0 {
            facts.push(format!("{} backing off", self.backing_off));
        }
        if !facts.is_empty() {
            let line = page.sentence(2).add(Tone::Faint, "waiting as intended: ");
            line.plain(facts.join(", "));
        }
        if self.waiting > 0 {
            let line = page
                .sentence(2)
                .add(Tone::Faint, "waiting for a free slot: ");
            line.plain(format!("{}; {}", count_jobs(self.waiting), self.busy));
        }
    }
}

impl Report for Diagnosis {
    fn human(&self, page: &mut Page) {
        self.headline(page);
        if !self.problems.is_empty() {
            page.line();
        }
        for problem in &self.problems {
            problems::print(problem, self.now, page);
        }
        for (at, it) in self.unseen.iter().enumerate() {
            if !self.unseen[..at]
                .iter()
                .any(|before| before.what == it.what)
            {
                let line = page.sentence(2).add(Tone::Faint, "not checked: ");
                line.plain(&it.what);
            }
        }
        self.on_purpose(page);
        let is_fixable = |it: &&Problem| it.fix.as_ref().is_some_and(|fix| fix.risk.is_some());
        let fixable = self.problems.iter().filter(is_fixable).count();
        if fixable > 0 && self.fixed.is_none() {
            let fix = Suggestion::of("doctor --fix").on(&self.program);
            let text = match fixable {
                1 => "to review and run this fix: ".to_owned(),
                fixable => format!("to review and run these {fixable} fixes: "),
            };
            page.command(&text, &fix);
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ListedCheck {
    code: Code,
    group: Group,
    severity: Severity,
    impact: &'static str,
}

impl ListedCheck {
    pub(super) fn of(code: Code) -> Self {
        let (group, severity, impact) = code.meaning();
        Self {
            code,
            group,
            severity,
            impact,
        }
    }
}

impl Row for ListedCheck {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        let (group, severity) = (self.group.name(), self.severity.name());
        [group, self.code.name(), severity, self.impact]
            .map(Cow::from)
            .to_vec()
    }

    fn cells(&self) -> Vec<Cell> {
        self.fields().into_iter().map(Cell::new).collect()
    }
}
