//! The state or problem of one job in a sentence.

use super::{
    Cause, CauseSubject, ExplainedJob, Snapshot,
    explain::OCTAVIA,
    holder::{Death, is_left_by_move},
    judge::{time_ahead_of_clock, tried},
    runner::{Runner, is_silent},
};
use crate::{
    duration,
    job::{Conductor, Job, Outcome, Pause},
    problem::{Code, no_job_code},
    retry::NO_FAILURE,
};

impl Snapshot {
    pub(super) fn sentence(
        &self,
        explained: &ExplainedJob<'_>,
        job: &Job,
        cause: &Cause,
    ) -> String {
        let (code, about) = (cause.code, &cause.about);
        let left = job.holding.as_ref().and_then(|it| it.expires_in);
        let left = left.map(duration::brief).unwrap_or_default();
        let sentence = match code {
            Code::Ready | Code::Waiting => return self.queue(explained, job, code),
            Code::Running => return self.runs(job),
            Code::BackingOff => return self.backs_off(explained, job),
            Code::Unavailable => self.unavailable(job),
            Code::OwnerDead | Code::OwnerStopped => return self.death(job, cause),
            Code::ClockSkew => return self.skew(job),
            Code::RetriesExhausted => return exhausted(job, cause),
            Code::Failed | Code::Trashed => return trashed(job),
            Code::Ended => ended(job),
            Code::Paused => {
                let pause = self.pauses.of(&job.name, self.now);
                return pause.map(Pause::to_string).unwrap_or_default();
            }
            Code::ClaimExpiresSoon if job.holding.as_ref().is_some_and(is_left_by_move) => {
                let ends = match left.as_str() {
                    "" => "its claim ends with its session".to_owned(),
                    left => format!("its claim ends in {left}"),
                };
                return format!("the process that moved the job to another board is gone; {ends}");
            }
            Code::ClaimExpiresSoon => {
                return format!(
                    "the claim ends in {left} unless renewed; the job is then claimable"
                );
            }
            Code::ClaimNotRenewed => {
                return format!("the owner stopped renewing: the claim ends in {left}");
            }
            Code::ClaimNeverExpires => {
                "the claim has no expiry and its owner is not a running conductor"
            }
            Code::BrokenLock if job.holding.is_none() => {
                "the job is unclaimed, but no client can claim it: its lock names no owner"
            }
            Code::BrokenLock => return about.to_string(),
            Code::UnfinishedMove => "an unfinished move from another board holds the claim",
            Code::UnsettledJob => {
                return format!("the conductor ran the job but could not record its end: {about}");
            }
            Code::UnreadableSidecar => return about.to_string(),
            Code::BreaksPeers => {
                return format!("Python services fail on this record or may destroy it: {about}");
            }
            Code::UuidMismatch => {
                "the posting carries the uuid of another record; refer to it by key"
            }
            Code::BlocksPosters => "Octavia refuses new jobs because of this one",
            Code::ExcessiveDelay => "the sidecar delays the job for longer than any back-off",
            Code::InvalidCommand => {
                return format!("no conductor can run the job as posted: {about}");
            }
            Code::ConductorRefuses => "the execution policy of the conductor refuses the job",
            Code::NoMatchingConductor => "conductors are running, but none accepts this job",
            Code::NoConductor if self.conductors().all(|it| it.has_left) => {
                "no conductor is running on this board"
            }
            Code::NoConductor => {
                "no conductor is running on this board; all registered ones are silent or stopping"
            }
            Code::UnknownJob | Code::UnreadableRecord | Code::FlowWithoutClaim => code.name(),
            no_job_code!() => code.name(),
        };
        sentence.to_owned()
    }

    fn backs_off(&self, explained: &ExplainedJob<'_>, job: &Job) -> String {
        let until = job.attempts.not_before.unwrap_or(self.now);
        let left = duration::between(self.now, until);
        let next = match self.runners_alive().next() {
            Some(_) => format!(
                "{} accepts the job after that",
                self.willing(explained, job)
            ),
            None => "no conductor is running".to_owned(),
        };
        format!("backing off for {left} more; {next}")
    }

    fn skew(&self, job: &Job) -> String {
        let (what, time) = time_ahead_of_clock(job, self.now).unwrap_or(("posted", self.now));
        let by = duration::between(self.now, time);
        format!("the job was {what} {by} ahead of this machine's clock")
    }

    fn runs(&self, job: &Job) -> String {
        let Some(owner) = job.owner() else {
            return "the job is claimed".to_owned();
        };
        let runner = job.holding.as_ref().and_then(|it| self.runner_with(it));
        let is_of_octavia = owner.text().starts_with(OCTAVIA);
        match runner.map(|runner| (runner.runs(job).is_some(), &runner.conductor)) {
            Some((_, Conductor { host, pid, .. })) if is_of_octavia => {
                format!("the Octavia worker on {host}, pid {pid}, holds the claim")
            }
            Some((true, _)) => "its command is running".to_owned(),
            Some((false, _)) => "a running conductor holds the claim".to_owned(),
            None if is_of_octavia => {
                "an Octavia worker holds the claim; the board does not record its host, but the log of that worker \
                 contains the owner's name"
                    .to_owned()
            }
            None => format!("{owner} holds the claim, and is not a conductor"),
        }
    }

    fn death(&self, job: &Job, cause: &Cause) -> String {
        let conductor = self.runner_of(job).map(|runner| &runner.conductor);
        let CauseSubject::Host(host, death) = &cause.about else {
            return match cause.code {
                Code::OwnerStopped => "the owner is stopped".to_owned(),
                _ => "the owner is gone".to_owned(),
            };
        };
        let gone = match death {
            Death::Certain => "process gone",
            Death::Stopped(_) => "process stopped (SIGSTOP)",
            Death::Unproven => "its process cannot be checked from here",
        };
        match conductor {
            Some(it) if it.silence.is_some() && is_silent(it) => {
                let heard = it.silence.map(duration::brief).unwrap_or_default();
                format!(
                    "conductor {} on {host}, pid {}: last heartbeat {heard} ago, {gone}",
                    it.name, it.pid
                )
            }
            Some(it) => format!("an earlier conductor {} on {host} made the claim", it.name),
            None => format!("the owner's process on {host} no longer exists"),
        }
    }

    fn willing(&self, explained: &ExplainedJob<'_>, job: &Job) -> String {
        let takes = |it: &&Runner| it.answer(explained.entry, job, self.now).reason().is_none();
        let names = self.runners_alive().filter(takes);
        let names: Vec<_> = names.map(|it| it.conductor.name.as_str()).collect();
        match names.as_slice() {
            [one] => (*one).to_owned(),
            [one, other] => format!("{one} or {other}"),
            [one, others @ ..] => format!("{one} or {} others", others.len()),
            [] => "no conductor".to_owned(),
        }
    }

    fn queue(&self, explained: &ExplainedJob<'_>, job: &Job, code: Code) -> String {
        let by = format!("{} accepts the job", self.willing(explained, job));
        match (code, explained.before) {
            (Code::Ready, _) => by,
            (_, Some(0)) => format!("the job is next; {by} when a slot is free"),
            (_, before) => {
                let jobs = before.map_or_else(|| "unknown".to_owned(), |jobs| jobs.to_string());
                format!("{by}, but all slots are busy; jobs ahead: {jobs}")
            }
        }
    }

    fn unavailable(&self, job: &Job) -> &'static str {
        match job {
            _ if job.is_denied => "you may not read this record",
            _ if job.book.is_some() && self.peers.is_some() && !self.sees_peers => {
                "the job is a TaskFlow flow; TaskFlow conductors do not register, so jobboard \
                 cannot see whether one is running"
            }
            _ if !self.sees_conductors => {
                "the job is unclaimed; jobboard cannot see which conductors are running"
            }
            _ => "jobboard cannot see whether a conductor accepts this job",
        }
    }
}

fn exhausted(job: &Job, cause: &Cause) -> String {
    let (tried, most) = tried(job);
    let most = most.min(tried);
    let why = match cause.about == CauseSubject::NoFailure {
        true => format!(", but {NO_FAILURE}"),
        false => String::new(),
    };
    format!("the retry limit is reached ({tried} of {most} attempts){why}")
}

fn trashed(job: &Job) -> String {
    let last = job.attempts.failures.last();
    let reason = job.reason();
    let reason = reason.or_else(|| last.map(|it| it.headline().into()));
    let why = reason.map(|reason| format!(": {reason}"));
    format!("the job is in the trash{}", why.unwrap_or_default())
}

fn ended(job: &Job) -> &'static str {
    match job.ended.as_ref().map(|it| it.outcome) {
        None => "the job has left the board",
        Some(Outcome::Consumed) => "the job is complete",
        Some(Outcome::Failed) => "the job was removed and recorded as failed",
        Some(Outcome::Purged) => "the job was purged",
        Some(Outcome::Moved) => "the job continues on another board",
    }
}
