//! Tests the judgement of jobs and the survey on made-up boards.

mod judge;
mod survey;

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use serde_json::{Value, json};

use super::Snapshot;
use crate::{
    board::{Capabilities, PeerOrder, PeerTraits},
    job::{
        ClaimEnd, Conductor, ConductorReport, Entry, Failure, Fence, Holding, Job, JobKey,
        Location, Malformed, Owner, PublishedPolicy,
    },
    process::host_name,
};

/// A pid that no process has.
const NO_PID: u32 = i32::MAX as u32;

fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

fn ago(seconds: i64) -> DateTime<Utc> {
    now() - TimeDelta::seconds(seconds)
}

fn board(has_peers: bool) -> Snapshot {
    let capabilities = Capabilities {
        has_expiring_claims: true,
        peers: has_peers.then_some(PeerTraits {
            order: PeerOrder::NewestOfTheMostUrgent,
            deletes_malformed: true,
        }),
        ..Capabilities::default()
    };
    Snapshot::new(capabilities, None, now())
}

fn job(name: &str) -> Job {
    with(name, json!({ "command": ["true"] }))
}

fn with(name: &str, details: Value) -> Job {
    Job {
        key: JobKey::new(name),
        uuid: format!("00000000-0000-4000-8000-{:012x}", name.len()),
        details: Some(details.into()),
        created_on: Some(ago(100)),
        ..Job::named(name)
    }
}

fn held(job: Job, owner: &str, lease: ClaimEnd) -> Job {
    let (owner, fence) = (Owner::from_stored(owner), Fence("7".to_owned()));
    let holding = Some(Holding {
        expires_in: (lease == ClaimEnd::Timed).then_some(Duration::from_secs(25)),
        claimed_on: Some(ago(50)),
        ..Holding::new(Some(owner), lease, Some(fence))
    });
    Job { holding, ..job }
}

fn trashed(mut job: Job, failure: Option<&str>) -> Job {
    (job.location, job.trashed_on) = (Location::Trash, Some(ago(10)));
    let failures = failure.map(|reason| Failure::reported(reason, "night"));
    job.attempts.failures.extend(failures);
    job
}

fn exhausted(mut job: Job, reason: &str) -> Job {
    job.attempts.count = 5;
    job.attempts.failures = vec![Failure::reported(reason, "night")];
    job
}

fn entry(job: Job) -> Entry {
    Entry::Job(Box::new(job))
}

fn unreadable(key: &str) -> Entry {
    let problem = "no msgpack".to_owned();
    Entry::Malformed(Malformed::new(JobKey::new(key), problem))
}

pub(super) fn conductor() -> Conductor {
    Conductor {
        name: "night".to_owned(),
        host: "h7".to_owned(),
        pid: 4711,
        since: ago(1000),
        owner: Owner::from_stored("night"),
        silence: Some(Duration::from_secs(3)),
        has_left: false,
        report: ConductorReport {
            version: Some("0.2.0".to_owned()),
            slots: Some(1),
            lease: Some(30.0),
            takes: Some(PublishedPolicy {
                max_attempts: 5,
                ..PublishedPolicy::default()
            }),
            ..ConductorReport::default()
        },
    }
}
