//! One job in words: its state or problem, the evidence, and the command that helps.

use serde::Serialize;
use serde_json::Value;

use super::{
    Cause, CauseSubject, Snapshot,
    fixes::{FixTarget, finish_move, fix},
    runner::{Death, Runner, RunnerAnswer, absence, loads},
};
use crate::{
    conductor::policy::any_program,
    duration,
    job::{ClaimEnd, Entry, Holding, Job, Location, Stage, octavia},
    output::{Text, titled},
    problem::{Code, Fix, Problem},
    secret::covered_text,
    suggest::Suggestion,
};

/// The columns of a command that is shown.
const MAX_COMMAND: usize = 200;

pub(super) const OCTAVIA: &str = "octavia-task-flow-conductor-";

pub(crate) struct ExplainedJob<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) location: Location,
    /// Set if a second look found the claim not renewed.
    pub(crate) is_late: bool,
    /// The counted jobs ahead of it.
    pub(crate) before: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) job: String,
    pub(crate) name: String,
    pub(crate) verdict: Code,
    /// Whether the job runs, will run without help, or has ended well.
    pub(crate) will_run: bool,
    pub(crate) findings: Vec<Problem>,
    pub(crate) unseen: Vec<String>,
}

impl Explanation {
    pub(crate) fn title(&self) -> String {
        titled(&self.name, &self.job)
    }

    pub(crate) fn on(mut self, program: &Suggestion) -> Self {
        let findings = self.findings.into_iter();
        self.findings = findings.map(|it| it.on(program)).collect();
        self
    }
}

impl Snapshot {
    pub(crate) fn explain(&self, explained: &ExplainedJob<'_>) -> Explanation {
        let mut judged = self.judge(explained.entry);
        if explained.is_late {
            judged.main = Cause::not_renewed(explained.entry);
            judged.will_run = false;
        }
        let findings = judged.causes().map(|cause| self.describe(explained, cause));
        let title = explained.entry.job().and_then(octavia::title);
        Explanation {
            job: explained.entry.reference().into_owned(),
            name: title.unwrap_or_else(|| explained.entry.name().into_owned()),
            verdict: judged.main.code,
            will_run: judged.will_run,
            findings: findings.collect(),
            unseen: self.unseen.clone(),
        }
    }

    fn describe(&self, explained: &ExplainedJob<'_>, cause: &Cause) -> Problem {
        let reference = explained.entry.reference();
        let target = FixTarget::Job(&reference, explained.location);
        let problem = match explained.entry {
            Entry::Malformed(record) => {
                let is_in_trash = explained.location == Location::Trash;
                let harms_peers = self.peers.is_some() && explained.location == Location::Board;
                let place = is_in_trash.then_some("in the trash, where it does no harm");
                let harm = harms_peers.then_some("Python services fail on the record or delete it");
                let summary = format!("the record cannot be read: {}", record.problem);
                Problem::new(cause.code, summary)
                    .seen("size", format!("{} bytes", record.size))
                    .seen_any("place", place)
                    .seen_any("peers", harm)
            }
            Entry::Job(job) => {
                let problem = Problem::new(cause.code, self.sentence(explained, job, cause));
                self.with_evidence(problem, explained, job)
            }
        };
        let since = explained.entry.job().and_then(Job::held_since);
        let problem = Problem {
            severity: cause.severity(since, self.now),
            ..problem
        };
        let fix = match (cause.code, explained.entry.job()) {
            (Code::ClaimNotRenewed, Some(job)) => Some(self.restart(job, explained)),
            (Code::NoConductor, Some(job)) => Some(self.start(job)),
            (Code::ClaimExpiresSoon, Some(job)) => self.target_of_move(job).map(|to| finish_move("--to", to)),
            (Code::BackingOff | Code::Trashed, Some(job))
                if job.attempts.may_run_until(self.now).is_some() =>
            {
                Some(Fix::advice(
                    "wait: the former owner may still be running the job",
                ))
            }
            (Code::NoMatchingConductor, Some(job)) if job.has_no_command() => Some(
                Fix::act(Suggestion::of("change").with([&reference, "--", "COMMAND"]))
                    .because("add a handler with this name, or give the job a command"),
            ),
            (Code::NoMatchingConductor | Code::UnsettledJob, Some(job)) => {
                self.look_at_conductor(cause.code, job)
            }
            (Code::RetriesExhausted | Code::Failed, Some(job))
                if !job.has_no_command() && cause.about != CauseSubject::NoFailure =>
            {
                Some(target.retry().because(
                    "fix the cause, or correct the command with `jobboard change JOB -- COMMAND`; then retry",
                ))
            }
            _ => fix(cause, target),
        };
        problem.fixed_by(fix)
    }

    fn with_evidence(&self, problem: Problem, explained: &ExplainedJob<'_>, job: &Job) -> Problem {
        let problem = match problem.code {
            Code::UuidMismatch => {
                return problem.seen("uuid", &job.uuid).seen("key", job.key.text());
            }
            Code::ClockSkew | Code::BreaksPeers => return problem,
            Code::Paused => {
                let pause = self.pauses.of(&job.name, self.now);
                problem.at("paused", pause.and_then(|it| it.audit.on), self.now)
            }
            Code::UnfinishedMove => problem.seen("from", job.moved_from().unwrap_or_default()),
            Code::BackingOff => problem.at("until", job.attempts.not_before, self.now),
            _ => problem,
        };
        let names_command = matches!(
            problem.code,
            Code::BackingOff
                | Code::ConductorRefuses
                | Code::RetriesExhausted
                | Code::Failed
                | Code::InvalidCommand
        );
        let command = names_command.then(|| shown_command(job)).flatten();
        let problem = problem.seen_any("command", command);
        let problem = match &job.holding {
            Some(holding) => self.with_claim(problem, job, holding),
            None if job.location == Location::Trash => {
                problem.at("trashed", job.trashed_on, self.now)
            }
            None if job.ended.is_some() => {
                problem.at("ended", job.ended.as_ref().map(|it| it.on), self.now)
            }
            None => {
                self.with_answers(problem, explained, job)
                    .at("posted", job.created_on, self.now)
            }
        };
        let by = job.by().filter(|_| job.location != Location::Board);
        self.with_attempts(problem.seen_any("by", by), job)
    }

    fn with_claim(&self, problem: Problem, job: &Job, holding: &Holding) -> Problem {
        let owner = holding.owner.as_ref();
        let owner = owner.map_or_else(|| "?".into(), |it| it.text());
        let runners = self.runners.iter();
        let mut runners = runners.filter(|it| Some(&it.conductor.owner) == holding.owner.as_ref());
        let run = runners.find_map(|it| it.runs(job));
        let problem = problem
            .seen("owner", owner)
            .at("claimed", job.held_since(), self.now);
        let problem = problem.at("started", run.map(|run| run.since), self.now);
        match (holding.end, holding.expires_in) {
            (ClaimEnd::Never, _) => problem.seen("expires", "never"),
            (ClaimEnd::Session, _) => problem.seen("expires", "with the owner's session"),
            (ClaimEnd::Timed, left) => {
                let left = left.map(duration::brief).unwrap_or_default();
                problem.seen("expires", format!("in {left} unless renewed"))
            }
        }
    }

    /// Adds each conductor's answer. For a queued job, also adds the load of the conductors that accept it.
    fn with_answers(
        &self,
        mut problem: Problem,
        explained: &ExplainedJob<'_>,
        job: &Job,
    ) -> Problem {
        let mut accepting = Vec::new();
        let is_any_alive = self.runners_alive().next().is_some();
        let answering = self.runners.iter().filter(|it| !it.conductor.has_left);
        // Silent conductors answer only if no other does.
        for runner in answering.filter(|it| !(it.is_silent && is_any_alive)) {
            let answer = match runner.is_silent {
                true => {
                    let absence = absence(&runner.conductor).map_or("silent", Death::word);
                    RunnerAnswer::Skips(absence.to_owned())
                }
                false => runner.answer(explained.entry, job, self.now),
            };
            match answer.reason() {
                Some(reason) => problem = problem.seen(&runner.conductor.name, reason),
                None => accepting.push(runner),
            }
        }
        if matches!(problem.code, Code::Ready | Code::Waiting) {
            problem = problem.seen("busy", loads(&accepting, self.now));
        }
        match problem.code {
            Code::BackingOff => problem,
            _ => {
                let until = job.attempts.not_before.filter(|time| *time > self.now);
                problem.at("claimable", until, self.now)
            }
        }
    }

    fn with_attempts(&self, problem: Problem, job: &Job) -> Problem {
        if job.attempts.count == 0 {
            return problem;
        }
        let problem = problem.seen("attempts", job.attempts.count);
        let Some(last) = job.attempts.failures.last() else {
            return problem;
        };
        let (ago, by) = (duration::from_now(last.time, self.now), &last.conductor);
        let (what, how) = match last.is_release() {
            true => {
                let audit = job.attempts.audit.as_ref();
                let audit = audit.filter(|it| it.is_of("abandoned"));
                let operator = audit.map_or("an operator", |it| &it.by);
                ("released", format!("the claim of {by}, by {operator}"))
            }
            false => ("failed", format!("{}, by {by}", last.headline())),
        };
        problem.seen_at(what, format!("{how}, {ago}"), last.time)
    }

    /// Returns the conductor whose name holds the claim.
    pub(super) fn runner_of(&self, job: &Job) -> Option<&Runner> {
        let mut runners = self.runners.iter();
        runners.find(|it| Some(&it.conductor.owner) == job.owner())
    }

    /// Returns the target of the move that holds the claim.
    fn target_of_move(&self, job: &Job) -> Option<&str> {
        let owner = job.owner()?;
        self.moves.iter().find_map(|it| match &it.stage {
            Stage::Begun { to, .. } if it.owner == *owner => Some(to.as_str()),
            Stage::Begun { .. } | Stage::Committed { .. } => None,
        })
    }

    fn restart(&self, job: &Job, explained: &ExplainedJob<'_>) -> Fix {
        let runner = self.runner_of(job);
        let is_of_octavia = job.owner().is_some_and(|it| it.text().starts_with(OCTAVIA));
        let text = match runner {
            Some(_) => "restart the conductor",
            None if is_of_octavia => {
                "restart the octavia-worker whose log contains that name; after the claim expires, \
                 a second worker runs the job too"
            }
            None => "restart the owner; after the claim expires, a second worker runs the job too",
        };
        Fix::look(match runner {
            Some(runner) => Suggestion::of("conductors").operand(&runner.conductor.name),
            None => Suggestion::of("show").with([explained.entry.reference()]),
        })
        .because(text)
    }

    fn start(&self, job: &Job) -> Fix {
        let wanted = job.details.as_ref().and_then(|it| it.get("command"));
        let program = wanted.as_deref().and_then(|it| it.get(0)?.as_str());
        let command = Suggestion::of("conduct");
        match program {
            Some(program) if self.peers.is_some() => {
                let program = match program.starts_with('/') {
                    true => program.to_owned(),
                    false => format!("/usr/bin/{program}"),
                };
                let warning = any_program(&program);
                Fix::act(command.with(["--allow".to_owned(), program])).because(format!(
                    "start a conductor that may run the program{warning}"
                ))
            }
            Some(_) => Fix::act(command).because("start a conductor"),
            None => Fix::act(command.with(["--handlers", "DIR"])).because(
                "give the job a command (`jobboard change JOB -- COMMAND`), or start a conductor \
                     that has a handler with this name",
            ),
        }
    }

    fn look_at_conductor(&self, code: Code, job: &Job) -> Option<Fix> {
        let runner = self
            .runner_of(job)
            .or_else(|| self.runners_alive().next())?;
        let text = match code {
            Code::UnsettledJob => "fix the cause, and the conductor settles the job",
            _ => "add a handler with this name, or a conductor that accepts the job",
        };
        let command = Suggestion::of("conductors").operand(&runner.conductor.name);
        Some(Fix::look(command).because(text))
    }
}

/// The beginning of a job's command in one line, with its secrets masked.
fn shown_command(job: &Job) -> Option<String> {
    let command = job.details.as_ref()?.get("command")?;
    let words: Option<Vec<_>> = command.as_array()?.iter().map(Value::as_str).collect();
    let masked = covered_text(&words?.join(" "));
    let line = masked.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Text::from(&line).cut(MAX_COMMAND).to_string())
}
