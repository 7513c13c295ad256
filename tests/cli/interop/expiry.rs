//! Expiring claims, which only Redis shares with TaskFlow.

use std::time::{Duration, Instant};

use serde_json::json;

use super::shared::{SIDES, Shared, Side, pairs};
use crate::support::{SOON, Server, wait_until};

fn expires_in(shared: &mut Shared<Server>, job: &str) -> [f64; 2] {
    let theirs = shared.ask_peer("expires_in", job).as_f64().unwrap();
    let ours = shared.env.show(job)["expires_in"].as_f64();
    [ours.unwrap_or(-1.0), theirs]
}

#[test]
fn claim_expires_for_both_clients() {
    need!(mut shared = Shared::<Server>::new());
    for side in SIDES {
        let job = shared.post(side, "resize", "NORMAL", &json!({}));
        let start = Instant::now();
        match side {
            Side::Jobboard => {
                shared.env.ok(format!("claim {job} --who ada --expiry 3s"));
            }
            Side::TaskFlow => {
                let claim = json!({"do": "claim", "uuid": job, "who": "ada", "expiry": 3});
                shared.peer.request(&claim);
            }
        }
        for left in expires_in(&mut shared, &job) {
            assert!(left > 0.0 && left <= 3.0, "{left}");
        }
        wait_until("the claim lapses", || {
            shared.ask_peer("state", &job) == "UNCLAIMED"
        });
        assert!(start.elapsed() >= Duration::from_millis(2900));
        shared.is(&job, "UNCLAIMED", None);
        for late in SIDES {
            for verb in ["abandon", "consume", "trash"] {
                shared.does(late, verb, &job, "ada").unwrap_err();
            }
            shared.does(late, "claim", &job, "bob").unwrap();
            let refused = shared.does(side, "consume", &job, "ada").unwrap_err();
            assert!(refused.contains("bob"), "{refused}");
            shared.does(late, "abandon", &job, "bob").unwrap();
        }
    }
}

#[test]
fn each_client_extends_claims_of_the_other() {
    need!(mut shared = Shared::<Server>::new());
    for (claimer, extender) in pairs() {
        let job = shared.post(extender, "resize", "NORMAL", &json!({}));
        shared.does(claimer, "claim", &job, "ada").unwrap();
        assert_eq!(expires_in(&mut shared, &job), [-1.0, -1.0]);
        match extender {
            Side::Jobboard => {
                shared.env.ok(format!("extend {job} --who ada --expiry 1h"));
            }
            Side::TaskFlow => {
                let extend = json!({"do": "extend", "uuid": job, "expiry": 3600});
                assert_eq!(shared.peer.request(&extend), true);
            }
        }
        for left in expires_in(&mut shared, &job) {
            assert!(left > 3600.0 - SOON.as_secs_f64() && left <= 3600.0);
        }
        shared.is(&job, "CLAIMED", Some("ada"));
        let release = json!({"do": "extend", "uuid": job, "expiry": 0});
        shared.peer.request(&release);
        shared.is(&job, "UNCLAIMED", None);
    }
}
