//! The facts behind a verdict: the job, its owner, and the conductors.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    finding::{Code, Explanation, Finding, Severity},
    takers::{Answer, Taker},
};
use crate::{
    commands::parts::tally::is_exhausted,
    config::Expiry,
    duration,
    job::{Entry, Job, Pauses, Shelf, State, octavia},
    suggest::Suggestion,
};

/// The clock difference that is ignored.
pub(super) const SKEW: Duration = Duration::from_secs(5);

pub(crate) struct Scene {
    pub(super) now: DateTime<Utc>,
    pub(super) program: Suggestion,
    pub(super) takers: Vec<Taker>,
    pub(super) pauses: Pauses,
    /// `None` on boards other than Octavia's.
    pub(super) octavia_expiry: Option<Expiry>,
    pub(super) has_peers: bool,
    /// Whether TaskFlow conductors are visible.
    pub(super) sees_peers: bool,
    pub(super) unseen: Vec<String>,
}

pub(super) struct Case<'a> {
    pub(super) entry: &'a Entry,
    pub(super) shelf: Shelf,
    /// Whether the claim had less time left at the second look; `None` without one.
    pub(super) has_aged: Option<bool>,
    /// The counted jobs ahead of it.
    pub(super) before: Option<u64>,
}

impl<'a> Case<'a> {
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
    pub(super) fn explain(&self, case: &Case<'_>) -> Explanation {
        let (finding, will_run) = match (case.entry, case.shelf) {
            (Entry::Malformed(record), shelf) => {
                let summary = format!("the record cannot be read: {}", record.problem);
                let finding = self.bad(Code::Malformed, summary);
                let finding = finding.seen("size", format!("{} bytes", record.size));
                let verb = match shelf {
                    Shelf::Board => &["trash", "--force"][..],
                    _ => &["purge"],
                };
                let mend = "`jobboard show` prints the readable part; to remove the record";
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

    fn beside(&self, case: &Case<'_>, verdict: Code) -> Vec<Finding> {
        let mut findings = Vec::new();
        let problem = match case.entry {
            Entry::Malformed(_) => Some("they fail on this record or delete it".to_owned()),
            Entry::Job(job) if job.is_unfit || job.is_blocked => None,
            Entry::Job(job) if job.holding.is_some() && job.owner().is_none() => None,
            Entry::Job(job) => job.problem.clone(),
        };
        if let Some(problem) = problem.filter(|_| self.has_peers && case.shelf == Shelf::Board) {
            let summary =
                format!("Python services fail on this record or may destroy it: {problem}");
            let finding = Finding::new(Code::HiddenFromPeers, Severity::Warning, summary);
            findings.push(finding);
        }
        let Some(job) = case.entry.job() else {
            return findings;
        };
        if job.is_misnamed && case.shelf == Shelf::Board {
            let summary = "the posting carries the uuid of another record; refer to it by key";
            let finding = Finding::new(Code::ForeignUuid, Severity::Warning, summary);
            let finding = finding.seen("uuid", &job.uuid).seen("key", job.key.text());
            let text = "if the job is not needed, move it to the trash";
            findings.push(self.mend(finding, case, text, &["trash", "--force"]));
        }
        let is_not_taken = matches!(verdict, Code::NoConductor | Code::NoTaker);
        if is_not_taken && is_exhausted(job) {
            let summary = "the retry limit is reached; the next conductor to claim the job moves it to the trash";
            let finding = Finding::new(Code::Exhausted, Severity::Warning, summary);
            let text = "fix the cause, then reset the attempts";
            findings.push(self.mend(finding, case, text, &["retry"]));
        }
        let is_free = job.state() == State::Unclaimed && verdict != Code::Paused;
        if let Some((finding, _)) = self.paused(job, "the job is claimable").filter(|_| is_free) {
            findings.push(finding);
        }
        findings.extend(self.in_the_way(job, case));
        let times = [
            ("posted", job.created_on),
            ("modified", job.last_modified),
            ("claimed", job.holding.as_ref().and_then(|it| it.claimed_on)),
        ];
        // Reading a large board takes a while, and new jobs appear.
        let clock = self.now.max(Utc::now());
        let ahead = |time: DateTime<Utc>| (time - clock).to_std().is_ok_and(|it| it > SKEW);
        for (what, time) in times {
            let Some(time) = time.filter(|time| ahead(*time)) else {
                continue;
            };
            let by = duration::between(self.now, time);
            let summary = format!("the job was {what} {by} ahead of this machine's clock");
            let finding = Finding::new(Code::ClockSkew, Severity::Warning, summary);
            findings.push(finding.at(what, Some(time), self.now));
            break;
        }
        findings
    }

    /// Reports a job that blocks posters on an Octavia board.
    fn in_the_way(&self, job: &Job, case: &Case<'_>) -> Option<Finding> {
        if job.shelf != Shelf::Board {
            return None;
        }
        self.octavia_expiry?.in_the_way(job.created_on?, self.now)?;
        let summary = "Octavia refuses new jobs because of this one";
        let finding = self.bad(Code::BlocksPosters, summary);
        let text = "if `jobboard flow` shows no progress, restart the worker, then remove the job";
        let finding = self.mend(finding, case, text, &["trash", "--force"]);
        Some(finding.at("posted", job.created_on, self.now))
    }

    pub(super) fn bad(&self, code: Code, summary: impl Into<String>) -> Finding {
        Finding::new(code, Severity::Error, summary)
    }

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

    pub(super) fn command(&self, words: &[&str]) -> Suggestion {
        self.program.clone().with(words.iter().copied())
    }

    /// Whether all willing conductors are busy, so that the rank matters.
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

pub(super) fn with_attempts(finding: Finding, job: &Job, now: DateTime<Utc>) -> Finding {
    if job.history.attempts == 0 {
        return finding;
    }
    let finding = finding.seen("attempts", job.history.attempts.to_string());
    match job.history.failures.last() {
        Some(last) => {
            let finding = finding.seen(
                "failed",
                format!("{}, by {}", last.headline(), last.conductor),
            );
            finding.at("failed on", Some(last.time), now)
        }
        None => finding,
    }
}
