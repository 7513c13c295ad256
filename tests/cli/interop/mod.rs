//! One live board shared with Python TaskFlow, on every kind of server.

mod expiry;
mod faults;
mod night;
pub(crate) mod shared;

use serde_json::json;

use self::shared::{SIDES, Shared, Side, pairs, triples};
use crate::support::{Host, Location, Server, ZooKeeper, assert_contains, column, wait_until};

macro_rules! on_all_servers {
    ($($name:ident,)*) => {
        mod redis {
            $(#[test] fn $name() { super::$name::<super::Server>(); })*
        }

        mod zookeeper {
            $(#[test] fn $name() { super::$name::<super::ZooKeeper>(); })*
        }
    };
}

on_all_servers! {
    both_list_the_same_jobs,
    each_finishes_jobs_of_the_other,
    held_job_is_refused_to_the_other,
    trashed_job_is_restored_and_finished_by_either,
    held_claim_is_respected_by_the_other_until_it_ends,
    held_claim_taken_by_the_other_is_released,
}

fn both_list_the_same_jobs<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    let details = json!({
        "text": "héllo ☃", "none": null, "yes": true, "deep": [{"a": [1, -2, 3.5]}],
        "exact": 95.590_019_048_695_07, "large": u64::MAX, "small": i64::MIN, "long": "x".repeat(70_000),
    });
    let priorities = ["VERY_LOW", "NORMAL", "HIGH", "LOW", "VERY_HIGH"];
    for (at, priority) in priorities.into_iter().cycle().take(10).enumerate() {
        let side = SIDES[(at / 2) % 2];
        shared.post(side, &format!("job-{at}"), priority, &details);
        assert_eq!(shared.jobs().len(), at + 1);
    }
    let jobs = shared.jobs();
    assert!(jobs.iter().all(|job| job["details"] == details));
    let in_order = H::TASKFLOWS_ORDER.map(|number| format!("job-{number}"));
    assert_eq!(column(&jobs, "name"), in_order);
    let oldest_first = [4, 9, 2, 7, 1, 6, 3, 8, 0, 5].map(|number| format!("job-{number}"));
    assert_eq!(shared.env.names(), oldest_first);
}

fn each_finishes_jobs_of_the_other<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    for (poster, claimer, finisher) in triples() {
        for verb in ["abandon", "consume", "trash"] {
            let name = format!("{poster:?}-{claimer:?}-{finisher:?}-{verb}");
            let job = shared.post(poster, &name, "NORMAL", &json!({"size": 3}));
            shared.is(&job, "UNCLAIMED", None);
            shared.does(claimer, "claim", &job, "adä@host").unwrap();
            shared.is(&job, "CLAIMED", Some("adä@host"));
            shared.does(finisher, verb, &job, "adä@host").unwrap();
            if verb == "abandon" {
                shared.is(&job, "UNCLAIMED", None);
                shared.does(finisher, "claim", &job, "bob").unwrap();
                shared.does(claimer, "consume", &job, "bob").unwrap();
            }
            shared.is(&job, "COMPLETE", None);
        }
    }
    let trash = shared.env.ok("list --trash --count");
    assert_eq!(trash, "8\n");
}

/// Returns the error of a side for a job of this owner.
fn refusal<'a>(side: Side, verb: &str, owner: &'a str) -> &'a str {
    match (side, verb) {
        (Side::Jobboard, _) => owner,
        // TaskFlow does not always name the owner.
        (Side::TaskFlow, "claim") => "UnclaimableJob",
        (Side::TaskFlow, _) => "JobFailure",
    }
}

fn held_job_is_refused_to_the_other<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    for (holder, other) in pairs() {
        let job = shared.post(other, "resize", "HIGH", &json!({}));
        for verb in ["abandon", "consume", "trash"] {
            shared.does(other, verb, &job, "bob").unwrap_err();
        }
        shared.does(holder, "claim", &job, "ada@host").unwrap();
        let before = shared.everything();
        for verb in ["claim", "abandon", "consume", "trash"] {
            let refused = shared.does(other, verb, &job, "bob").unwrap_err();
            assert_contains(&refused, refusal(other, verb, "ada@host"));
        }
        assert_eq!(shared.everything(), before);
        shared.is(&job, "CLAIMED", Some("ada@host"));
        shared.does(other, "consume", &job, "ada@host").unwrap();
    }
}

fn trashed_job_is_restored_and_finished_by_either<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    for (trasher, finisher) in pairs() {
        let job = shared.post(trasher, "resize", "LOW", &json!({"size": [1, 2]}));
        let before = shared.posting(Location::Board, &job);
        shared.does(finisher, "claim", &job, "ada").unwrap();
        shared.does(trasher, "trash", &job, "ada").unwrap();
        let trashed = shared.posting(Location::Trash, &job);
        match trasher {
            Side::Jobboard => assert_eq!(trashed, before),
            Side::TaskFlow => assert!(H::is_as_trashed(&before, &trashed), "{trashed}"),
        }
        assert_eq!(shared.env.state(&job), "TRASHED");
        let listed = shared.env.json("list --trash --json --filter name=resize");
        assert!(listed[0]["trashed_on"].is_string(), "{listed}");
        shared.env.ok(format!("restore {job} --yes"));
        assert_eq!(shared.posting(Location::Board, &job), trashed);
        shared.is(&job, "UNCLAIMED", None);
        assert_eq!(shared.ask_peer("is_modified", &job), true);
        shared.does(finisher, "claim", &job, "bob").unwrap();
        shared.does(finisher, "consume", &job, "bob").unwrap();
        shared.is(&job, "COMPLETE", None);
    }
}

fn held_claim_is_respected_by_the_other_until_it_ends<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let hold = ["claim", &job, "--hold", "--who", "ada", "--lease", "1m"];
    let held = shared.env.jobboard(&hold).spawn();
    wait_until("the job is claimed", || {
        shared.ask_peer("state", &job) == "CLAIMED"
    });
    let owner = shared.ask_peer("owner", &job).as_str().unwrap().to_owned();
    assert!(owner.starts_with("ada:"), "{owner}");
    shared.is(&job, "CLAIMED", Some(&owner));
    for verb in ["claim", "abandon", "consume", "trash"] {
        let refused = shared.does(Side::TaskFlow, verb, &job, "ada").unwrap_err();
        assert_contains(&refused, refusal(Side::TaskFlow, verb, &owner));
    }
    held.signal(rustix::process::Signal::INT);
    held.ended().succeeded();
    shared.is(&job, "UNCLAIMED", None);
}

fn held_claim_taken_by_the_other_is_released<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let hold = ["claim", &job, "--hold", "--who", "ada", "--lease", "2s"];
    let held = shared.env.jobboard(&hold).spawn();
    wait_until("the job is claimed", || {
        shared.ask_peer("state", &job) == "CLAIMED"
    });
    let owner = shared.ask_peer("owner", &job).as_str().unwrap().to_owned();
    shared
        .does(Side::TaskFlow, "abandon", &job, &owner)
        .unwrap();
    shared.does(Side::TaskFlow, "claim", &job, "bob").unwrap();
    let ended = held.ended();
    assert_ne!(ended.code, 0, "{ended}");
    shared.is(&job, "CLAIMED", Some("bob"));
}
