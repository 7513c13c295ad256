//! One live board, shared with Python TaskFlow.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    env::{Env, SOON, wait_until},
    servers::{Peer, Server},
};

/// Who does something.
#[derive(Debug, Clone, Copy)]
enum Side {
    Jobboard,
    TaskFlow,
}

const SIDES: [Side; 2] = [Side::Jobboard, Side::TaskFlow];

/// A board, and both who use it.
struct Shared {
    env: Env,
    peer: Peer,
    server: Server,
}

impl Shared {
    fn new() -> Option<Self> {
        let server = Server::start()?;
        let mut peer = Peer::start(&server, "taskflow")?;
        // Python takes its time to start, and some claims do not last long.
        peer.told(&json!({"do": "list"}));
        let env = Env::new();
        server.serves(&env, "");
        Some(Self { env, peer, server })
    }

    fn post(&mut self, side: Side, name: &str, priority: &str, details: &Value) -> String {
        match side {
            Side::Jobboard => {
                let details = details.to_string();
                let post = ["post", name, "--priority", priority, "--details", &details];
                self.env.jobboard(&post).run().posted()
            }
            Side::TaskFlow => {
                let post =
                    json!({"do": "post", "name": name, "priority": priority, "details": details});
                self.peer.told(&post).as_str().unwrap().to_owned()
            }
        }
    }

    /// Has a side do something to a job under a name; `Err` is what it complains of.
    fn does(&mut self, side: Side, verb: &str, job: &str, who: &str) -> Result<(), String> {
        match side {
            Side::Jobboard => {
                let run = self.env.jobboard(&[verb, job, "--who", who]).run();
                match run.code {
                    0 => Ok(()),
                    _ => Err(run.failed(4).to_owned()),
                }
            }
            Side::TaskFlow => {
                let request = json!({"do": verb, "uuid": job, "who": who});
                self.peer.ask(&request).map(drop)
            }
        }
    }

    fn told(&mut self, what: &str, job: &str) -> Value {
        self.peer.told(&json!({"do": what, "uuid": job}))
    }

    /// Returns the jobs on the board in TaskFlow's order, of which both have to say the same.
    fn jobs(&mut self) -> Vec<Value> {
        let theirs = self.peer.told(&json!({"do": "list"}));
        let list = ["list", "--sort", "taskflow", "--json"];
        let mut ours = self.env.jobboard(&list).run().json();
        for job in ours.as_array_mut().unwrap() {
            let fields = theirs[0].as_object().into_iter().flatten();
            *job = fields
                .map(|(name, _)| (name.clone(), job[name].clone()))
                .collect();
        }
        assert_eq!(ours, theirs);
        theirs.as_array().unwrap().clone()
    }

    /// Requires that both say of a job that this is its state and its owner.
    fn is(&mut self, job: &str, state: &str, owner: Option<&str>) {
        assert_eq!(self.told("state", job), state);
        if state == "COMPLETE" {
            assert!(self.jobs().iter().all(|listed| listed["uuid"] != job));
            self.env.jobboard(&["owner", job]).run().failed(3);
            return;
        }
        assert_eq!(self.told("owner", job), json!(owner));
        let shown = self.env.show(job);
        assert_eq!(shown["state"], state);
        assert_eq!(shown["owner"], json!(owner));
        let run = self.env.jobboard(&["owner", job]).run();
        match owner {
            Some(owner) => assert_eq!(run.succeeded().trim_end(), owner),
            None => assert!(run.failed(6).contains("claimed"), "{run}"),
        }
        let listed = self.jobs();
        let listed = listed.iter().find(|listed| listed["uuid"] == job).unwrap();
        assert_eq!(listed["owner"], json!(owner));
    }

    fn expires_in(&mut self, job: &str) -> [f64; 2] {
        let theirs = self.told("expires_in", job).as_f64().unwrap();
        let ours = self.env.show(job)["expires_in"].as_f64();
        [ours.unwrap_or(-1.0), theirs]
    }
}

#[test]
fn both_list_the_same_jobs() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let details = json!({
        "text": "héllo ☃", "none": null, "yes": true, "deep": [{"a": [1, -2, 3.5]}],
        "large": u64::MAX, "small": i64::MIN, "long": "x".repeat(70_000),
    });
    let priorities = ["VERY_LOW", "NORMAL", "HIGH", "LOW", "VERY_HIGH"];
    for (at, priority) in priorities.into_iter().cycle().take(10).enumerate() {
        let side = SIDES[(at / 2) % 2];
        shared.post(side, &format!("job-{at}"), priority, &details);
        assert_eq!(shared.jobs().len(), at + 1);
    }
    let jobs = shared.jobs();
    assert!(jobs.iter().all(|job| job["details"] == details));
    let names = |jobs: &[Value]| -> Vec<String> {
        let names = jobs.iter().map(|job| job["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let newest_first = [9, 4, 7, 2, 6, 1, 8, 3, 5, 0].map(|number| format!("job-{number}"));
    assert_eq!(names(&jobs), newest_first);
    let oldest_first = [4, 9, 2, 7, 1, 6, 3, 8, 0, 5].map(|number| format!("job-{number}"));
    assert_eq!(shared.env.names(), oldest_first);
}

#[test]
fn each_finishes_what_the_other_posted_or_claimed() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    for (poster, claimer, finisher) in SIDES
        .into_iter()
        .flat_map(|poster| SIDES.map(|claimer| (poster, claimer)))
        .flat_map(|(poster, claimer)| SIDES.map(|finisher| (poster, claimer, finisher)))
    {
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
    let trash = shared
        .env
        .jobboard(&["list", "--trash", "--count"])
        .run()
        .succeeded()
        .to_owned();
    assert_eq!(trash, "8\n");
}

#[test]
fn neither_gets_what_the_other_has() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    for (holder, other) in SIDES
        .into_iter()
        .flat_map(|holder| SIDES.map(|other| (holder, other)))
    {
        let job = shared.post(other, "resize", "HIGH", &json!({}));
        for verb in ["abandon", "consume", "trash"] {
            shared.does(other, verb, &job, "bob").unwrap_err();
        }
        shared.does(holder, "claim", &job, "ada@host").unwrap();
        let before = shared.server.everything();
        for verb in ["claim", "abandon", "consume", "trash"] {
            let refused = shared.does(other, verb, &job, "bob").unwrap_err();
            assert!(refused.contains("ada@host"), "{other:?} {verb}: {refused}");
        }
        assert_eq!(shared.server.everything(), before);
        shared.is(&job, "CLAIMED", Some("ada@host"));
        shared.does(other, "consume", &job, "ada@host").unwrap();
    }
}

#[test]
fn a_claim_that_lapses_lapses_for_both() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    for side in SIDES {
        let job = shared.post(side, "resize", "NORMAL", &json!({}));
        let start = Instant::now();
        match side {
            Side::Jobboard => {
                let claim = ["claim", &job, "--who", "ada", "--expiry", "3s"];
                shared.env.jobboard(&claim).run().succeeded();
            }
            Side::TaskFlow => {
                let claim = json!({"do": "claim", "uuid": job, "who": "ada", "expiry": 3});
                shared.peer.told(&claim);
            }
        }
        for left in shared.expires_in(&job) {
            assert!(left > 0.0 && left <= 3.0, "{left}");
        }
        wait_until("the claim lapses", || {
            shared.told("state", &job) == "UNCLAIMED"
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
fn each_extends_what_the_other_claimed() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    for (claimer, extender) in SIDES
        .into_iter()
        .flat_map(|claimer| SIDES.map(|extender| (claimer, extender)))
    {
        let job = shared.post(extender, "resize", "NORMAL", &json!({}));
        shared.does(claimer, "claim", &job, "ada").unwrap();
        assert_eq!(shared.expires_in(&job), [-1.0, -1.0]);
        match extender {
            Side::Jobboard => {
                let extend = ["extend", &job, "--who", "ada", "--expiry", "1h"];
                shared.env.jobboard(&extend).run().succeeded();
            }
            Side::TaskFlow => {
                let extend = json!({"do": "extend", "uuid": job, "expiry": 3600});
                assert_eq!(shared.peer.told(&extend), true);
            }
        }
        for left in shared.expires_in(&job) {
            assert!(left > 3600.0 - SOON.as_secs_f64() && left <= 3600.0);
        }
        shared.is(&job, "CLAIMED", Some("ada"));
        let release = json!({"do": "extend", "uuid": job, "expiry": 0});
        shared.peer.told(&release);
        shared.is(&job, "UNCLAIMED", None);
    }
}

#[test]
fn what_either_trashed_is_restored_and_done_by_either() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    for (trasher, finisher) in SIDES
        .into_iter()
        .flat_map(|trasher| SIDES.map(|finisher| (trasher, finisher)))
    {
        let job = shared.post(trasher, "resize", "LOW", &json!({"size": [1, 2]}));
        let before = shared.server.run(&["HGET", "taskflow:listings", &job]);
        shared.does(finisher, "claim", &job, "ada").unwrap();
        shared.does(trasher, "trash", &job, "ada").unwrap();
        let trashed = shared.server.run(&["HGET", "taskflow:trash", &job]);
        assert_eq!(trashed, before);
        assert_eq!(shared.env.state(&job), "TRASHED");
        let restore = shared.env.jobboard(&["restore", &job, "--yes"]).run();
        restore.succeeded();
        let restored = shared.server.run(&["HGET", "taskflow:listings", &job]);
        assert_eq!(restored, before);
        shared.is(&job, "UNCLAIMED", None);
        assert_eq!(shared.told("is_modified", &job), true);
        shared.does(finisher, "claim", &job, "bob").unwrap();
        shared.does(finisher, "consume", &job, "bob").unwrap();
        shared.is(&job, "COMPLETE", None);
    }
}

#[test]
fn a_claim_that_is_held_is_respected_by_the_other_until_it_ends() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let hold = ["claim", &job, "--hold", "--who", "ada", "--lease", "1m"];
    let held = shared.env.jobboard(&hold).spawn();
    wait_until("the job is claimed", || {
        shared.told("state", &job) == "CLAIMED"
    });
    let owner = shared.told("owner", &job).as_str().unwrap().to_owned();
    assert!(owner.starts_with("ada:"), "{owner}");
    shared.is(&job, "CLAIMED", Some(&owner));
    for left in shared.expires_in(&job) {
        assert!(left > 0.0 && left <= 60.0, "{left}");
    }
    for verb in ["claim", "abandon", "consume", "trash"] {
        let refused = shared.does(Side::TaskFlow, verb, &job, "ada").unwrap_err();
        assert!(refused.contains(&owner), "{verb}: {refused}");
    }
    held.signal(rustix::process::Signal::INT);
    held.ended().succeeded();
    shared.is(&job, "UNCLAIMED", None);
}

#[test]
fn a_held_claim_that_the_other_took_away_is_let_go_of() {
    let Some(mut shared) = Shared::new() else {
        return;
    };
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let hold = ["claim", &job, "--hold", "--who", "ada", "--lease", "1s"];
    let held = shared.env.jobboard(&hold).spawn();
    wait_until("the job is claimed", || {
        shared.told("state", &job) == "CLAIMED"
    });
    let release = json!({"do": "extend", "uuid": job, "expiry": 0});
    shared.peer.told(&release);
    shared.does(Side::TaskFlow, "claim", &job, "bob").unwrap();
    let ended = held.ended();
    assert_ne!(ended.code, 0, "{ended}");
    shared.is(&job, "CLAIMED", Some("bob"));
    assert_eq!(shared.expires_in(&job), [-1.0, -1.0]);
}
