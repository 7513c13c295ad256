//! A night on a board that Python shares: what is wrong is found in two commands, and mended in two.

use std::fs;

use serde_json::{Value, json};

use super::shared::{SIDES, Shared};
use crate::{
    conduct::set_mode,
    support::{
        env::{Env, Outcome, Running, wait_until},
        servers::Server,
    },
};

/// How many sound jobs there are beside those that something is wrong with.
const SOUND: usize = 470;

/// The jobs of one kind of fault, and the verdict that names it.
struct Planted {
    verdict: &'static str,
    jobs: Vec<String>,
}

fn run(env: &Env, words: &[&str]) -> Outcome {
    env.jobboard(words).run()
}

/// Posts jobs of one name, by both sides in turn.
fn post(shared: &mut Shared<Server>, name: &str, details: &Value, count: usize) -> Vec<String> {
    let sides = SIDES.into_iter().cycle().take(count);
    sides
        .map(|side| shared.post(side, name, "NORMAL", details))
        .collect()
}

/// Has each of some jobs claimed under a name, for as long as is said.
fn claim(env: &Env, jobs: &[String], who: &str, words: &[&str]) {
    for job in jobs {
        run(env, &[&["claim", job, "--who", who], words].concat()).succeeded();
    }
}

/// Has each of some jobs fail so often.
fn fail(env: &Env, jobs: &[String], times: u32) {
    for job in jobs {
        for _ in 0..times {
            let words = ["--retry-delay", "1ms", "--retry-max", "1ms", "--", "false"];
            run(env, &[&["claim", job], &words[..]].concat()).failed(1);
        }
    }
}

fn start_conductor(env: &Env) -> Running {
    let folder = env.file("handlers");
    fs::create_dir(&folder).unwrap();
    set_mode(&folder, 0o755);
    for name in ["backup", "report"] {
        let script = "#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\n";
        fs::write(folder.join(name), script).unwrap();
        set_mode(&folder.join(name), 0o755);
    }
    let words = [
        "conduct",
        "--handlers",
        "handlers",
        "--name",
        "night",
        "--jobs",
        "2",
    ];
    let conductor = env.jobboard(&words).spawn();
    wait_until("it performs two jobs", || {
        let told = run(env, &["conductors", "--json"]).json();
        told[0]["running"] == 2
    });
    conductor
}

/// Plants what is found at night.
fn plant(shared: &mut Shared<Server>) -> Vec<Planted> {
    let none = json!({});
    let dead = format!("ada:{}:999999999:c0ffee01", host());
    let mut kinds = Vec::new();
    let mut add = |verdict, jobs: &[String]| {
        let jobs = jobs.to_vec();
        kinds.push(Planted { verdict, jobs });
    };
    let timed = post(shared, "backup", &none, 4);
    claim(&shared.env, &timed, &dead, &["--expiry", "1h"]);
    add("owner-dead", &timed);
    let forever = post(shared, "backup", &none, 4);
    claim(&shared.env, &forever, &dead, &[]);
    add("owner-dead", &forever);
    let theirs = post(shared, "flow", &none, 3);
    for job in &theirs {
        let claim = json!({"do": "claim", "uuid": job, "who": "a python service"});
        shared.peer.request(&claim);
    }
    add("claim-never-expires", &theirs);
    let poison = post(shared, "backup", &none, 3);
    fail(&shared.env, &poison, 4);
    let spent = post(shared, "backup", &none, 3);
    fail(&shared.env, &spent, 5);
    add("failed", &spent);
    let postponed = post(shared, "backup", &none, 3);
    for job in &postponed {
        let words = [
            "claim",
            job,
            "--retry-delay",
            "1h",
            "--retry-max",
            "1h",
            "--",
            "false",
        ];
        run(&shared.env, &words).failed(1);
    }
    add("backing-off", &postponed);
    let foreign = post(shared, "resize", &none, 4);
    add("no-matching-conductor", &foreign);
    let paused = post(shared, "report", &none, 3);
    run(&shared.env, &["pause", "report", "--reason", "no room"]).succeeded();
    add("paused", &paused);
    let trashed = post(shared, "backup", &none, 2);
    for job in &trashed {
        run(
            &shared.env,
            &["trash", "--force", "--yes", job, "--reason", "wrong volume"],
        )
        .succeeded();
    }
    add("trashed", &trashed);
    add("waiting", &poison);
    kinds
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Returns what there is of each sound job, by what nobody may touch.
fn sound(env: &Env, jobs: &[String]) -> Vec<Value> {
    let listed = run(env, &["list", "--json", "--sort", "none"]).json();
    let keys = [
        "uuid",
        "state",
        "owner",
        "fence",
        "attempts",
        "last_modified",
        "details",
    ];
    let mut found: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| jobs.iter().any(|uuid| job["uuid"] == *uuid))
        .map(|job| keys.map(|key| job[key].clone()).to_vec().into())
        .collect();
    found.sort_by_key(Value::to_string);
    found
}

/// Requires figures of the status, and returns all of it. Those in kebab case count the jobs with a problem.
fn figures(env: &Env, wanted: &[(&str, u64)]) -> Value {
    let status = run(env, &["status", "--json"]).json();
    for (key, count) in wanted {
        let found = match key.contains('-') {
            true => status["jobs_with_problem"][key]
                .as_u64()
                .unwrap_or_default(),
            false => status[key].as_u64().unwrap(),
        };
        assert_eq!(found, *count, "{key} of {status}");
    }
    status
}

/// Requires of each job that its fault is told by its name.
fn each_is_named(env: &Env, kinds: &[Planted]) {
    for Planted { verdict, jobs } in kinds {
        for job in jobs {
            let told = run(env, &["explain", job, "--json"]);
            let told: Value = serde_json::from_str(&told.stdout).unwrap();
            assert_eq!(told["verdict"], *verdict, "{told}");
        }
    }
}

/// Has mended what is sure, and decides the rest: claims that expire, and the record that nobody can read.
fn mend(env: &Env, timed: &[String]) {
    let fix = ["doctor", "--fix", "--yes", "--skip", "server"];
    assert_eq!(run(env, &fix).code, 7);
    // An owner of a claim that expires may live where its pid is not ours to see.
    figures(env, &[("owner-dead", 4), ("claim-never-expires", 3)]);
    let listed = run(env, &["list", "--problem", "owner-dead", "--json"]).json();
    let mut listed: Vec<_> = (listed.as_array().unwrap().iter())
        .map(|job| job["uuid"].as_str().unwrap().to_owned())
        .collect();
    let mut timed = timed.to_vec();
    listed.sort();
    timed.sort();
    assert_eq!(listed, timed);
    for code in ["owner-dead", "unreadable-record"] {
        run(env, &[&fix[..3], &["--only", code]].concat()).succeeded();
    }
}

#[test]
fn many_problems_are_diagnosed_and_repaired_in_two_commands_each() {
    let Some(mut shared) = Server::start().and_then(Shared::on) else {
        return;
    };
    let lines = format!("{}\n", json!({"name": "backup"})).repeat(SOUND);
    let posted = shared
        .env
        .jobboard(&["post", "--from", "-"])
        .stdin(lines)
        .run();
    let healthy: Vec<_> = posted.succeeded().lines().map(str::to_owned).collect();
    let conductor = start_conductor(&shared.env);
    let kinds = plant(&mut shared);
    // A peer that read the board would delete it.
    let listings = shared.server.run(&["--scan", "--pattern", "*listings"]);
    shared.server.run(&["HSET", &listings, "junk", "\u{1}"]);
    let before = sound(&shared.env, &healthy);
    assert_eq!(before.len(), SOUND);

    let status = figures(
        &shared.env,
        &[
            ("unreadable-record", 1),
            ("trashed", 5),
            ("owner-dead", 8),
            ("claim-never-expires", 3),
            ("backing_off", 3),
            ("conductors", 1),
            ("silent", 0),
        ],
    );
    assert_eq!(status["pauses"][0]["names"], "report");
    each_is_named(&shared.env, &kinds);
    assert_eq!(run(&shared.env, &["explain"]).code, 7);

    mend(&shared.env, &kinds[0].jobs);
    let retry = ["retry", "--name", "backup", "--yes", "--reason", "mended"];
    run(&shared.env, &retry).succeeded();

    figures(
        &shared.env,
        &[
            // The record that nobody can read is kept, where it harms nobody.
            ("unreadable-record", 0),
            ("trashed", 1),
            ("owner-dead", 0),
            ("claim-never-expires", 3),
            ("backing_off", 0),
        ],
    );
    assert_eq!(sound(&shared.env, &healthy), before);
    // What Python has is Python's still, and what it may read it reads.
    let theirs = &kinds
        .iter()
        .find(|it| it.verdict == "claim-never-expires")
        .unwrap()
        .jobs;
    for job in theirs {
        shared.is(job, "CLAIMED", Some("a python service"));
    }
    fs::write(shared.env.file("go"), "").unwrap();
    run(&shared.env, &["resume"]).succeeded();
    wait_until("all that can be done is done", || {
        let left = shared.env.names();
        left.iter()
            .all(|name| ["flow", "resize"].contains(&name.as_str()))
    });
    assert_eq!(shared.jobs().len(), 7);
    drop(conductor);
}
