//! What a verdict is made of: the job, who holds it, and who would take it.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    finding::{Code, Explanation, Finding, Severity},
    takers::{Answer, Taker},
};
use crate::{
    commands::parts::{
        liveness::{is_of_broken_move, process_of},
        tally::is_exhausted,
    },
    duration,
    job::{Entry, Holding, Job, Lease, Owner, Pauses, Shelf, State, octavia},
    process::living::has_ended,
};

/// How far ahead of our clock a time may be without anybody noticing.
const SKEW: Duration = Duration::from_secs(5);

/// How little is left of a claim by hand when its end is worth telling.
const SOON: Duration = Duration::from_secs(10);

/// How Octavia calls its conductors, and for how long they claim if nobody configures it.
const OCTAVIA: &str = "octavia-task-flow-conductor-";
const OCTAVIA_EXPIRY: Duration = Duration::from_secs(30);

/// How old a job of Octavia is that is in the way of others: so much, and so many times the expiry.
const IN_THE_WAY: (Duration, u32) = (Duration::from_secs(600), 20);

/// What is known beside the job.
pub(crate) struct Scene {
    pub(super) now: DateTime<Utc>,
    /// How a command begins that is about the same board.
    pub(super) program: Vec<String>,
    pub(super) takers: Vec<Taker>,
    pub(super) pauses: Pauses,
    /// On a board of Octavia: for how long its conductors claim.
    pub(super) octavia_expiry: Option<Duration>,
    pub(super) has_peers: bool,
    /// Whether conductors of TaskFlow are among those that are known, if there are any.
    pub(super) sees_peers: bool,
    pub(super) unseen: Vec<String>,
}

/// A job, and what was found out by looking twice.
pub(super) struct Case<'a> {
    pub(super) entry: &'a Entry,
    pub(super) shelf: Shelf,
    /// Whether what is left of its claim was less at the second look; `None` without one.
    pub(super) has_aged: Option<bool>,
    /// How many jobs go before it, as far as they were counted.
    pub(super) before: Option<u64>,
}

impl<'a> Case<'a> {
    /// Takes a job on the board as the first look showed it.
    pub(super) fn first(entry: &'a Entry) -> Self {
        Self {
            entry,
            shelf: Shelf::Board,
            has_aged: None,
            before: None,
        }
    }
}

impl Scene {
    /// Says what there is to say of a job.
    pub(super) fn explain(&self, case: &Case<'_>) -> Explanation {
        let (finding, will_run) = match (case.entry, case.shelf) {
            (Entry::Malformed(record), shelf) => {
                let summary = format!("it cannot be read: {}", record.problem);
                let finding = self.bad(Code::Malformed, summary);
                let finding = finding.seen("size", format!("{} bytes", record.size));
                let verb = match shelf {
                    Shelf::Board => &["trash", "--force"][..],
                    _ => &["purge"],
                };
                let mend = "what can be read of it, show tells; to be rid of it";
                (self.mend(finding, case, mend, verb), false)
            }
            (Entry::Job(job), Shelf::Trash) => self.trashed(job, case),
            (Entry::Job(job), Shelf::Past) => self.ended(job),
            (Entry::Job(job), Shelf::Board) => match &job.holding {
                Some(holding) => self.held(job, holding, case),
                None => self.waiting(job, case),
            },
        };
        let verdict = finding.code;
        let findings = [finding].into_iter().chain(self.beside(case, verdict));
        let title = case.entry.job().and_then(octavia::title);
        Explanation {
            job: case.entry.reference().into_owned(),
            name: title.unwrap_or_else(|| case.entry.name().into_owned()),
            verdict,
            will_run,
            findings: findings.collect(),
            unseen: self.unseen.clone(),
            like: None,
        }
    }

    /// Returns what is so beside the verdict.
    fn beside(&self, case: &Case<'_>, verdict: Code) -> Vec<Finding> {
        let mut findings = Vec::new();
        let problem = match case.entry {
            Entry::Malformed(_) => {
                Some("they fail at it, or delete it when they read it".to_owned())
            }
            Entry::Job(job) if job.is_unfit || job.is_blocked => None,
            Entry::Job(job) if job.holding.is_some() && job.owner().is_none() => None,
            Entry::Job(job) => job.problem.clone(),
        };
        if let Some(problem) = problem.filter(|_| self.has_peers && case.shelf == Shelf::Board) {
            let summary = format!("readers of TaskFlow do not see it as we do: {problem}");
            let finding = Finding::new(Code::HiddenFromPeers, Severity::Warning, summary);
            findings.push(finding);
        }
        let Some(job) = case.entry.job() else {
            return findings;
        };
        let is_not_taken = matches!(verdict, Code::NoConductor | Code::NoTaker);
        if is_not_taken && is_exhausted(job) {
            let summary =
                "it was tried as often as it may be: whoever takes it puts it in the trash";
            let finding = Finding::new(Code::Exhausted, Severity::Warning, summary);
            let text = "once the cause is mended, have its attempts begin anew";
            findings.push(self.mend(finding, case, text, &["retry"]));
        }
        let is_free = job.state() == State::Unclaimed && verdict != Code::Paused;
        if let Some((finding, _)) = self.paused(job, "it can be taken").filter(|_| is_free) {
            findings.push(finding);
        }
        findings.extend(self.in_the_way(job));
        let times = [
            ("posted", job.created_on),
            ("modified", job.last_modified),
            ("claimed", job.holding.as_ref().and_then(|it| it.claimed_on)),
        ];
        // To read a large board takes a while, in which jobs are posted.
        let clock = self.now.max(Utc::now());
        let ahead = |time: DateTime<Utc>| (time - clock).to_std().is_ok_and(|it| it > SKEW);
        for (what, time) in times {
            let Some(time) = time.filter(|time| ahead(*time)) else {
                continue;
            };
            let by = duration::between(self.now, time);
            let summary = format!("it was {what} {by} ahead of this machine's clock");
            let finding = Finding::new(Code::ClockSkew, Severity::Warning, summary);
            findings.push(finding.at(what, Some(time), self.now));
            break;
        }
        findings
    }

    /// Less is never left of a claim that a conductor of Octavia renews.
    fn octavia_quarter(&self) -> Duration {
        self.octavia_expiry.unwrap_or(OCTAVIA_EXPIRY) / 4
    }

    /// Whoever posts on a board of Octavia waits for every job on it.
    fn in_the_way(&self, job: &Job) -> Option<Finding> {
        let (least, times) = IN_THE_WAY;
        let least = least.max(self.octavia_expiry?.saturating_mul(times));
        let age = (self.now - job.created_on?).to_std().ok()?;
        if job.shelf != Shelf::Board || age < least {
            return None;
        }
        let summary = "whoever posts on a board of Octavia waits for each job that is on it, and so for this one";
        let finding = self.bad(Code::BlocksPosters, summary);
        Some(finding.at("posted", job.created_on, self.now))
    }

    pub(super) fn bad(&self, code: Code, summary: impl Into<String>) -> Finding {
        Finding::new(code, Severity::Error, summary)
    }

    /// Says which of our commands mends it.
    pub(super) fn mend(
        &self,
        finding: Finding,
        case: &Case<'_>,
        text: &str,
        verb: &[&str],
    ) -> Finding {
        let job = case.entry.reference();
        finding.mend(text, self.command(&[verb, &[&job]].concat()))
    }

    /// Returns a command that is about the same board.
    pub(super) fn command(&self, words: &[&str]) -> Vec<String> {
        let words = words.iter().map(|word| (*word).to_owned());
        self.program.iter().cloned().chain(words).collect()
    }

    /// Explains a job that somebody holds.
    fn held(&self, job: &Job, holding: &Holding, case: &Case<'_>) -> (Finding, bool) {
        let Some(owner) = &holding.owner else {
            let problem = job.problem.as_deref().unwrap_or("its owner cannot be read");
            let finding = self.bad(Code::LockBroken, problem);
            let text = "if nobody performs it, free it";
            return (
                self.mend(finding, case, text, &["abandon", "--force"]),
                false,
            );
        };
        let taker = self.takers.iter().find(|taker| taker.is_named(owner));
        let finding = match taker {
            Some(taker) => self.held_by_conductor(job, holding, taker, case),
            None => self.held_by_other(owner, holding, case),
        };
        let code = finding.code;
        let finding = finding
            .seen("owner", owner.text())
            .at("held", job.held_since(), self.now);
        let finding = match (holding.lease, holding.expires_in) {
            (Lease::None, _) => finding.seen("lapses", "never"),
            (Lease::Session, _) => finding.seen("lapses", "with the session of its holder"),
            (Lease::Timed, left) => {
                let left = left.map(duration::brief).unwrap_or_default();
                finding.seen("lapses", format!("in {left}, unless it is renewed"))
            }
        };
        let lapses = holding.lease != Lease::None;
        let will_run = match code {
            Code::Held => finding.severity == Severity::Ok,
            Code::Lapsing => true,
            Code::HeldByDead => lapses,
            _ => false,
        };
        (self.mended(finding, (owner, taker, lapses), case), will_run)
    }

    /// Says what mends a claim of that owner, who may be a conductor, and which may lapse.
    fn mended(
        &self,
        finding: Finding,
        (owner, taker, lapses): (&Owner, Option<&Taker>, bool),
        case: &Case<'_>,
    ) -> Finding {
        let free = &["abandon", "--force"][..];
        match finding.code {
            Code::HeldByDead if is_of_broken_move(owner) => {
                let text =
                    "make the move again, which goes on with it; to have it here, and not there";
                self.mend(finding, case, text, free)
            }
            Code::HeldForever => {
                let text = format!("if {owner} is gone, free it");
                self.mend(finding, case, &text, free)
            }
            Code::HeldByDead if lapses => {
                self.mend(finding, case, "it is free when it lapses; at once by", free)
            }
            Code::HeldByDead => self.mend(finding, case, "free it", free),
            Code::NotRenewed => match taker {
                Some(taker) => {
                    let command = self.command(&["conductors", &taker.conductor.name]);
                    finding.mend("restart it; what it does", command)
                }
                None if owner.text().starts_with(OCTAVIA) => {
                    let text = "restart the octavia-worker in whose log that name is; when it lapses \
                                another one performs it as well";
                    self.mend(finding, case, text, &["show"])
                }
                None => {
                    let text = "restart its holder; when it lapses another one performs it as well";
                    self.mend(finding, case, text, &["show"])
                }
            },
            Code::Held if finding.severity > Severity::Ok => self.mend(
                finding,
                case,
                "mend what keeps it; to be rid of the job",
                &["consume", "--force"],
            ),
            _ => finding,
        }
    }

    fn held_by_conductor(
        &self,
        job: &Job,
        holding: &Holding,
        taker: &Taker,
        case: &Case<'_>,
    ) -> Finding {
        let told = &taker.conductor.told;
        if taker.is_silent {
            let silence = taker.conductor.silence.map(duration::brief);
            let summary = format!(
                "the conductor that has it is silent{}",
                silence.map(|it| format!(" for {it}")).unwrap_or_default()
            );
            return Finding::new(Code::HeldByDead, Severity::Warning, summary);
        }
        if let Some(stuck) = told.unsettled.iter().find(|it| it.uuid == job.uuid) {
            let reason = &stuck.reason;
            let summary =
                format!("it was performed, and the board does not let it be settled: {reason}");
            return self.bad(Code::Held, summary);
        }
        let least = taker.lease().map(|lease| lease / 3);
        if let Some(finding) = self.not_renewed(holding, least, case) {
            return finding;
        }
        match told.runs.iter().find(|run| run.uuid == job.uuid) {
            Some(run) => {
                let summary = "it is being performed";
                let finding = Finding::new(Code::Held, Severity::Ok, summary);
                let finding = finding.at("runs since", Some(run.since), self.now);
                finding.seen("attempt", run.attempt.to_string())
            }
            None => Finding::new(
                Code::Held,
                Severity::Ok,
                "a conductor that is at work has it",
            ),
        }
    }

    fn held_by_other(&self, owner: &Owner, holding: &Holding, case: &Case<'_>) -> Finding {
        // Its name is that of a process of this machine.
        let process = process_of(&owner.text()).map(|(host, pid)| has_ended(host, pid, None));
        if process == Some(Some(true)) {
            let summary = match is_of_broken_move(owner) {
                true => "a move of it to another board was broken off: it may be there as well",
                false => "the process that has it has ended on this machine",
            };
            return match holding.lease {
                Lease::None => self.bad(Code::HeldByDead, summary),
                _ => Finding::new(Code::HeldByDead, Severity::Warning, summary),
            };
        }
        if holding.lease == Lease::None {
            let summary = "its claim never lapses, and who has it is no conductor that is at work";
            return self.bad(Code::HeldForever, summary);
        }
        // They look at their claims that often, and renew those of which half is over.
        let quarter = self.octavia_quarter();
        let is_of_octavia = owner.text().starts_with(OCTAVIA);
        if let Some(finding) = self.not_renewed(holding, is_of_octavia.then_some(quarter), case) {
            return finding;
        }
        match holding.expires_in {
            Some(left) if left < SOON && case.has_aged != Some(false) => {
                let left = duration::brief(left);
                let summary =
                    format!("its claim lapses in {left}, unless it is renewed; then it is free");
                Finding::new(Code::Lapsing, Severity::Ok, summary)
            }
            _ if is_of_octavia => {
                let summary = "a worker of Octavia has it";
                Finding::new(Code::Held, Severity::Ok, summary)
            }
            _ => Finding::new(
                Code::Held,
                Severity::Ok,
                "somebody has it who is no conductor",
            ),
        }
    }

    /// Finds that a claim is not renewed, if less is left of it than there should be, at both looks.
    fn not_renewed(
        &self,
        holding: &Holding,
        least: Option<Duration>,
        case: &Case<'_>,
    ) -> Option<Finding> {
        let (left, least) = (holding.expires_in?, least?);
        let is_late = left < least && case.has_aged != Some(false);
        is_late.then(|| {
            let (left, least) = (duration::brief(left), duration::brief(least));
            let summary = format!(
                "its claim is not renewed: {left} are left of it, and there should always be {least}"
            );
            self.bad(Code::NotRenewed, summary)
        })
    }

    /// Whether it takes a second look to say what is the matter with the claim on a job.
    pub(super) fn is_doubtful(&self, entry: &Entry) -> bool {
        let Some(job) = entry.job() else { return false };
        let (Some(owner), Some(left)) = (
            job.owner(),
            job.holding.as_ref().and_then(|it| it.expires_in),
        ) else {
            return false;
        };
        let lease = self.takers.iter().find(|taker| taker.is_named(owner));
        let least = lease.and_then(Taker::lease).map_or(SOON, |lease| lease / 3);
        let of_octavia = owner
            .text()
            .starts_with(OCTAVIA)
            .then(|| self.octavia_quarter());
        left < least.max(of_octavia.unwrap_or_default())
    }

    /// Whether all that would take a job are busy, so that it matters how many go before it.
    pub(super) fn is_crowded(&self, entry: &Entry) -> bool {
        let Some(job) = entry.job().filter(|job| job.holding.is_none()) else {
            return false;
        };
        let takes =
            |taker: &&Taker| matches!(taker.answer(entry, job, self.now), Answer::Takes { .. });
        let free: Vec<_> = self
            .alive()
            .filter(takes)
            .map(|taker| taker.conductor.free())
            .collect();
        !free.is_empty() && free.iter().all(|free| *free == 0)
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = &Taker> {
        self.takers.iter().filter(|taker| !taker.is_silent)
    }
}

/// Adds how often a job was tried, and how that ended last.
pub(super) fn with_attempts(finding: Finding, job: &Job, now: DateTime<Utc>) -> Finding {
    if job.history.attempts == 0 {
        return finding;
    }
    let finding = finding.seen("attempts", job.history.attempts.to_string());
    match job.history.failures.last() {
        Some(last) => {
            let finding = finding.seen("failed", format!("{}, by {}", last.reason, last.conductor));
            finding.at("failed on", Some(last.time), now)
        }
        None => finding,
    }
}
