//! Manual claims: locks that outlive their creator.

use serde_json::json;

use super::{lock_of, node_of, on_board};
use crate::{
    interop::shared::{Shared, Side, triples},
    support::{ZooKeeper, members, wait_until},
};

fn number(node: &str) -> u32 {
    let digits = node.strip_prefix("job").unwrap();
    assert_eq!(digits.len(), 10, "{node}");
    digits.parse().unwrap()
}

#[test]
fn numbers_and_locks_do_not_depend_on_the_client() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let mut next = 0;
    for (poster, claimer, finisher) in triples() {
        let job = shared.post(poster, "resize", "HIGH", &json!({"é": 1.0}));
        let node = node_of(&mut shared, &job);
        assert_eq!(number(&node), next, "{poster:?}");
        let posting = format!(
            r#"{{"uuid": "{job}", "name": "resize", "priority": "HIGH", "details": {{"\u00e9": 1.0}}}}"#
        );
        let nodes = on_board(&mut shared);
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].1["data"], posting);
        assert_eq!(nodes[0].1["version"], 0);
        for (side, verb) in [(claimer, "abandon"), (finisher, "consume")] {
            shared.does(side, "claim", &job, "wörker ☃").unwrap();
            let lock = lock_of(&mut shared, &node).unwrap();
            assert_eq!(lock["data"], r#"{"owner": "w\u00f6rker \u2603"}"#);
            assert_eq!(lock["version"], 0);
            assert_eq!(lock["is_ephemeral"], side == Side::TaskFlow);
            assert_eq!(shared.ask_peer("state", &job), "CLAIMED");
            assert_eq!(shared.env.state(&job), "CLAIMED");
            shared.does(finisher, verb, &job, "wörker ☃").unwrap();
            assert_eq!(lock_of(&mut shared, &node), None);
        }
        assert!(on_board(&mut shared).is_empty());
        // A post takes a number, and so does each claim.
        next += 3;
    }
}

#[test]
fn manual_claim_is_shown_as_unlimited() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    shared.does(Side::Jobboard, "claim", &job, "ada").unwrap();
    let ours = shared.env.show(&job);
    assert_eq!(members(&ours, "lease expires_in"), "none null");
    assert!(ours["claimed_on"].is_string(), "{ours}");
    shared.does(Side::Jobboard, "abandon", &job, "ada").unwrap();
    shared.does(Side::TaskFlow, "claim", &job, "ada").unwrap();
    let theirs = shared.env.show(&job);
    assert_eq!(members(&theirs, "lease expires_in"), "session null");
    assert!(theirs["claimed_on"].is_string(), "{theirs}");
}

#[test]
fn peer_receives_posted_removed_and_restored_events() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let hears = |shared: &mut Shared<ZooKeeper>, kind: &str, job: &str, times: usize| {
        let wanted = json!([kind, job]);
        wait_until(&format!("{kind} is reported"), || {
            let events = shared.peer.request(&json!({"do": "events"}));
            let events = events.as_array().unwrap().iter();
            events.filter(|event| **event == wanted).count() == times
        });
    };
    let job = shared.post(Side::Jobboard, "resize", "NORMAL", &json!({}));
    hears(&mut shared, "POSTED", &job, 1);
    shared.does(Side::Jobboard, "claim", &job, "ada").unwrap();
    shared.does(Side::Jobboard, "trash", &job, "ada").unwrap();
    hears(&mut shared, "REMOVAL", &job, 1);
    shared.env.ok(format!("restore {job} --yes"));
    hears(&mut shared, "POSTED", &job, 2);
    shared.does(Side::Jobboard, "claim", &job, "ada").unwrap();
    shared.does(Side::Jobboard, "consume", &job, "ada").unwrap();
    hears(&mut shared, "REMOVAL", &job, 2);
}

/// Locks without a valid owner, and the state of their job.
const STRANGE_LOCKS: [(&str, &str); 7] = [
    ("", "CLAIMED"),
    ("ada", "CLAIMED"),
    ("{\"owner\": \"ada", "CLAIMED"),
    ("[\"ada\"]", "CLAIMED"),
    ("{\"owner\": 5}", "CLAIMED"),
    ("{\"owner\": \"\"}", "UNCLAIMED"),
    ("{}", "UNCLAIMED"),
];

#[test]
fn invalid_locks_are_shown_and_released_by_force_only() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let other = shared.post(Side::TaskFlow, "other", "NORMAL", &json!({}));
    for (lock, state) in STRANGE_LOCKS {
        let job = shared.post(Side::Jobboard, "resize", "NORMAL", &json!({}));
        let node = node_of(&mut shared, &job);
        shared
            .server
            .create(&mut shared.peer, &format!("{node}.lock"), lock);
        let before = shared.everything();
        let shown = shared.env.show(&job);
        assert_eq!(
            (&shown["state"], &shown["owner"]),
            (&json!(state), &json!(null)),
            "{lock}"
        );
        assert!(shown["problem"].is_string(), "{lock}: {shown}");
        assert_eq!(shared.env.names().len(), 2);
        assert_eq!(shared.env.state(&other), "UNCLAIMED");
        let owner = shared.env.run(format!("owner {job}"));
        match state {
            "CLAIMED" => {
                owner.fails(4, "abandon --force");
                let asked = shared.env.run(format!("consume {job} --force"));
                asked.fails(8, "by an unreadable owner");
            }
            _ => _ = owner.failed(6),
        }
        let claim = ["claim", &job, "--json"];
        let refused = shared.env.run(claim);
        refused.failed(4);
        assert_eq!(refused.error()["kind"], "already-claimed", "{lock}");
        for verb in ["abandon", "consume", "trash"] {
            shared.does(Side::Jobboard, verb, &job, "ada").unwrap_err();
        }
        assert_eq!(shared.everything(), before, "{lock}");
        shared.env.ok(format!("abandon {job} --force --yes"));
        assert_eq!(lock_of(&mut shared, &node), None);
        shared.is(&job, "UNCLAIMED", None);
        shared.does(Side::TaskFlow, "claim", &job, "ada").unwrap();
        shared.does(Side::TaskFlow, "consume", &job, "ada").unwrap();
    }
}
