//! The verdict on one job: its state, or the cause why it does not run. Every command judges by this function.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Cause, CauseSubject, Snapshot,
    causes::{CLAIMED, NO_OWNER, RefusedJob},
    holder::{
        Death, Holder, SKEW, doubt, is_copy_of_move, is_left_by_move, is_move_over, is_older,
    },
    runner::{Runner, RunnerAnswer},
    signature::signature,
};
use crate::{
    conductor::{
        admission::{Rejection, admit},
        policy::ExecutionPolicy,
    },
    job::{ClaimEnd, Entry, Failure, Holding, Job, Location, MAX_RUNS, Malformed, Outcome},
    problem::Code,
    retry::{MAX_ATTEMPTS, NO_FAILURE},
};

/// The longest back-off, and a day for clocks that differ.
const MAX_DELAY: TimeDelta = TimeDelta::days(366);

/// A job blocks posters at this age, or after 20 expiries if that is longer.
const MIN_BLOCKING: Duration = Duration::from_secs(600);

/// The time left of a claim by hand that is worth a word.
const EXPIRES_SOON: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) main: Cause,
    pub(crate) also: Vec<Cause>,
    pub(crate) will_run: bool,
    /// How long the claim has to be watched to know that it is renewed.
    pub(crate) pause: Option<Duration>,
}

impl Judged {
    pub(crate) fn causes(&self) -> impl Iterator<Item = &Cause> {
        [&self.main].into_iter().chain(&self.also)
    }

    /// Whether a conductor takes the job now or as soon as a slot is free.
    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.main.code, Code::Ready | Code::Waiting)
    }

    /// Whether a conductor could run the job now, if one accepts it.
    pub(crate) fn is_claimable(&self, job: &Job, now: DateTime<Utc>) -> bool {
        let prevents = |cause: &Cause| {
            matches!(
                cause.code,
                Code::Paused | Code::RetriesExhausted | Code::InvalidCommand
            )
        };
        let is_free = job.holding.is_none() && job.may_be_offered();
        is_free && !job.attempts.is_delayed(now) && !self.causes().any(prevents)
    }
}

#[derive(Default)]
struct Answers {
    count: usize,
    takes: bool,
    /// Whether the job is below the retry limit of one that takes it.
    is_fresh: bool,
    free: usize,
    refusal: Option<RefusedJob>,
    is_unknown: bool,
}

impl Answers {
    fn add(&mut self, runner: &Runner, answer: RunnerAnswer) {
        self.count += 1;
        match answer {
            RunnerAnswer::Accepts { is_spent } => {
                self.takes = true;
                self.is_fresh |= !is_spent;
                self.free += runner.conductor.free();
            }
            RunnerAnswer::Refuses { reason, remedy } if self.refusal.is_none() => {
                self.refusal = Some(RefusedJob {
                    conductor: runner.conductor.name.clone(),
                    reason,
                    remedy,
                });
            }
            RunnerAnswer::Unknown(_) => self.is_unknown = true,
            RunnerAnswer::Refuses { .. } | RunnerAnswer::Skips(_) => {}
        }
    }
}

/// Returns the failed attempts and the retry limit that the job or the default sets.
pub(super) fn tried(job: &Job) -> (u32, u32) {
    // A running attempt has not failed.
    let under_way = u32::from(job.holding.is_some());
    let most = job.own_max_attempts();
    let tried = job.attempts.count.saturating_sub(under_way);
    (tried, most.unwrap_or(MAX_ATTEMPTS))
}

fn is_exhausted(job: &Job) -> bool {
    // Without an attempt the limit does not matter, and stays encoded.
    if job.holding.is_some() || job.attempts.count == 0 {
        return false;
    }
    let (tried, most) = tried(job);
    tried >= most
}

impl Snapshot {
    pub(crate) fn judge(&self, entry: &Entry) -> Judged {
        let (main, will_run) = match entry {
            Entry::Malformed(record) if record.is_denied => (Cause::of(Code::Unavailable), false),
            Entry::Malformed(record) => (unreadable(record), false),
            Entry::Job(job) => match (job.location, &job.holding) {
                (Location::Trash, _) => (trashed(job), false),
                (Location::History, _) => {
                    let is_well =
                        (job.ended.as_ref()).is_none_or(|it| it.outcome != Outcome::Failed);
                    (Cause::of(Code::Ended), is_well)
                }
                (Location::Board, Some(holding)) => self.held(job, holding),
                (Location::Board, None) => self.waiting(entry, job),
            },
        };
        let on_board = entry.job().filter(|job| job.location == Location::Board);
        let also = on_board.map(|job| self.further_problems(job, &main));
        let pause = entry.holding().filter(|_| main.code == Code::Running);
        Judged {
            pause: pause.and_then(|holding| {
                let runner = self.runner_with(holding);
                doubt(holding, runner, self.peers.is_some(), self.octavia_expiry)
            }),
            main,
            also: also.unwrap_or_default(),
            will_run,
        }
    }

    fn held(&self, job: &Job, holding: &Holding) -> (Cause, bool) {
        let Some(owner) = &holding.owner else {
            let problem = job.problem.as_deref().unwrap_or("the owner cannot be read");
            return match job.is_denied {
                true => (Cause::of(Code::Unavailable), false),
                false => (Cause::text(Code::BrokenLock, problem), false),
            };
        };
        if is_copy_of_move(holding) {
            return match is_move_over(owner, holding.claimed_on, self.now) {
                true => {
                    let from = job.moved_from().unwrap_or_default();
                    (Cause::text(Code::UnfinishedMove, from), false)
                }
                false => (Cause::of(Code::Running), true),
            };
        }
        let expires = holding.end != ClaimEnd::Never;
        match self.holder(owner, holding.end, holding.claimed_on) {
            Holder::Dead { host, death, .. } => {
                let code = match death {
                    Death::Stopped(_) => Code::OwnerStopped,
                    Death::Certain | Death::Unproven => Code::OwnerDead,
                };
                (Cause::new(code, CauseSubject::Host(host, death)), expires)
            }
            Holder::Conductor(at) => self.held_by(&self.runners[at], job, holding),
            // The claim on the source board ends soon, and `copy --resume` finishes the move.
            Holder::Other if expires && is_left_by_move(holding) => {
                (Cause::of(Code::ClaimExpiresSoon), true)
            }
            Holder::Other if !expires => {
                let about = CauseSubject::Owner(owner.brief().into_owned());
                (Cause::new(Code::ClaimNeverExpires, about), false)
            }
            Holder::Other => {
                let left = holding.expires_in.filter(|_| holding.fence.is_some());
                let code = match left.is_some_and(|left| left < EXPIRES_SOON) {
                    true => Code::ClaimExpiresSoon,
                    false => Code::Running,
                };
                (Cause::of(code), true)
            }
        }
    }

    fn held_by(&self, runner: &Runner, job: &Job, holding: &Holding) -> (Cause, bool) {
        let (report, since) = (&runner.conductor.report, runner.conductor.since);
        let reference = job.reference();
        if let Some(stuck) = report.unsettled.iter().find(|it| it.uuid == reference) {
            return (Cause::text(Code::UnsettledJob, &stuck.reason), false);
        }
        // A conductor of this name that ended earlier made the claim.
        let may_run = report.runs.len() >= MAX_RUNS || runner.runs(job).is_some();
        if is_older(holding.claimed_on, since) && !may_run {
            let about = CauseSubject::Host(runner.conductor.host.clone(), Death::Unproven);
            let expires = holding.end != ClaimEnd::Never;
            return (Cause::new(Code::OwnerDead, about), expires);
        }
        (Cause::of(Code::Running), true)
    }

    fn waiting(&self, entry: &Entry, job: &Job) -> (Cause, bool) {
        let problem = || job.problem.clone().unwrap_or_default();
        if job.is_denied {
            return (Cause::of(Code::Unavailable), false);
        }
        if job.is_blocked {
            return (Cause::text(Code::BrokenLock, NO_OWNER), false);
        }
        if job.is_unfit {
            return (Cause::text(Code::UnreadableSidecar, problem()), false);
        }
        // Whoever paused it decides when its other problems matter.
        if let Some(pause) = self.pauses.of(&job.name, self.now) {
            let ends = pause.until.is_some();
            return (Cause::text(Code::Paused, &pause.names), ends);
        }
        if is_excessively_delayed(job, self.now) {
            return (Cause::of(Code::ExcessiveDelay), false);
        }
        let mut answers = Answers::default();
        for runner in self.runners_staying() {
            answers.add(runner, runner.answer(entry, job, self.now));
            if answers.takes && answers.is_fresh && answers.free > 0 {
                break;
            }
        }
        if !answers.takes {
            return (self.not_taken(job, answers), false);
        }
        match job.attempts.is_delayed(self.now) {
            _ if !answers.is_fresh => (exhausted(job), false),
            true => (Cause::of(Code::BackingOff), true),
            false if answers.free == 0 => (Cause::of(Code::Waiting), true),
            false => (Cause::of(Code::Ready), true),
        }
    }

    fn not_taken(&self, job: &Job, answers: Answers) -> Cause {
        if let Err(Rejection::Policy(flaw)) = admit(&ExecutionPolicy::unrestricted(), job)
            && flaw.is_final()
        {
            return Cause::text(Code::InvalidCommand, flaw.to_string());
        }
        let is_for_peers = job.book.is_some() && self.peers.is_some() && !self.sees_peers;
        let is_unseen = answers.count == 0 && !self.sees_conductors;
        match answers.refusal {
            Some(refusal) => {
                let about = CauseSubject::Refusal(Box::new(refusal));
                Cause::new(Code::ConductorRefuses, about)
            }
            None if is_for_peers || is_unseen || answers.is_unknown => Cause::of(Code::Unavailable),
            // A conductor would only move the job to the trash.
            None if answers.count == 0 && is_exhausted(job) => exhausted(job),
            // A conductor may come before the back-off ends.
            None if answers.count == 0 && job.attempts.is_delayed(self.now) => {
                Cause::of(Code::BackingOff)
            }
            None if answers.count == 0 => Cause::of(Code::NoConductor),
            None => Cause::text(Code::NoMatchingConductor, &job.name),
        }
    }

    fn further_problems(&self, job: &Job, main: &Cause) -> Vec<Cause> {
        let mut also = Vec::new();
        let is_reported =
            job.is_unfit || job.is_blocked || (job.holding.is_some() && job.owner().is_none());
        if let Some(problem) = &job.problem
            && self.peers.is_some()
            && !is_reported
        {
            also.push(Cause::text(Code::BreaksPeers, problem));
        }
        if job.is_unfit && main.code != Code::UnreadableSidecar {
            let problem = job.problem.clone().unwrap_or_default();
            also.push(Cause::text(Code::UnreadableSidecar, problem));
        }
        if job.is_misnamed {
            also.push(Cause::of(Code::UuidMismatch));
        }
        let is_on_purpose = matches!(main.code, Code::RetriesExhausted | Code::Paused);
        if !is_on_purpose && is_exhausted(job) {
            also.push(exhausted(job));
        }
        also.extend(self.blocks_posters(job));
        if time_ahead_of_clock(job, self.now).is_some() {
            also.push(Cause::of(Code::ClockSkew));
        }
        also
    }

    /// Returns the cause if an old job blocks Octavia's board: all posters wait for it.
    pub(crate) fn blocks_posters(&self, job: &Job) -> Option<Cause> {
        let least = MIN_BLOCKING.max(self.octavia_expiry?.saturating_mul(20));
        let age = (self.now - job.created_on?).to_std().ok()?;
        (age >= least).then(|| Cause::of(Code::BlocksPosters))
    }
}

fn is_excessively_delayed(job: &Job, now: DateTime<Utc>) -> bool {
    let delay = job.attempts.not_before.map(|time| time - now);
    // A forced release delays a job for the rest of its claim.
    let is_released = job.attempts.may_run_until(now).is_some();
    delay.is_some_and(|delay| delay > MAX_DELAY) && !is_released
}

/// Returns the job's time that is the furthest ahead of our clock, beyond what is ignored.
pub(super) fn time_ahead_of_clock(
    job: &Job,
    now: DateTime<Utc>,
) -> Option<(&'static str, DateTime<Utc>)> {
    let times = [
        ("posted", job.created_on),
        ("modified", job.last_modified),
        ("claimed", job.holding.as_ref().and_then(|it| it.claimed_on)),
    ];
    let times = times
        .into_iter()
        .filter_map(|(what, time)| Some((what, time?)));
    let furthest = times
        .max_by_key(|(_, time)| *time)
        .filter(|(_, time)| *time - now > SKEW)?;
    // Reading a large board takes a while, and new jobs appear.
    (furthest.1 - Utc::now() > SKEW || now > Utc::now()).then_some(furthest)
}

/// Somebody may work on a claimed record that only we cannot read.
fn unreadable(record: &Malformed) -> Cause {
    let claim = match &record.holding {
        None => "unclaimed",
        Some(_) => CLAIMED,
    };
    Cause::text(Code::UnreadableRecord, claim)
}

fn exhausted(job: &Job) -> Cause {
    let mut failures = job.attempts.failures.iter();
    let last = failures.rfind(|it| !it.is_release());
    Cause::new(
        Code::RetriesExhausted,
        last.map_or(CauseSubject::NoFailure, of_failure),
    )
}

fn trashed(job: &Job) -> Cause {
    match job.fatal_failure() {
        Some(last) => Cause::new(Code::Failed, of_failure(last)),
        None => Cause::of(Code::Trashed),
    }
}

fn of_failure(last: &Failure) -> CauseSubject {
    match last.reason == NO_FAILURE {
        true => CauseSubject::NoFailure,
        false => CauseSubject::Text(signature(last)),
    }
}
