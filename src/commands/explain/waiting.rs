//! Explains why an unclaimed job is not claimed.

use super::{
    finding::{Code, Finding, Severity},
    scene::{Case, Scene, with_attempts},
    takers::{Answer, Taker},
};
use crate::{
    conductor::{
        judgement::{Against, admit},
        policy::Policy,
    },
    duration,
    job::{Job, Takes},
    retry::MAX_ATTEMPTS,
};

impl Scene {
    pub(super) fn waiting(&self, job: &Job, case: &Case<'_>) -> (Finding, bool) {
        let problem = || job.problem.clone().unwrap_or_default();
        if job.is_blocked {
            let summary = format!(
                "the job is unclaimed, but no client can claim it: {}",
                problem()
            );
            let finding = Finding::new(Code::LockBroken, Severity::Error, summary);
            let text = "remove the broken lock";
            let finding = self.mend(finding, case, text, &["abandon", "--force"]);
            return (finding.at("posted", job.created_on, self.now), false);
        }
        if job.is_unfit {
            let summary = format!("the sidecar cannot be read: {}", problem());
            let finding = Finding::new(Code::Unfit, Severity::Error, summary);
            let text = "conductors skip the job, but you can claim it by name; to remove it";
            let finding = self.mend(finding, case, text, &["trash", "--force"]);
            return (finding.at("posted", job.created_on, self.now), false);
        }
        let answers: Vec<_> = self
            .alive()
            .map(|taker| (taker, taker.answer(case.entry, job, self.now)))
            .collect();
        let takers: Vec<_> = answers
            .iter()
            .filter_map(|(taker, answer)| match answer {
                Answer::Takes { spent } => Some((*taker, *spent)),
                _ => None,
            })
            .collect();
        let (finding, will_run) = match takers.as_slice() {
            [] => (self.not_taken(job, case, &answers), false),
            takers => self.taken(job, case, takers),
        };
        (finding.at("posted", job.created_on, self.now), will_run)
    }

    fn taken(
        &self,
        job: &Job,
        case: &Case<'_>,
        takers: &[(&Taker, Option<u32>)],
    ) -> (Finding, bool) {
        let names = names(takers.iter().map(|(taker, _)| *taker));
        let by = format!("{names} accepts the job");
        if let Some((finding, ends)) = self.paused(job, &by) {
            return (finding, ends);
        }
        if let Some(most) = takers.iter().map(|(_, spent)| *spent).min().flatten() {
            let tried = job.history.attempts;
            let summary = format!(
                "the retry limit is reached ({tried} of {most} attempts); the next conductor to \
                    claim the job moves it to the trash"
            );
            let finding = Finding::new(Code::Exhausted, Severity::Error, summary);
            let finding = with_attempts(finding, job, self.now);
            let text = "fix the cause, then reset the attempts";
            return (self.mend(finding, case, text, &["retry"]), false);
        }
        if let Some(until) = job.history.not_before.filter(|time| *time > self.now) {
            let left = duration::between(self.now, until);
            let summary = format!("backing off for {left} more; {by} after that");
            let finding = Finding::new(Code::Postponed, Severity::Ok, summary);
            let finding = finding.at("until", Some(until), self.now);
            let finding = with_attempts(finding, job, self.now);
            let text = "retry the job now";
            return (self.mend(finding, case, text, &["retry"]), true);
        }
        let free = takers.iter().map(|(taker, _)| taker.conductor.free());
        let free = free.sum::<usize>();
        let slots = takers.iter().map(|(taker, _)| taker.conductor.told.slots);
        let slots = slots.map(|slots| slots.unwrap_or(1)).sum::<usize>();
        let busy = format!("{} of {slots}", slots.saturating_sub(free));
        let finding = match (free, case.before) {
            (1.., _) => Finding::new(Code::Claimable, Severity::Ok, by),
            (0, Some(0)) => {
                let summary = format!("the job is next; {by} when a slot is free");
                Finding::new(Code::Claimable, Severity::Ok, summary)
            }
            (0, before) => {
                let jobs = before.map_or_else(|| "unknown".to_owned(), |jobs| jobs.to_string());
                let summary = format!("{by}, but all slots are busy; jobs ahead: {jobs}");
                Finding::new(Code::Outranked, Severity::Ok, summary)
            }
        };
        let finding = finding.seen("busy slots", busy);
        let runs = takers.iter();
        let runs = runs.flat_map(|(taker, _)| &taker.conductor.told.runs);
        let longest = runs.min_by_key(|run| run.since).filter(|_| free == 0);
        let finding = match longest {
            Some(run) => finding.at("longest run", Some(run.since), self.now),
            None => finding,
        };
        (with_attempts(finding, job, self.now), true)
    }

    /// Reports a pause, and whether it ends without help.
    pub(super) fn paused(&self, job: &Job, who: &str) -> Option<(Finding, bool)> {
        let pause = self.pauses.of(&job.name, self.now)?;
        let finding = Finding::new(Code::Paused, Severity::Warning, pause.to_string());
        let finding = finding.at("paused", pause.remark.on, self.now);
        let command = self.command(&["resume"]).operand(&pause.names);
        let finding = finding.mend(format!("{who} after resuming"), command);
        Some((finding, pause.until.is_some()))
    }

    fn not_taken(&self, job: &Job, case: &Case<'_>, answers: &[(&Taker, Answer)]) -> Finding {
        let is_for_peers = job.book.is_some() && self.has_peers && !self.sees_peers;
        let is = |kind: fn(&Answer) -> bool| answers.iter().any(|(_, answer)| kind(answer));
        // Also without a running conductor.
        let open = Policy::of(&Takes::default()).map(|policy| admit(&policy, job));
        let open = open.ok().and_then(Result::err);
        let flaw = open.filter(|it| matches!(it, Against::Policy(unfit) if unfit.is_final()));
        let is_refused = is(|answer| matches!(answer, Answer::Refuses(_)));
        let is_unknown = is(|answer| matches!(answer, Answer::Unknown(_)));
        let new = |code, summary: &str| Finding::new(code, Severity::Error, summary);
        let finding = if let Some(flaw) = flaw {
            let summary = format!("no conductor can run the job as posted: {flaw}");
            let text = "post a corrected job, then remove this one";
            self.mend(
                new(Code::NotRunnable, &summary),
                case,
                text,
                &["trash", "--force"],
            )
        } else if is_for_peers && !is_refused {
            let summary = "the job is a TaskFlow flow; TaskFlow conductors do not register, so \
                jobboard cannot see whether one is running";
            Finding::new(Code::Unseen, Severity::Warning, summary)
        } else if !self.unseen.is_empty() && answers.is_empty() {
            new(
                Code::Unseen,
                "the job is unclaimed; jobboard cannot see which conductors are running",
            )
        } else if answers.is_empty() {
            let summary = match self.takers.len() {
                0 => "no conductor is running on this board",
                _ => "no conductor is running on this board; all registered ones are silent",
            };
            self.start(new(Code::NoConductor, summary), job)
        } else if is_refused {
            let finding = new(
                Code::PolicyRefuses,
                "the execution policy of the conductor refuses the command",
            );
            self.conductors(
                finding,
                "change the execution policy and restart the conductor; its current policy:",
            )
        } else if is_unknown {
            let finding = new(
                Code::Unseen,
                "jobboard cannot see whether a conductor accepts this job",
            );
            self.conductors(finding, "list the running conductors:")
        } else {
            let finding = new(
                Code::NoTaker,
                "conductors are running, but none accepts this job",
            );
            self.conductors(
                finding,
                "start a conductor that accepts the job, or change one; what each accepts:",
            )
        };
        self.with_answers(finding, job, answers)
    }

    fn with_answers(&self, finding: Finding, job: &Job, answers: &[(&Taker, Answer)]) -> Finding {
        let finding = answers.iter().fold(finding, |finding, (taker, answer)| {
            finding.seen(&taker.conductor.name, answer.reason().unwrap_or_default())
        });
        let silent = self.takers.iter().filter(|taker| taker.is_silent);
        let finding = silent.fold(finding, |finding, taker| {
            finding.seen(&taker.conductor.name, "silent")
        });
        let finding = match job.history.attempts >= MAX_ATTEMPTS {
            true => with_attempts(finding, job, self.now),
            false => finding,
        };
        match job.history.not_before.filter(|time| *time > self.now) {
            Some(until) => finding.at("backing off", Some(until), self.now),
            None => finding,
        }
    }

    fn start(&self, finding: Finding, job: &Job) -> Finding {
        let wanted = job.details.as_ref().and_then(|it| it.get("command"));
        let program = wanted.as_deref().and_then(|it| it.get(0)?.as_str());
        let mut command = self.command(&["conduct"]);
        let text = match program {
            Some(program) if self.has_peers => {
                let program = match program.starts_with('/') {
                    true => program.to_owned(),
                    false => format!("/usr/bin/{program}"),
                };
                command = command.with(["--allow".to_owned(), program]);
                "start a conductor that may run the program"
            }
            Some(_) => "start a conductor",
            None => {
                command = command.with(["--handlers", "DIR"]);
                "start a conductor with a directory that has a handler of this name"
            }
        };
        finding.mend(text, command)
    }

    fn conductors(&self, finding: Finding, text: &str) -> Finding {
        let mut command = self.command(&["conductors"]);
        // They all skip it, so any one serves as the example.
        if let Some(taker) = self.alive().next() {
            command = command.operand(&taker.conductor.name);
        }
        finding.mend(text, command)
    }
}

fn names<'a>(takers: impl Iterator<Item = &'a Taker>) -> String {
    let names: Vec<_> = takers.map(|taker| taker.conductor.name.as_str()).collect();
    match names.as_slice() {
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} or {other}"),
        [one, others @ ..] => format!("{one} or {} others", others.len()),
        [] => String::new(),
    }
}
