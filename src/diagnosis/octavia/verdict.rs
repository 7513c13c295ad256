//! Decides why a load balancer hangs, from its row, its job, its claim and its flow.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::{
    duration,
    job::{Entry, Job, Lease, Shelf},
    logbook::{Flow, LoadBalancer, position},
    names::named,
};

/// How long a request may be on its way from Octavia's API to the board.
const ON_ITS_WAY: TimeDelta = TimeDelta::minutes(2);

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    pub(crate) enum Verdict ("verdict", str::eq) {
        /// It does not hang: ACTIVE, for example.
        Settled => "settled",
        InProgress => "in-progress",
        Waiting => "waiting",
        WorkerDead => "worker-dead",
        LostJob => "lost-job",
        NeverPosted => "never-posted",
        Trashed => "trashed",
        Inconsistent => "inconsistent",
        /// In ERROR: nothing works on it any more.
        Failed => "failed",
        /// A fact is missing, or several jobs work on it.
        Unclear => "unclear",
    }
}

impl Verdict {
    /// Whether it stays like this until an operator acts.
    pub(crate) fn needs_operator(self) -> bool {
        match self {
            Self::Settled | Self::InProgress | Self::Waiting | Self::Failed | Self::Unclear => {
                false
            }
            Self::WorkerDead
            | Self::LostJob
            | Self::NeverPosted
            | Self::Trashed
            | Self::Inconsistent => true,
        }
    }
}

/// The state of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimState {
    Held,
    OwnerDead,
    NotRenewed,
}

pub(super) struct Facts<'a> {
    pub(super) balancer: &'a LoadBalancer,
    pub(super) on_board: &'a [&'a Entry],
    pub(super) in_trash: &'a [&'a Entry],
    pub(super) claim: ClaimState,
    /// The host of the worker that holds the job, where the board records it.
    pub(super) host: Option<&'a str>,
    pub(super) flow: Option<&'a Flow>,
    /// How long a claim lasts without a sign of life.
    pub(super) expiry: Duration,
    pub(super) gap: Option<&'a str>,
    pub(super) now: DateTime<Utc>,
}

/// A verdict, the job that it is about, and the reason in one sentence.
#[derive(Debug, PartialEq)]
pub(super) struct Judgement<'a> {
    pub(super) verdict: Verdict,
    pub(super) job: Option<&'a Entry>,
    pub(super) why: String,
}

impl<'a> Facts<'a> {
    pub(super) fn judge(&self) -> Judgement<'a> {
        let balancer = self.balancer;
        let of_none = |verdict, why: String| Judgement {
            verdict,
            job: None,
            why,
        };
        if !balancer.is_pending() {
            return match balancer.status.as_str() {
                "ERROR" => of_none(Verdict::Failed, "it is in ERROR".to_owned()),
                status => of_none(Verdict::Settled, format!("it is {status}")),
            };
        }
        match self.on_board {
            [] => {}
            [entry] => return self.of_job(entry),
            many => {
                let why = format!("{} jobs on the board work on it", many.len());
                return of_none(Verdict::Unclear, why);
            }
        }
        if let Some(gap) = self.gap {
            let why = format!("a job on the board may work on it: {gap}");
            return of_none(Verdict::Unclear, why);
        }
        if let Some(ago) = self.advanced() {
            let why = format!("its flow advanced {ago} ago, but its job is no longer on the board");
            return of_none(Verdict::InProgress, why);
        }
        if let Some(entry) = self.trashed() {
            let why = match self.flow {
                Some(_) => "its job is in the trash, and its logbook still exists".to_owned(),
                None => "its job is in the trash, and its logbook is gone".to_owned(),
            };
            return Judgement {
                verdict: Verdict::Trashed,
                job: Some(entry),
                why,
            };
        }
        match self.flow {
            Some(flow) if has_ended(flow) => {
                let position = position(flow, self.now);
                let why = format!("{position}, but the load balancer is still pending");
                of_none(Verdict::Inconsistent, why)
            }
            Some(_) => {
                let why =
                    "its logbook exists, but its job is neither on the board nor in the trash";
                of_none(Verdict::LostJob, why.to_owned())
            }
            None => self.without_trace(),
        }
    }

    fn of_job(&self, entry: &'a Entry) -> Judgement<'a> {
        let (verdict, why) = match entry
            .job()
            .and_then(|job| Some((job, job.holding.as_ref()?)))
        {
            None => match self.advanced() {
                Some(ago) => {
                    let why = format!("its flow advanced {ago} ago, although its job is unclaimed");
                    (Verdict::InProgress, why)
                }
                None => (Verdict::Waiting, "no worker has claimed its job".to_owned()),
            },
            Some((job, holding)) => {
                let host = self.host.map(|host| format!(" on {host}"));
                let owner = owner(job) + &host.unwrap_or_default();
                match self.claim {
                    ClaimState::OwnerDead => {
                        let why = format!("{owner} holds its job, but that process is gone");
                        (Verdict::WorkerDead, why)
                    }
                    ClaimState::NotRenewed => {
                        let why = format!("{owner} holds its job, but no longer renews the claim");
                        (Verdict::WorkerDead, why)
                    }
                    ClaimState::Held => {
                        let since = job.held_since().map(|it| self.long(it));
                        let since = since.map_or_else(String::new, |it| format!(" for {it}"));
                        let unsure = match holding.lease {
                            Lease::None => ", and the claim never expires",
                            Lease::Timed | Lease::Session => "",
                        };
                        let why = format!("{owner} has held its job{since}{unsure}");
                        (Verdict::InProgress, why)
                    }
                }
            }
        };
        Judgement {
            verdict,
            job: Some(entry),
            why,
        }
    }

    /// Returns the trashed job of the latest flow. Jobs of earlier flows say nothing about the present state.
    fn trashed(&self) -> Option<&'a Entry> {
        let latest = last(self.in_trash)?;
        let job = latest.job()?;
        let is_of_flow = |flow: &Flow| job.name == flow.name || job.name.ends_with(&flow.uuid);
        let is_since = |since| job.trashed_on.is_none_or(|at| at + ON_ITS_WAY > since);
        let is_meant = match self.flow {
            Some(flow) => is_of_flow(flow),
            None => self.balancer.since.is_none_or(is_since),
        };
        (is_meant && job.shelf == Shelf::Trash).then_some(latest)
    }

    fn without_trace(&self) -> Judgement<'a> {
        let age = self.balancer.since.map(|since| self.now - since);
        let (verdict, why) = match (self.balancer.since, age) {
            (Some(since), Some(age)) if age < ON_ITS_WAY => {
                let long = self.long(since);
                let why =
                    format!("it was requested {long} ago, so its job may still be on its way");
                (Verdict::InProgress, why)
            }
            _ => {
                let why = "no job and no logbook mention it";
                (Verdict::NeverPosted, why.to_owned())
            }
        };
        Judgement {
            verdict,
            job: None,
            why,
        }
    }

    /// Returns how long ago an unfinished flow advanced, if that is recent enough for a running worker.
    fn advanced(&self) -> Option<String> {
        let flow = self.flow.filter(|flow| flow.is_under_way())?;
        let changed = flow.changed()?;
        let expiry = TimeDelta::from_std(self.expiry).ok()?;
        (self.now - changed < expiry).then(|| self.long(changed))
    }

    fn long(&self, since: DateTime<Utc>) -> String {
        duration::brief((self.now - since).to_std().unwrap_or_default())
    }
}

/// Returns the job that was trashed last.
pub(super) fn last<'a>(jobs: &[&'a Entry]) -> Option<&'a Entry> {
    let trashed = |entry: &&Entry| entry.job().and_then(|it| it.trashed_on.or(it.created_on));
    jobs.iter().copied().max_by_key(trashed)
}

fn has_ended(flow: &Flow) -> bool {
    let state = flow.state.as_deref();
    state.is_some_and(|it| matches!(it, "SUCCESS" | "REVERTED" | "FAILURE"))
}

fn owner(job: &Job) -> String {
    match job.owner() {
        Some(owner) => owner.to_string(),
        None => "an unreadable owner".to_owned(),
    }
}
