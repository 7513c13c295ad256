//! Looks at load balancers: their rows, jobs, claims and flows.

use std::{collections::HashSet, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    jobs::{Database, Jobs},
    verdict::{ClaimState, Facts, Verdict, last},
};
use crate::{
    board::{Board, BoardError, examine::Examined},
    config::{Config, Octavia, Sourced},
    diagnosis::{
        holder::{Recheck, doubt},
        snapshot::Snapshot,
    },
    job::{Book, ClaimEnd, Entry, JobKey, Location},
    logbook::{Flow, LoadBalancer, StuckAmphora},
    secret::Secret,
};

/// The most load balancers of one look: each takes several queries.
const MAX_BALANCERS: usize = 500;

const NO_LOGBOOKS: &str = "the logbooks cannot be read";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    Pending,
    /// The load balancers with this id prefix, in any status.
    Like(&'a str),
}

#[derive(Debug, Clone)]
pub(crate) struct JudgedBalancer {
    pub(crate) balancer: LoadBalancer,
    pub(crate) verdict: Verdict,
    pub(crate) why: String,
    /// Its job, on the board or in the trash, without details.
    pub(crate) job: Option<Entry>,
    pub(crate) flow: Option<Flow>,
    /// The number of unclaimed jobs that go first.
    pub(crate) in_front: usize,
    /// The data and the logbook of a lost job, if they are still stored.
    pub(crate) origin: Option<(Value, Book)>,
}

impl JudgedBalancer {
    /// Returns the change since an earlier look that forbids the plan made then.
    pub(crate) fn change_since(&self, earlier: &Self) -> Option<String> {
        if self.balancer != earlier.balancer {
            return Some(format!("the load balancer is now {}", self.balancer.status));
        }
        let job = |it: &Self| {
            let job = it.job.as_ref()?.job()?;
            let claim = job.holding.as_ref();
            let claim = claim.map(|it| (it.owner.clone(), it.fence.clone()));
            Some((job.key.clone(), job.location, claim))
        };
        if self.verdict != earlier.verdict || job(self) != job(earlier) {
            return Some(self.why.clone());
        }
        let advanced = |it: &Self| it.flow.as_ref().and_then(Flow::changed);
        (advanced(self) != advanced(earlier)).then(|| "its flow has advanced".to_owned())
    }

    /// Whether its claim has no expiry.
    pub(crate) fn is_held_forever(&self) -> bool {
        let holding = self.job.as_ref().and_then(Entry::holding);
        holding.is_some_and(|it| it.end == ClaimEnd::Never)
    }
}

/// The number of workers, as far as the board shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Those that hold a claim.
    pub(crate) busy: usize,
    /// All that are registered; `None` on a board that registers none.
    pub(crate) alive: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct BalancerReport {
    pub(crate) balancers: Vec<JudgedBalancer>,
    pub(crate) workers: Workers,
    /// The number of pending load balancers that were not judged.
    pub(crate) left_out: usize,
    /// Whether a load balancer changed during the look, and was not judged.
    pub(crate) has_changed: bool,
    /// The logbooks of all jobs, if all jobs were read.
    pub(super) books: Option<HashSet<String>>,
}

pub(crate) struct OctaviaReader {
    pub(super) logbook: Database,
    own: Database,
    expiry: Duration,
}

impl OctaviaReader {
    /// Opens the logbooks, and Octavia's own tables at this address.
    pub(crate) async fn open(
        config: &Config,
        conf: &Octavia,
        own: Option<&Sourced<Secret>>,
    ) -> Self {
        let op_timeout = config.op_timeout.value;
        Self {
            logbook: Database::open(op_timeout, "the logbooks", config.logbook.as_ref()).await,
            own: Database::open(op_timeout, "the load balancers", own).await,
            expiry: conf.expiry,
        }
    }

    pub(crate) async fn amphorae(
        &mut self,
        before: DateTime<Utc>,
        examined: &mut Examined,
    ) -> Vec<StuckAmphora> {
        let asked = self
            .own
            .ask(examined, async |it| it.stuck_amphorae(before).await);
        asked.await.unwrap_or_default()
    }

    /// Reads one row; `None` if it cannot be read.
    pub(crate) async fn row(
        &mut self,
        id: &str,
        examined: &mut Examined,
    ) -> Option<Option<LoadBalancer>> {
        let rows = self.rows(Asked::Like(id), examined).await?;
        Some(rows.into_iter().find(|it| it.id == id))
    }

    async fn rows(
        &mut self,
        asked: Asked<'_>,
        examined: &mut Examined,
    ) -> Option<Vec<LoadBalancer>> {
        let ask = self.own.ask(examined, async |it| match asked {
            Asked::Pending => it.pending_balancers().await,
            Asked::Like(prefix) => it.balancers_with_prefix(prefix).await,
        });
        ask.await
    }

    /// Judges the load balancers that stay as they are during the look; `None` if they cannot be read.
    pub(crate) async fn look(
        &mut self,
        board: &dyn Board,
        asked: Asked<'_>,
        examined: &mut Examined,
    ) -> Option<BalancerReport> {
        let mut rows = self.rows(asked, examined).await?;
        let left_out = rows.len().saturating_sub(MAX_BALANCERS);
        rows.truncate(MAX_BALANCERS);
        if rows.is_empty() {
            return Some(BalancerReport::default());
        }
        let ids: Vec<_> = rows.iter().map(|it| it.id.as_str()).collect();
        // Read the logbooks before the jobs, so that a new job is not missed.
        let flows = self
            .logbook
            .ask(examined, async |it| it.latest_flows(&ids).await)
            .await;
        let mut jobs = Jobs::read(board, &mut self.logbook, examined).await;
        if flows.is_none() {
            jobs.gap.get_or_insert_with(|| NO_LOGBOOKS.to_owned());
        }
        let flows = flows.unwrap_or_default();
        let now = Utc::now();
        let snapshot = Snapshot::read(board, None, now).await;
        let snapshot = snapshot.unwrap_or_else(|error| {
            examined.unseen("the workers", error);
            Snapshot::new(board.capabilities(), None, now).unread()
        });
        let late = self.not_renewed(board, &ids, &jobs).await;
        let late = late.unwrap_or_else(|error| {
            examined.unseen("the claims", error);
            Vec::new()
        });
        let mut balancers = Vec::new();
        for balancer in rows {
            let flow = flows.get(&balancer.id);
            let judged = self.judged(balancer, flow, &jobs, &snapshot, &late, examined);
            balancers.push(judged.await);
        }
        // Their jobs may have ended meanwhile.
        let again = self.rows(asked, examined).await?;
        let count = balancers.len();
        balancers.retain(|it| again.contains(&it.balancer));
        let has_changed = balancers.len() < count;
        let workers = Workers {
            busy: jobs.owners.len(),
            alive: snapshot.sees_peers.then(|| snapshot.alive().count()),
        };
        Some(BalancerReport {
            balancers,
            has_changed,
            workers,
            left_out,
            books: jobs.books,
        })
    }

    async fn judged(
        &mut self,
        balancer: LoadBalancer,
        latest: Option<&String>,
        jobs: &Jobs,
        snapshot: &Snapshot,
        late: &[JobKey],
        examined: &mut Examined,
    ) -> JudgedBalancer {
        let about = |location| jobs.about(&balancer.id, location).collect::<Vec<_>>();
        let (on_board, in_trash) = (about(Location::Board), about(Location::Trash));
        let job = match on_board.as_slice() {
            [entry] => Some(*entry),
            // A flow that no worker has started does not name its load balancer, but its job does.
            [] if latest.is_none() => last(&in_trash),
            _ => None,
        };
        let job = job.and_then(Entry::job);
        let asked = self.logbook.ask(examined, async |it| match (job, latest) {
            (Some(job), _) => it.flow(job).await,
            (None, Some(uuid)) => it.flow_with("uuid", uuid).await,
            (None, None) => Ok(None),
        });
        let asked = asked.await;
        // An unread flow may still run.
        let gap = jobs.gap.as_deref();
        let gap = gap.or(asked.is_none().then_some(NO_LOGBOOKS));
        let flow = asked.flatten();
        let (verdict, job, why) = Facts {
            balancer: &balancer,
            on_board: &on_board,
            in_trash: &in_trash,
            claim: claim_state(&on_board, snapshot, late),
            host: host(&on_board, snapshot),
            flow: flow.as_ref(),
            expiry: self.expiry,
            gap,
            now: snapshot.now,
        }
        .judge();
        let job = job.cloned();
        let origin = match (verdict, &flow) {
            (Verdict::LostJob, Some(flow)) => {
                let asked = self
                    .logbook
                    .ask(examined, async |it| it.origin_of(flow).await);
                asked.await.flatten()
            }
            _ => None,
        };
        JudgedBalancer {
            verdict,
            why,
            in_front: (job.as_ref().and_then(Entry::job)).map_or(0, |job| jobs.in_front(job)),
            job,
            flow,
            origin,
            balancer,
        }
    }

    /// Looks twice at claims that a living worker would have renewed.
    async fn not_renewed(
        &self,
        board: &dyn Board,
        balancers: &[&str],
        jobs: &Jobs,
    ) -> Result<Vec<JobKey>, BoardError> {
        let mut recheck = Recheck::default();
        let peers = board.capabilities().has_peers();
        let jobs = balancers
            .iter()
            .flat_map(|id| jobs.about(id, Location::Board));
        for entry in jobs {
            let holding = entry.holding();
            let pause = holding.and_then(|it| doubt(it, None, peers, Some(self.expiry)));
            if let Some(pause) = pause {
                recheck.add(entry, pause);
            }
        }
        let late = recheck.not_renewed(board, self.expiry).await?;
        Ok(late.iter().map(|it| it.key().clone()).collect())
    }
}

fn claim_state(jobs: &[&Entry], snapshot: &Snapshot, late: &[JobKey]) -> ClaimState {
    let [entry] = jobs else {
        return ClaimState::Held;
    };
    let holding = entry.holding();
    let owner = holding.and_then(|it| Some((it.owner.as_ref()?, it)));
    match owner.map(|(owner, it)| snapshot.holder(owner, it.end, it.claimed_on)) {
        Some(holder) if holder.has_certainly_died() => ClaimState::OwnerDead,
        _ if late.contains(entry.key()) => ClaimState::NotRenewed,
        _ => ClaimState::Held,
    }
}

fn host<'a>(jobs: &[&Entry], snapshot: &'a Snapshot) -> Option<&'a str> {
    let [entry] = jobs else { return None };
    let owner = entry.holding()?.owner.as_ref()?;
    let worker = snapshot.conductors().find(|it| it.owner == *owner)?;
    Some(&worker.host)
}
