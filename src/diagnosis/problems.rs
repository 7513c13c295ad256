//! The problems of a survey: one for each cause, with one command that covers all its jobs.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use chrono::TimeDelta;

use super::{
    Cause, CauseSubject, ProblemSelector, Snapshot, Survey,
    causes::{CLAIMED, Cases, NO_OWNER},
    fixes::{FixTarget, finish_move, fix, resume_process},
    holder::{Death, is_move_over},
    runner::{absence, is_silent},
};
use crate::{
    duration,
    glob::literal,
    job::{Conductor, Stage},
    problem::{Code, Fix, Problem, Severity, sort},
    suggest::Suggestion,
};

/// The causes of one code that are shown apart; the others are shown as one problem.
const APART: usize = 4;

/// The causes that are named where they are shown as one problem.
const MAX_NAMED_CAUSES: usize = 3;

/// The longest cause in a command, in characters.
const MAX_GLOB_CHARS: usize = 30;

impl Cause {
    /// Returns what `--problem` selects its jobs by, and no jobs with another of these causes.
    fn selector(&self, causes: &[(&Self, &Cases)]) -> String {
        let about = self.about.to_string();
        // Easy to type in any shell: other characters match as any one character.
        let is_plain = |it: char| it.is_alphanumeric() || " _@%+=:,./-#".contains(it);
        let plain = |it: char| if is_plain(it) { it } else { '?' };
        let glob: String = about.chars().take(MAX_GLOB_CHARS).map(plain).collect();
        let short = match (glob.as_str(), about.chars().nth(MAX_GLOB_CHARS)) {
            ("", _) => self.code.name().to_owned(),
            (_, None) => format!("{}={glob}", self.code),
            (_, Some(_)) => format!("{}={glob}*", self.code),
        };
        let selected = short.parse::<ProblemSelector>();
        let is_taken =
            |other: &Self| other != self && selected.as_ref().is_ok_and(|it| it.fits(other));
        match causes.iter().any(|(other, _)| is_taken(other)) {
            false => short,
            true => format!("{}={}", self.code, literal(&self.about.exact())),
        }
    }
}

impl Survey {
    /// Returns the problems of the jobs, conductors, pauses, moves and keys. Every command that lists or counts problems
    /// uses this list.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = self.of_jobs();
        problems.extend(self.of_conductors());
        problems.extend(self.snapshot.of_pauses());
        problems.extend(self.snapshot.of_moves());
        problems.extend(self.snapshot.keys.iter().cloned());
        sort(&mut problems);
        problems
    }

    fn of_jobs(&self) -> Vec<Problem> {
        let mut by_code: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (cause, cases) in &self.causes {
            if cause.code.is_problem() {
                by_code.entry(cause.code).or_default().push((cause, cases));
            }
        }
        let mut problems = Vec::new();
        for (code, mut causes) in by_code {
            causes.sort_by_key(|(cause, cases)| (Reverse(cases.count), *cause));
            let apart = match code {
                Code::NoMatchingConductor => 1,
                _ => APART,
            };
            let shown = match causes.len() > apart {
                true => apart - 1,
                false => causes.len(),
            };
            let mut others = self.figures.of(code);
            for (cause, cases) in &causes[..shown] {
                let selector = cause.selector(&causes);
                problems.push(self.block(cause, cases, &selector));
                others = others.saturating_sub(cases.count);
            }
            if others > 0 {
                let mut problem = self.joined(code, &causes[shown..]);
                // Rare causes may have been dropped.
                problem.jobs = others;
                // A command for the whole code would act on the jobs of the other problems, too.
                if shown > 0 && problem.fix.as_ref().is_some_and(|fix| fix.risk.is_some()) {
                    let look = Suggestion::of("list").with(["--problem", code.name()]);
                    problem.fix = Some(Fix::look(look).because("the causes differ"));
                }
                problems.push(problem);
            }
        }
        problems
    }

    fn joined(&self, code: Code, all: &[(&Cause, &Cases)]) -> Problem {
        let mut joined = Cases::default();
        for (_, cases) in all {
            joined.join((*cases).clone());
        }
        let named = all.iter().take(MAX_NAMED_CAUSES);
        let with_count = |(cause, cases): &(&Cause, &Cases)| match cases.count {
            1 => cause.about.to_string(),
            count => format!("{} ({count})", cause.about),
        };
        let named: Vec<_> = named.map(with_count).collect();
        let mut about = named.join(", ");
        if all.is_empty() {
            about = "many different causes".to_owned();
        } else if all.len() > MAX_NAMED_CAUSES {
            about += &format!(" and {} more", all.len() - MAX_NAMED_CAUSES);
        }
        self.block(
            &Cause::new(code, CauseSubject::Several(about)),
            &joined,
            code.name(),
        )
    }

    fn block(&self, cause: &Cause, cases: &Cases, selector: &str) -> Problem {
        let mut problem = Problem::new(cause.code, self.summary(cause, cases));
        problem.jobs = cases.count;
        problem.selector = Some(selector.to_owned());
        problem.since = cases.since;
        problem.examples.clone_from(&cases.examples);
        problem.severity = cause.severity(cases.since, self.snapshot.now);
        if matches!(cause.code, Code::OwnerDead | Code::OwnerStopped) && cases.expires.is_some() {
            problem = problem.at("last claim expires", cases.expires, self.snapshot.now);
        }
        let runner = self.snapshot.runners_staying().next();
        // Only a conductor that accepts the jobs can show on one of them that the cause is fixed.
        let canary = cases.count > 1 && runner.is_some() && cases.secondary == 0;
        let fix = fix(cause, FixTarget::All { selector, canary });
        match (fix, runner) {
            (Some(fix), Some(runner)) if cause.code == Code::NoMatchingConductor => {
                let look = Suggestion::of("conductors").operand(&runner.conductor.name);
                let text = match cases.without_command == cases.count {
                    true => "add a handler, or run `jobboard change JOB -- COMMAND`",
                    false => fix.text.as_deref().unwrap_or_default(),
                };
                problem.fixed_by(Fix::look(look).because(text))
            }
            (Some(_), _) if cause.code == Code::NoConductor && self.has_commands => problem
                .fixed_by(Fix::advice(match self.snapshot.peers.map(|it| it.deletes_malformed) {
                    Some(_) => {
                        "start `jobboard conduct --allow PROGRAM` for jobs with a command, and add \
                         `--handlers DIR` for the others"
                    }
                    None => {
                        "start `jobboard conduct`; add `--handlers DIR` to run jobs without a \
                         command"
                    }
                })),
            (fix, _) => problem.fixed_by(fix),
        }
    }

    fn summary(&self, cause: &Cause, cases: &Cases) -> String {
        let about = cause.about.to_string();
        let counted = |one: &str, several: &str| match cases.count {
            1 => one.to_owned(),
            _ => several.to_owned(),
        };
        match (cause.code, &cause.about) {
            (Code::OwnerDead | Code::OwnerStopped, CauseSubject::Host(host, death)) => {
                let gone = death.proof();
                let gone = gone.unwrap_or("silent or gone, but this machine cannot prove it");
                format!("{} on {host}: {gone}", cases.names())
            }
            (Code::ClaimNeverExpires | Code::ClaimNotRenewed, _) => {
                format!("claimed by {}", cases.names())
            }
            (Code::BrokenLock, about) if about.is(NO_OWNER) => "the lock names no owner".to_owned(),
            (Code::UnreadableRecord, about) if about.is(CLAIMED) => {
                counted("the record is claimed", "each is claimed")
            }
            (Code::UnreadableRecord, _) => match self.snapshot.peers.map(|it| it.deletes_malformed)
            {
                None => counted(
                    "a record that cannot be read",
                    "records that cannot be read",
                ),
                Some(true) => counted(
                    "the next Python service that lists the record deletes it or fails",
                    "the next Python service that lists them deletes them or fails",
                ),
                Some(false) => counted(
                    "Python services fail when they list the record",
                    "Python services fail when they list them",
                ),
            },
            (Code::UnfinishedMove, _) if about.is_empty() => "from an unknown board".to_owned(),
            (Code::UnfinishedMove, _) => format!("from {about}"),
            (Code::NoMatchingConductor, _) => format!("no conductor accepts {about}"),
            (Code::NoConductor, _) => "no conductor is running on this board".to_owned(),
            (Code::UuidMismatch, _) => counted(
                "the uuid is that of another record",
                "their uuids are those of other records",
            ),
            (Code::ExcessiveDelay, _) => "delayed for longer than any back-off".to_owned(),
            (Code::ClockSkew, _) => {
                let ahead = cases.ahead.and_then(|it| it.to_std().ok());
                let ahead = duration::brief(ahead.unwrap_or_default());
                format!("up to {ahead} ahead of this machine's clock")
            }
            (Code::BlocksPosters, _) => {
                let since = cases.since.unwrap_or(self.snapshot.now);
                let age = duration::between(since, self.snapshot.now);
                format!("on the board for {age}: Octavia refuses new jobs")
            }
            _ => about,
        }
    }

    fn of_conductors(&self) -> Vec<Problem> {
        let (now, mut problems) = (self.snapshot.now, Vec::new());
        let mut by_owner = BTreeMap::<_, Vec<&Conductor>>::new();
        for it in self.snapshot.conductors() {
            by_owner.entry(&it.owner).or_default().push(it);
            // With claims, it is reported as a dead owner.
            if is_silent(it) && !self.has_claims(it) && !it.has_left {
                let heard = it.silence.and_then(|it| TimeDelta::from_std(it).ok());
                let absence = absence(it).unwrap_or(Death::Unproven);
                let what = absence.proof().unwrap_or("silent");
                let summary = format!("{} on {}: {what}", it.name, it.host);
                let mut problem = Problem::new(Code::ConductorSilent, summary);
                if absence == Death::Certain {
                    // Without claims, a process that is gone does no harm.
                    problem.severity = Severity::Note;
                    problem.impact = "it holds no claims, and its registration ends soon";
                }
                let problem = problem.at("last heartbeat", heard.map(|ago| now - ago), now);
                let look = Suggestion::of("conductors").operand(&it.name);
                problems.push(problem.fixed_by(match absence {
                    Death::Stopped(pid) => resume_process(pid),
                    Death::Certain | Death::Unproven => Fix::look(look),
                }));
            }
        }
        for (owner, all) in by_owner.into_iter().filter(|(_, all)| all.len() > 1) {
            let summary = format!("conductors that share the name {owner}: {}", all.len());
            let places = all.iter().map(|it| format!("{}:{}", it.host, it.pid));
            let problem = Problem::new(Code::DuplicateName, summary);
            let problem = places
                .take(3)
                .fold(problem, |it, place| it.seen("conductor", place));
            problems.push(problem.fixed_by(Fix::look(Suggestion::of("conductors"))));
        }
        let mut conductors = self.snapshot.conductors();
        let peer = conductors.find(|it| it.report.version.is_none());
        let peer = peer.map(|it| it.name.clone());
        let peer = peer.or_else(|| self.peer.as_ref().map(ToString::to_string));
        if let Some(peer) = peer.filter(|_| self.has_commands) {
            let summary = "some jobs have commands, but another kind of client also claims jobs";
            let look = Fix::look(Suggestion::of("list --filter details.command!=none"));
            let problem = Problem::new(Code::BreaksPeers, summary).seen("peer", peer);
            problems.push(problem.fixed_by(look));
        }
        problems
    }
}

impl Snapshot {
    /// Reports the pauses that cannot be read.
    fn of_pauses(&self) -> Option<Problem> {
        let names = &self.unreadable_pauses;
        let resume = Suggestion::of("resume").operand(names.first()?);
        let fix = Fix::act(resume).because("remove the pause, and pause the jobs again");
        let summary = match names.len() {
            1 => "a pause that cannot be read".to_owned(),
            count => format!("pauses that cannot be read: {count}"),
        };
        let problem = Problem::new(Code::UnreadableEntry, summary).fixed_by(fix);
        let named = names.iter().take(MAX_NAMED_CAUSES);
        Some(named.fold(problem, |problem, it| problem.seen("pause", it)))
    }

    /// Reports the moves to other boards that were interrupted.
    fn of_moves(&self) -> Vec<Problem> {
        let mut targets = BTreeSet::new();
        for record in &self.moves {
            if let Stage::Begun { to, on } = &record.stage
                && is_move_over(&record.owner, Some(*on), self.now)
            {
                targets.insert(to);
            }
        }
        let count = targets.len();
        if count > APART {
            let first: Vec<_> = targets
                .iter()
                .take(MAX_NAMED_CAUSES)
                .map(|it| it.as_str())
                .collect();
            let (first, more) = (first.join(", "), count - MAX_NAMED_CAUSES);
            let summary = format!("moves to {first} and {more} more boards were interrupted");
            let advice = "`jobboard copy --resume --to BOARD` finishes the moves to one board";
            return vec![Problem::new(Code::UnfinishedMove, summary).fixed_by(Fix::advice(advice))];
        }
        let problem = |to: &String| {
            let summary = format!("a move to {to} was interrupted");
            Problem::new(Code::UnfinishedMove, summary).fixed_by(finish_move("--to", to))
        };
        targets.into_iter().map(problem).collect()
    }
}
