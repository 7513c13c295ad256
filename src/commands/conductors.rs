//! `jobboard conductors`.

use std::{borrow::Cow, collections::HashSet, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, SubsecRound, Utc};
use futures_util::TryStreamExt;
use serde::Serialize;

use super::parts::notes;
use crate::{
    board::{self, Board, BoardError, Detail, Query},
    context::Context,
    diagnosis::{Death, absence, is_silent},
    duration,
    exit::CommandError,
    job::{Conductor, Course, Location, PublishedPolicy},
    output::{ABSENT, Cell, Column, Fit, Page, Report, Row, Tone, rfc3339, short},
};

/// List the running conductors
///
/// SEEN is the time since the last heartbeat. A conductor sends one every ten seconds, and within a second of any
/// change. `silent` means that heartbeats are missing, `gone` that its process on this machine has ended, and `stopped`
/// that the process is stopped (SIGSTOP): `kill -CONT PID` resumes it. After 30 seconds without a heartbeat, a conductor
/// is listed only while it holds a claim or, on ZooKeeper, until its session ends. DOING is the conductor's
/// longest-running job. Jobs that a conductor could not settle are listed on standard error, with the reason. In a pipe,
/// SEEN is the time of the last heartbeat, and the last field is `gone`, `stopped`, `silent` or empty.
#[derive(Debug, clap::Args)]
pub(crate) struct ConductorsArgs {
    /// Show the conductors whose names begin with NAME in detail, with the jobs that they skip and the reasons
    name: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ListedConductor {
    #[serde(flatten)]
    conductor: Conductor,
    last_seen: Option<DateTime<Utc>>,
    silent: bool,
    #[serde(skip)]
    now: DateTime<Utc>,
}

impl ListedConductor {
    pub(super) fn new(conductor: Conductor, now: DateTime<Utc>) -> Self {
        Self {
            last_seen: conductor
                .silence
                .map(|silence| (now - silence).trunc_subsecs(6)),
            silent: is_silent(&conductor),
            conductor,
            now,
        }
    }

    fn age(&self, time: DateTime<Utc>) -> String {
        duration::between(time, self.now)
    }

    fn last_heartbeat(&self) -> String {
        let ago = self.conductor.silence.map(duration::brief);
        match (self.silent, ago) {
            (true, ago) => {
                let state = self.absence();
                format!("{state} {}", ago.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            }
            (false, ago) => ago.unwrap_or_default(),
        }
    }

    fn absence(&self) -> &'static str {
        absence(&self.conductor).map_or("", Death::word)
    }

    fn texts(&self) -> [String; 9] {
        let (conductor, report) = (&self.conductor, &self.conductor.report);
        let number = |number: Option<usize>| number.map_or_else(String::new, |it| it.to_string());
        [
            conductor.name.clone(),
            conductor.host.clone(),
            conductor.pid.to_string(),
            self.last_heartbeat(),
            number(report.running),
            number(report.slots),
            report.counters.done.to_string(),
            report.counters.failed.to_string(),
            self.doing(),
        ]
    }

    fn doing(&self) -> String {
        let report = &self.conductor.report;
        let course = match report.course {
            Course::Working => "",
            Course::Draining => "draining",
            Course::Quiet => "quiet",
            Course::Ending => "ending",
        };
        let Some(first) = report.runs.first() else {
            return course.to_owned();
        };
        let more = match report.running.unwrap_or_default().saturating_sub(1) {
            0 => String::new(),
            more => format!(" +{more}"),
        };
        let doing = format!("{} {}{more}", first.name, self.age(first.since));
        match course {
            "" => doing,
            course => format!("{course}: {doing}"),
        }
    }
}

pub(super) const COLUMNS: &[Column] = &[
    Column::new("name", Fit::KeepsEnds),
    Column::new("host", Fit::Shrinks).falling(Some(0)),
    Column::new("pid", Fit::Number).falling(Some(1)),
    Column::new("seen", Fit::Number),
    Column::new("running", Fit::Number),
    Column::new("slots", Fit::Number),
    Column::new("done", Fit::Number),
    Column::new("failed", Fit::Number),
    Column::new("doing", Fit::Shrinks),
];

impl Row for ListedConductor {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        let seen = self.last_seen.map_or_else(String::new, rfc3339);
        let [name, host, pid, _, running, slots, done, failed, doing] = self.texts();
        let state = self.absence().to_owned();
        [
            name, host, pid, seen, running, slots, done, failed, doing, state,
        ]
        .map(Cow::from)
        .into()
    }

    fn cells(&self) -> Vec<Cell> {
        let cells = self.texts().into_iter().zip(COLUMNS);
        let cell = |(text, column): (String, &Column)| match (text.as_str(), &*column.title) {
            ("", _) => Cell::new(ABSENT),
            (name, "name") => Cell::toned(Tone::Strong, name),
            (seen, "seen") if self.silent => Cell::toned(Tone::Bad, seen),
            (text, _) => Cell::new(text),
        };
        cells.map(cell).collect()
    }
}

impl Report for ListedConductor {
    const IS_TEXT: bool = true;

    fn fields(&self) -> Vec<String> {
        let fields = Row::fields(self).into_iter();
        fields.map(Cow::into_owned).collect()
    }

    fn human(&self, page: &mut Page) {
        let (conductor, report) = (&self.conductor, &self.conductor.report);
        page.line().add(Tone::Strong, &conductor.name);
        let seen = match self.silent {
            true => Tone::Bad,
            false => Tone::Plain,
        };
        let ago = self.conductor.silence.map(duration::brief);
        let ago = ago.map(|ago| format!("{ago} ago"));
        let state = self.absence();
        let last = match ago {
            Some(ago) if self.silent => format!("{ago} ({state})"),
            ago => ago.unwrap_or_else(|| state.to_owned()),
        };
        page.fact_with("seen", seen, &last, None);
        let (pid, host) = (conductor.pid, &conductor.host);
        page.fact("process", format!("{pid} on {host}"));
        let (since, age) = (rfc3339(conductor.since), self.age(conductor.since));
        page.fact("since", format!("{since} ({age} ago)"));
        page.fact("claims as", conductor.owner.text());
        page.facts("version", &report.version);
        let lease = report.lease;
        let lease = lease.and_then(|it| Duration::try_from_secs_f64(it).ok());
        page.facts("lease", lease.map(duration::brief));
        let counters = report.counters;
        let ended = format!("{} succeeded, {} failed", counters.done, counters.failed);
        let others = format!("{} postponed, {} lost", counters.postponed, counters.lost);
        page.fact("attempts", format!("{ended}, {others}"));
        if let Some(takes) = &report.takes {
            human_takes(takes, page);
        }
        self.jobs(page);
    }
}

impl ListedConductor {
    fn jobs(&self, page: &mut Page) {
        let report = &self.conductor.report;
        if let (Some(running), Some(slots)) = (report.running, report.slots) {
            let course = match report.course {
                Course::Working => "",
                Course::Draining => ", draining",
                Course::Quiet => ", quiet: claims nothing until SIGUSR1",
                Course::Ending => ", stopping: claims nothing more",
            };
            page.fact("runs", format!("{running} of {slots} slots{course}"));
        }
        for run in &report.runs {
            let (uuid, name, age) = (short(&run.uuid), &run.name, self.age(run.since));
            let attempt = run.attempt;
            page.block(&format!("{uuid} {name} for {age}, attempt {attempt}"));
        }
        if !report.passed_over.is_empty() {
            page.heading("skipped jobs, as counted when it last listed the board");
        }
        for left in &report.passed_over {
            let (jobs, job, name) = (left.jobs, short(&left.job), &left.such_as);
            let reason = &left.reason;
            page.block(&format!("{jobs}, for example {job} {name}: {reason}"));
        }
        if !report.unsettled.is_empty() {
            page.heading("cannot settle");
        }
        for job in &report.unsettled {
            let (uuid, name, reason) = (short(&job.uuid), &job.name, &job.reason);
            page.block(&format!("{uuid} {name}: {reason}"));
        }
    }
}

fn human_takes(takes: &PublishedPolicy, page: &mut Page) {
    if !takes.filters.is_empty() {
        page.fact("filters", takes.filters.join(", "));
    }
    let listed = |patterns: &[String], none: &str| match patterns {
        [] => none.to_owned(),
        patterns => patterns.join(", "),
    };
    let any = |patterns: &Option<Vec<String>>, none: &str| {
        let patterns = patterns.as_deref();
        patterns.map_or_else(|| "any".to_owned(), |patterns| listed(patterns, none))
    };
    if let Some(command) = &takes.command {
        page.fact("command", &command.program);
        if let Some(problem) = &command.problem {
            page.block(&format!("refused: {problem}"));
        }
        return;
    }
    page.fact("programs", any(&takes.programs, "no program from a job"));
    page.fact("variables", any(&takes.variables, "no variable from a job"));
    if let Some(handlers) = &takes.handlers {
        let usable = handlers.iter().filter(|(_, problem)| problem.is_none());
        let names: Vec<_> = usable.map(|(name, _)| name.clone()).collect();
        let more = match takes.more_handlers {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        page.fact("handlers", format!("{}{more}", listed(&names, "none")));
        for problem in handlers.values().flatten() {
            page.block(&format!("refused: {problem}"));
        }
    }
}

/// Drops the conductors whose registration ended, except the owners of claims.
async fn drop_departed(board: &dyn Board, conductors: &mut Vec<Conductor>) -> board::Result<()> {
    let departed = conductors.iter().filter(|it| it.has_left);
    let mut without: HashSet<_> = departed.map(|it| it.owner.clone()).collect();
    if without.is_empty() {
        return Ok(());
    }
    let mut entries = board.entries(Query::all(Location::Board, Detail::Brief));
    while let Some(entry) = entries.try_next().await? {
        if let Some(owner) = entry.holding().and_then(|it| it.owner.as_ref()) {
            without.remove(owner);
        }
    }
    conductors.retain(|it| !it.has_left || !without.contains(&it.owner));
    Ok(())
}

pub(crate) async fn run(ctx: &mut Context, args: ConductorsArgs) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let mut conductors = match board.conductors().await {
        Err(BoardError::Crowded { known, more }) => {
            ctx.out.note(format!(
                "{more} more conductors are registered but not shown"
            ));
            known
        }
        conductors => conductors.with_context(|| ctx.trying("list", "the conductors"))?,
    };
    let dropped = drop_departed(&*board, &mut conductors).await;
    dropped.with_context(|| ctx.trying("list", "the conductors"))?;
    let now = Utc::now();
    let seen = conductors
        .into_iter()
        .map(|it| ListedConductor::new(it, now));
    let mut seen: Vec<_> = seen.collect();
    if let Some(name) = args.name {
        let is_known = seen.iter().any(|it| it.conductor.name == name);
        seen.retain(|it| match is_known {
            true => it.conductor.name == name,
            false => it.conductor.name.starts_with(&name),
        });
        return match seen.as_slice() {
            [] => Err(CommandError::NoConductor(name.clone()))
                .with_context(|| ctx.trying("show", name)),
            [one] if !ctx.out.is_json() => ctx.out.report(one),
            several => ctx.out.reports(several),
        };
    }
    if seen.is_empty() {
        notes::note_empty(ctx, &*board, "no conductor is running", false).await?;
    }
    let mut rows = ctx.out.rows(COLUMNS);
    seen.iter().try_for_each(|it| rows.push(it))?;
    rows.finish()?;
    // Without the right to read pauses, the conductors are still listed.
    for pause in board.pauses().await.unwrap_or_default() {
        if !pause.is_over(now) {
            ctx.out.note(pause.to_string());
        }
    }
    for ListedConductor { conductor, .. } in &seen {
        for job in &conductor.report.unsettled {
            let (by, uuid, name) = (&conductor.name, short(&job.uuid), &job.name);
            ctx.out
                .note(format!("{by} cannot settle {uuid} {name}: {}", job.reason));
        }
    }
    Ok(())
}
