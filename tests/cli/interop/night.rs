//! A shared board with many problems: two commands diagnose them, and two repair them.

use std::fs;

use serde_json::{Value, json};

use super::shared::{SIDES, Shared};
use crate::{
    conduct::set_mode,
    support::{Env, Running, Server, wait_until, words},
};

/// The number of sound jobs.
const SOUND: usize = 470;

/// The jobs with one kind of fault, and its verdict.
struct Planted {
    verdict: &'static str,
    jobs: Vec<String>,
}

/// Posts jobs of one name, by both sides in turn.
fn post(shared: &mut Shared<Server>, name: &str, details: &Value, count: usize) -> Vec<String> {
    let sides = SIDES.into_iter().cycle().take(count);
    sides
        .map(|side| shared.post(side, name, "NORMAL", details))
        .collect()
}

fn claim(env: &Env, jobs: &[String], who: &str, words: &[&str]) {
    for job in jobs {
        env.ok([&["claim", job, "--who", who], words].concat());
    }
}

/// Makes each job fail this often.
fn fail(env: &Env, jobs: &[String], times: u32) {
    for job in jobs {
        for _ in 0..times {
            let words = ["--retry-delay", "1ms", "--retry-max", "1ms", "--", "false"];
            env.fails(1, [&["claim", job], &words[..]].concat());
        }
    }
}

fn start_conductor(env: &Env) -> Running {
    let directory = env.file("handlers");
    fs::create_dir(&directory).unwrap();
    set_mode(&directory, 0o755);
    for name in ["backup", "report"] {
        let script = "#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\n";
        fs::write(directory.join(name), script).unwrap();
        set_mode(&directory.join(name), 0o755);
    }
    let words = words("conduct --handlers handlers --name night --jobs 2");
    let conductor = env.jobboard(&words).spawn();
    wait_until("it performs two jobs", || {
        let report = env.json("conductors --json");
        report[0]["running"] == 2
    });
    conductor
}

/// Plants the problems.
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
        shared.env.fail(job, "1h");
    }
    add("backing-off", &postponed);
    let foreign = post(shared, "resize", &none, 4);
    add("no-matching-conductor", &foreign);
    let paused = post(shared, "report", &none, 3);
    shared.env.ok("pause report --reason 'no room'");
    add("paused", &paused);
    let trashed = post(shared, "backup", &none, 2);
    for job in &trashed {
        shared
            .env
            .ok(format!("trash --force --yes {job} --reason 'wrong volume'"));
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

/// Returns the parts of sound jobs that must not change.
fn sound(env: &Env, jobs: &[String]) -> Vec<Value> {
    let listed = env.json("list --json --sort none");
    let keys = words("uuid state owner fence attempts last_modified details");
    let mut found: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| jobs.iter().any(|uuid| job["uuid"] == *uuid))
        .map(|job| keys.iter().map(|key| job[*key].clone()).collect())
        .collect();
    found.sort_by_key(Value::to_string);
    found
}

/// Requires numbers of the status, and returns it. Those in kebab case count the jobs with a problem.
fn figures(env: &Env, wanted: &[(&str, u64)]) -> Value {
    let status = env.json("status --json");
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

/// Requires that each job is explained by its fault.
fn each_is_named(env: &Env, kinds: &[Planted]) {
    for Planted { verdict, jobs } in kinds {
        for job in jobs {
            let run = env.run(format!("explain {job} --json"));
            let report = run.value();
            assert_eq!(report["verdict"], *verdict, "{report}");
        }
    }
}

/// Applies the safe repairs, and decides the others: expiring claims, and the unreadable record.
fn mend(env: &Env, timed: &[String]) {
    let fix = ["doctor", "--fix", "--yes", "--skip", "server"];
    assert_eq!(env.run(fix).code, 7);
    // The owner of an expiring claim may live in another pid namespace.
    figures(env, &[("owner-dead", 4), ("claim-never-expires", 3)]);
    let listed = env.json("list --problem owner-dead --json");
    let mut listed: Vec<_> = (listed.as_array().unwrap().iter())
        .map(|job| job["uuid"].as_str().unwrap().to_owned())
        .collect();
    let mut timed = timed.to_vec();
    listed.sort();
    timed.sort();
    assert_eq!(listed, timed);
    for code in ["owner-dead", "unreadable-record"] {
        env.ok([&fix[..3], &["--only", code]].concat());
    }
}

#[test]
fn many_problems_are_diagnosed_and_repaired_in_two_commands_each() {
    need!(mut shared = Server::start().and_then(Shared::on));
    let lines = format!("{}\n", json!({"name": "backup"})).repeat(SOUND);
    let posted = shared.env.jobboard("post --from -").stdin(lines).run();
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
    assert_eq!(shared.env.run("explain").code, 7);

    mend(&shared.env, &kinds[0].jobs);
    let retry = ["retry", "--name", "backup", "--yes", "--reason", "mended"];
    shared.env.ok(retry);

    figures(
        &shared.env,
        &[
            // The unreadable record is kept in the trash.
            ("unreadable-record", 0),
            ("trashed", 1),
            ("owner-dead", 0),
            ("claim-never-expires", 3),
            ("backing_off", 0),
        ],
    );
    assert_eq!(sound(&shared.env, &healthy), before);
    // The jobs and sidecars of Python are unchanged.
    let theirs = &kinds
        .iter()
        .find(|it| it.verdict == "claim-never-expires")
        .unwrap()
        .jobs;
    for job in theirs {
        shared.is(job, "CLAIMED", Some("a python service"));
    }
    fs::write(shared.env.file("go"), "").unwrap();
    shared.env.ok("resume");
    wait_until("all runnable jobs are done", || {
        let left = shared.env.names();
        left.iter()
            .all(|name| ["flow", "resize"].contains(&name.as_str()))
    });
    assert_eq!(shared.jobs().len(), 7);
    drop(conductor);
}
