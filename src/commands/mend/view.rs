//! The screens of `mend`.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::plan::{RepairPlan, Step};
use crate::{
    diagnosis::{JudgedBalancer, Verdict, Workers},
    duration,
    job::{Entry, Job, Location, octavia},
    logbook::{LoadBalancer, StuckAmphora, position},
    output::{Cell, Page, Report, Row, Tone, rfc3339, short},
    suggest::Suggestion,
};

#[derive(Debug, Serialize)]
pub(super) struct MendReport {
    load_balancer: String,
    name: String,
    pub(super) status: String,
    since: Option<String>,
    verdict: Verdict,
    why: String,
    board: String,
    /// The reference of its job, on the board or in the trash.
    job: Option<String>,
    logbook: String,
    workers: String,
    plan: Vec<PlannedStep>,
    /// The steps carried out; `None` without --apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<Vec<DoneStep>>,
    #[serde(skip)]
    advice: Option<&'static str>,
    #[serde(skip)]
    long: Option<String>,
    #[serde(skip)]
    apply: Option<Suggestion>,
}

#[derive(Debug, Serialize)]
struct PlannedStep {
    step: &'static str,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct DoneStep {
    step: &'static str,
    at: String,
    what: String,
}

impl MendReport {
    pub(super) fn new(
        judged: &JudgedBalancer,
        workers: Workers,
        plan: &RepairPlan,
        program: Option<Suggestion>,
    ) -> Self {
        let (balancer, now) = (&judged.balancer, Utc::now());
        let is_applicable = plan.steps.iter().any(|it| *it != Step::Wait);
        let program = program.filter(|_| is_applicable);
        Self {
            load_balancer: balancer.id.clone(),
            name: balancer.name.clone(),
            status: balancer.status.clone(),
            since: balancer.since.map(rfc3339),
            verdict: judged.verdict,
            why: judged.why.clone(),
            board: on_board(judged),
            job: job(judged).map(|job| job.reference().into_owned()),
            logbook: match &judged.flow {
                Some(flow) => {
                    let name = octavia::flow(&flow.name).unwrap_or(&flow.name);
                    format!("{name}: {}", position(flow, now))
                }
                None => "no flow of it".to_owned(),
            },
            workers: match workers.alive {
                Some(alive) => format!("{alive} registered, {} with a job", workers.busy),
                None => format!(
                    "{} with a job; this board does not list idle workers",
                    workers.busy
                ),
            },
            plan: (plan.steps.iter())
                .map(|it| PlannedStep::of(it, balancer))
                .collect(),
            done: None,
            advice: plan.advice,
            long: balancer.since.map(|it| duration::between(it, now)),
            apply: program.map(|it| it.with(["mend", "--lb", &balancer.id, "--apply"])),
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut page = Page::new(None);
        self.human(&mut page);
        page.into_text().lines().map(str::to_owned).collect()
    }

    pub(super) fn add_done(&mut self, step: &Step, what: String) {
        let done = DoneStep {
            step: step.name(),
            at: rfc3339(Utc::now()),
            what,
        };
        self.done.get_or_insert_default().push(done);
    }
}

fn job(judged: &JudgedBalancer) -> Option<&Job> {
    judged.job.as_ref().and_then(Entry::job)
}

fn on_board(judged: &JudgedBalancer) -> String {
    let Some(job) = job(judged) else {
        return match judged.verdict {
            Verdict::Unclear => judged.why.clone(),
            _ => "no job about it, none in the trash".to_owned(),
        };
    };
    let name = octavia::flow(&job.name).unwrap_or(&job.name);
    let reference = job.reference();
    let reference = short(&reference);
    match (job.location, job.owner()) {
        (Location::Trash, _) => format!("{name} {reference} is in the trash"),
        (_, Some(owner)) => format!("{name} {reference}, claimed by {owner}"),
        (_, None) if judged.in_front > 0 => {
            let front = judged.in_front;
            format!("{name} {reference} is unclaimed, {front} jobs go first")
        }
        (_, None) => format!("{name} {reference} is unclaimed, and the next in line"),
    }
}

impl PlannedStep {
    fn of(step: &Step, balancer: &LoadBalancer) -> Self {
        let what = match step {
            Step::Release => "release the claim of the dead worker",
            Step::Restore => "move the job back to the board; a worker resumes it",
            Step::Repost => "post the job again from its logbook; a worker resumes it",
            Step::SetError(_) => "set the load balancer to ERROR",
            Step::FailOver(_) => "fail it over",
            Step::Delete(_) => "delete it again",
            Step::Wait if balancer.is_to_be_deleted() => "wait until it is deleted",
            Step::Wait => "wait until it is ACTIVE",
        };
        let (sql, command) = match step {
            Step::SetError(sql) => (Some(sql.clone()), None),
            Step::FailOver(command) | Step::Delete(command) => (None, Some(command.clone())),
            Step::Release | Step::Restore | Step::Repost | Step::Wait => (None, None),
        };
        Self {
            step: step.name(),
            what,
            sql,
            command,
        }
    }
}

impl Report for MendReport {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        for it in self.done.iter().flatten() {
            page.fact(it.step, &it.what);
        }
        let line = page.line().add(Tone::Strong, &self.name).plain("  ");
        let line = line.plain(&self.load_balancer).plain("  ");
        let line = line.add(tone(&self.status), &self.status);
        if self.done.is_some() {
            return;
        }
        if let Some(long) = &self.long {
            line.plain(format!(" for {long}"));
        }
        page.fact("verdict", format!("{}: {}", self.verdict, self.why));
        page.fact("board", &self.board);
        page.fact("logbook", &self.logbook);
        page.fact("workers", &self.workers);
        for (at, it) in self.plan.iter().enumerate() {
            let name = if at == 0 { "plan" } else { "" };
            page.fact(name, format!("{} {}", at + 1, it.what));
            let below = it.sql.as_ref().or(it.command.as_ref());
            page.facts("", below.map(|below| format!("  {below}")));
        }
        page.facts("advice", self.advice);
        if let Some(apply) = &self.apply {
            page.command("apply: ", apply);
        }
    }
}

fn tone(status: &str) -> Tone {
    match status {
        "ACTIVE" => Tone::Good,
        "ERROR" => Tone::Bad,
        _ => Tone::Warning,
    }
}

#[derive(Debug, Serialize)]
pub(super) struct StuckRow {
    kind: &'static str,
    id: String,
    name: Option<String>,
    load_balancer: Option<String>,
    status: String,
    since: Option<DateTime<Utc>>,
    verdict: Verdict,
    why: Option<String>,
    next: Suggestion,
    /// Whether that is a command of ours, which takes the beginning of an id.
    #[serde(skip)]
    is_ours: bool,
}

impl StuckRow {
    pub(super) fn of_balancer(judged: &JudgedBalancer, program: &Suggestion) -> Self {
        let balancer = &judged.balancer;
        Self {
            kind: "lb",
            id: balancer.id.clone(),
            name: Some(balancer.name.clone()),
            load_balancer: Some(balancer.id.clone()),
            status: balancer.status.clone(),
            since: balancer.since,
            verdict: judged.verdict,
            why: Some(judged.why.clone()),
            next: program.clone().with(["mend", "--lb", &balancer.id]),
            is_ours: true,
        }
    }

    /// An amphora is stuck for the reason of its load balancer, if that is pending.
    pub(super) fn of_amphora(
        amphora: &StuckAmphora,
        balancers: &[JudgedBalancer],
        program: &Suggestion,
    ) -> Self {
        let owner = amphora.load_balancer.as_ref();
        let judged = balancers.iter().find(|it| Some(&it.balancer.id) == owner);
        let openstack = |verb: &str| {
            let command = Suggestion::of("openstack loadbalancer amphora");
            command.with([verb, &amphora.id])
        };
        let next = match (judged, owner) {
            (Some(judged), _) => {
                let id = &judged.balancer.id;
                program.clone().with(["mend", "--lb", id])
            }
            (None, Some(_)) => openstack("failover"),
            (None, None) => openstack("delete"),
        };
        Self {
            kind: "amphora",
            id: amphora.id.clone(),
            name: None,
            load_balancer: owner.cloned(),
            status: amphora.status.clone(),
            since: amphora.since,
            verdict: match (judged, amphora.status.as_str()) {
                (Some(judged), _) => judged.verdict,
                (None, "ERROR") => Verdict::Failed,
                (None, _) => Verdict::Inconsistent,
            },
            why: judged.map(|it| it.why.clone()),
            next,
            is_ours: judged.is_some(),
        }
    }
}

impl Row for StuckRow {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        let long = |since| duration::between(since, Utc::now());
        vec![
            self.kind.into(),
            (&self.id).into(),
            self.name.as_deref().unwrap_or_default().into(),
            (&self.status).into(),
            self.since.map(long).unwrap_or_default().into(),
            self.verdict.to_string().into(),
            self.next.to_string().into(),
        ]
    }

    /// The beginnings of the ids are enough for people.
    fn cells(&self) -> Vec<Cell> {
        let next = match (&self.load_balancer, self.is_ours) {
            (Some(id), true) => self.next.to_string().replace(id, short(id)),
            _ => self.next.to_string(),
        };
        let fields = self.fields().into_iter().enumerate();
        let cells = fields.map(|(at, text)| match at {
            1 => Cell::new(short(&text)),
            5 if self.verdict.needs_operator() => Cell::toned(Tone::Bad, text),
            6 => Cell::toned(Tone::Strong, &next),
            _ => Cell::new(text),
        });
        cells.collect()
    }
}
