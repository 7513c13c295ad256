//! Verdicts on load balancers, from made-up facts.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::verdict::{ClaimState, Facts, Verdict};
use crate::{
    job::{ClaimEnd, Entry, Holding, Job, Location, Owner},
    logbook::{Flow, LoadBalancer},
};

const EXPIRY: Duration = Duration::from_secs(30);

struct World {
    now: DateTime<Utc>,
    balancer: LoadBalancer,
    on_board: Vec<Entry>,
    in_trash: Vec<Entry>,
    claim: ClaimState,
    flow: Option<Flow>,
    gap: Option<&'static str>,
}

impl World {
    /// A load balancer that has been pending for an hour, and nothing else.
    fn new(status: &str) -> Self {
        let now = Utc::now();
        Self {
            now,
            balancer: LoadBalancer {
                id: "5f3a".to_owned(),
                name: "web".to_owned(),
                status: status.to_owned(),
                updated: None,
                since: Some(now - TimeDelta::hours(1)),
            },
            on_board: Vec::new(),
            in_trash: Vec::new(),
            claim: ClaimState::Held,
            flow: None,
            gap: None,
        }
    }

    fn pending() -> Self {
        Self::new("PENDING_UPDATE")
    }

    fn requested(mut self, ago: TimeDelta) -> Self {
        self.balancer.since = Some(self.now - ago);
        self
    }

    fn with_job(mut self, lease: Option<ClaimEnd>) -> Self {
        let mut job = Job::named("get_update_load_balancer_flow-f");
        job.holding = lease
            .map(|lease| Holding::new(Some(Owner::from_stored("octavia-worker")), lease, None));
        self.on_board.push(Entry::Job(Box::new(job)));
        self
    }

    fn with_trashed(mut self, name: &str, ago: TimeDelta) -> Self {
        let mut job = Job::named(name);
        job.location = Location::Trash;
        job.trashed_on = Some(self.now - ago);
        self.in_trash.push(Entry::Job(Box::new(job)));
        self
    }

    fn claim(mut self, claim: ClaimState) -> Self {
        self.claim = claim;
        self
    }

    fn with_flow(mut self, state: &str, ago: TimeDelta) -> Self {
        self.flow = Some(Flow {
            uuid: "f".to_owned(),
            name: "get_update_load_balancer_flow-f".to_owned(),
            state: Some(state.to_owned()),
            updated: Some(self.now - ago),
            ..Flow::default()
        });
        self
    }

    fn with_gap(mut self) -> Self {
        self.gap = Some("the jobs cannot be read");
        self
    }

    fn verdict(&self) -> (Verdict, bool) {
        let [on_board, in_trash]: [Vec<_>; 2] =
            [&self.on_board, &self.in_trash].map(|entries| entries.iter().collect());
        let (verdict, job, why) = Facts {
            balancer: &self.balancer,
            on_board: &on_board,
            in_trash: &in_trash,
            claim: self.claim,
            host: None,
            flow: self.flow.as_ref(),
            expiry: EXPIRY,
            gap: self.gap,
            now: self.now,
        }
        .judge();
        assert!(!why.is_empty());
        (verdict, job.is_some())
    }
}

fn check(cases: &[(World, Verdict)]) {
    for (at, (world, expected)) in cases.iter().enumerate() {
        let (verdict, has_job) = world.verdict();
        assert_eq!(verdict, *expected, "case {at}");
        let is_about_job = matches!(
            verdict,
            Verdict::Waiting | Verdict::WorkerDead | Verdict::Trashed
        );
        assert!(has_job || !is_about_job, "case {at}");
    }
}

#[test]
fn job_on_the_board_decides_the_verdict() {
    let (recent, old) = (TimeDelta::seconds(3), TimeDelta::minutes(30));
    let timed = Some(ClaimEnd::Timed);
    let claimed = || World::pending().with_job(timed);
    let free = || World::pending().with_job(None);
    check(&[
        (World::new("ACTIVE").with_job(timed), Verdict::Settled),
        (World::new("ERROR"), Verdict::Failed),
        (claimed(), Verdict::InProgress),
        (claimed().claim(ClaimState::OwnerDead), Verdict::WorkerDead),
        (claimed().claim(ClaimState::NotRenewed), Verdict::WorkerDead),
        (free(), Verdict::Waiting),
        (free().with_flow("RUNNING", old), Verdict::Waiting),
        // Its worker lost the claim without noticing.
        (free().with_flow("RUNNING", recent), Verdict::InProgress),
        (claimed().with_job(None), Verdict::Unclear),
        (
            claimed().with_job(None).with_flow("SUCCESS", old),
            Verdict::Unclear,
        ),
        // Unreadable facts do not matter then.
        (free().with_gap(), Verdict::Waiting),
    ]);
}

#[test]
fn flow_and_trash_decide_without_a_job_on_the_board() {
    let (recent, old) = (TimeDelta::seconds(3), TimeDelta::minutes(30));
    let (name, week) = ("get_update_load_balancer_flow-f", TimeDelta::weeks(1));
    let pending = World::pending;
    let trashed = |ago| pending().with_trashed(name, ago);
    let of_another = pending().with_trashed("get_create_load_balancer_flow-e", week);
    check(&[
        (pending().with_gap(), Verdict::Unclear),
        (
            pending().with_flow("RUNNING", old).with_gap(),
            Verdict::Unclear,
        ),
        // Its worker still runs, but the job is gone.
        (pending().with_flow("RUNNING", recent), Verdict::InProgress),
        (pending().with_flow("RUNNING", old), Verdict::LostJob),
        (pending().with_flow("PENDING", recent), Verdict::LostJob),
        (
            pending().with_flow("SUCCESS", recent),
            Verdict::Inconsistent,
        ),
        (pending().with_flow("REVERTED", old), Verdict::Inconsistent),
        (trashed(old), Verdict::Trashed),
        (trashed(old).with_flow("RUNNING", old), Verdict::Trashed),
        // The trashed job is of an earlier flow.
        (of_another.with_flow("RUNNING", old), Verdict::LostJob),
        (trashed(week), Verdict::NeverPosted),
        (pending(), Verdict::NeverPosted),
        (pending().requested(recent), Verdict::InProgress),
    ]);
}

#[test]
fn statement_changes_the_row_as_it_was_seen() {
    let mut balancer = World::pending().balancer;
    let start = "UPDATE load_balancer SET provisioning_status = 'ERROR' WHERE id = '5f3a' AND \
        provisioning_status = 'PENDING_UPDATE' AND updated_at ";
    assert_eq!(balancer.to_error(), Some(format!("{start}IS NULL")));
    balancer.updated = Some("2026-11-21 20:48:49.442586".to_owned());
    let time = "= '2026-11-21 20:48:49.442586'";
    assert_eq!(balancer.to_error(), Some(format!("{start}{time}")));
    for odd in ["x' OR '1' = '1", "", "a\\", "a\nb"] {
        balancer.id = odd.to_owned();
        assert_eq!(balancer.to_error(), None, "{odd:?}");
    }
}
