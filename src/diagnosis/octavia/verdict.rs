//! Decides why a load balancer is stuck, from its row, its job, its claim and its flow.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::{
    duration,
    job::{ClaimEnd, Entry, Job, Location},
    logbook::{Flow, LoadBalancer, flow_state, position},
    names::named,
};

/// How long a request may be on its way from Octavia's API to the board.
const ON_ITS_WAY: TimeDelta = TimeDelta::minutes(2);

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    pub(crate) enum Verdict ("verdict", str::eq) {
        /// It is not stuck: ACTIVE, for example.
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

impl<'a> Facts<'a> {
    /// Returns the verdict, the job that it is about, and the reason in one sentence.
    pub(super) fn judge(&self) -> (Verdict, Option<&'a Entry>, String) {
        match self.on_board {
            _ if !self.balancer.is_pending() => match self.balancer.status.as_str() {
                "ERROR" => (Verdict::Failed, None, "it is in ERROR".to_owned()),
                status => (Verdict::Settled, None, format!("it is {status}")),
            },
            [] => self.without_job(),
            [entry] => {
                let (verdict, why) = self.of_job(entry);
                (verdict, Some(*entry), why)
            }
            many => {
                let why = format!("{} jobs on the board work on it", many.len());
                (Verdict::Unclear, None, why)
            }
        }
    }

    fn without_job(&self) -> (Verdict, Option<&'a Entry>, String) {
        if let Some(gap) = self.gap {
            let why = format!("a job on the board may be working on it: {gap}");
            return (Verdict::Unclear, None, why);
        }
        if let Some(ago) = self.advanced() {
            let why = format!("its flow advanced {ago} ago, but its job is no longer on the board");
            return (Verdict::InProgress, None, why);
        }
        if let Some(entry) = self.trashed() {
            let logbook = match self.flow {
                Some(_) => "still exists",
                None => "is gone",
            };
            let why = format!("its job is in the trash, and its logbook {logbook}");
            return (Verdict::Trashed, Some(entry), why);
        }
        let ends = [
            flow_state::SUCCESS,
            flow_state::REVERTED,
            flow_state::FAILURE,
        ];
        let is_over = |flow: &Flow| flow.state.as_deref().is_some_and(|it| ends.contains(&it));
        let (verdict, why) = match (self.flow, self.balancer.since) {
            (Some(flow), _) if is_over(flow) => {
                let position = position(flow, self.now);
                let why = format!("{position}, but the load balancer is still pending");
                (Verdict::Inconsistent, why)
            }
            (Some(_), _) => {
                let why =
                    "its logbook exists, but its job is neither on the board nor in the trash";
                (Verdict::LostJob, why.to_owned())
            }
            (None, Some(since)) if self.now - since < ON_ITS_WAY => {
                let ago = self.long(since);
                let why = format!("it was requested {ago} ago, so its job may still be on its way");
                (Verdict::InProgress, why)
            }
            (None, _) => {
                let why = "neither a job nor a logbook mentions it";
                (Verdict::NeverPosted, why.to_owned())
            }
        };
        (verdict, None, why)
    }

    fn of_job(&self, entry: &'a Entry) -> (Verdict, String) {
        let claimed = |job: &'a Job| Some((job, job.holding.as_ref()?));
        let Some((job, holding)) = entry.job().and_then(claimed) else {
            return match self.advanced() {
                Some(ago) => {
                    let why = format!("its flow advanced {ago} ago, although its job is unclaimed");
                    (Verdict::InProgress, why)
                }
                None => (Verdict::Waiting, "no worker has claimed its job".to_owned()),
            };
        };
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
                let unsure = match holding.end {
                    ClaimEnd::Never => ", and the claim never expires",
                    ClaimEnd::Timed | ClaimEnd::Session => "",
                };
                let why = format!("{owner} has held its job{since}{unsure}");
                (Verdict::InProgress, why)
            }
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
        (is_meant && job.location == Location::Trash).then_some(latest)
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

pub(super) fn last<'a>(jobs: &[&'a Entry]) -> Option<&'a Entry> {
    let trashed = |entry: &&Entry| entry.job().and_then(|it| it.trashed_on.or(it.created_on));
    jobs.iter().copied().max_by_key(trashed)
}

fn owner(job: &Job) -> String {
    match job.owner() {
        Some(owner) => owner.to_string(),
        None => "an unreadable owner".to_owned(),
    }
}
