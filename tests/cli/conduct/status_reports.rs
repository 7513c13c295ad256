//! The status of a conductor in the registry, and in its log on request.

use std::{fs, time::Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Stage, WAITS, on_every_board, on_one_board, stage::set_mode};
use crate::support::wait_until;

on_every_board!(dead_conductor_is_listed_as_gone);

on_one_board!(
    registry_shows_running_jobs_and_results,
    registry_shows_skipped_jobs_with_reasons,
    signal_makes_the_conductor_print_its_state,
);

fn conductor(stage: &Stage) -> Value {
    let listed = stage.env.json("conductors --json");
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    listed[0].clone()
}

fn registry_shows_running_jobs_and_results(stage: &Stage) {
    let running = stage.start(&["--name", "w1", "-j2", "--max-attempts", "1"]);
    let report = conductor(stage);
    let at_first = ["version", "slots", "running", "silent", "course", "done"];
    let at_first: Vec<_> = at_first.map(|key| report[key].clone()).into();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        json!(at_first),
        json!([version, 2, 0, false, "working", 0]),
        "{report}"
    );
    let job = stage.post("waits", WAITS);
    wait_until("it is reported", || conductor(stage)["running"] == 1);
    let report = conductor(stage);
    let run = &report["runs"][0];
    assert_eq!(
        (&run["uuid"], &run["name"], &run["attempt"]),
        (&json!(job), &json!("waits"), &json!(1)),
        "{report}"
    );
    assert!(report["last_seen"].is_string(), "{report}");
    let table = stage.env.run("conductors -o table");
    let row = table.succeeded().lines().nth(1).unwrap().to_owned();
    assert!(row.contains(" waits "), "{row}");
    let page = stage.env.run("conductors w -o table");
    page.prints("1 of 2 slots");
    fs::write(stage.env.file("go"), "").unwrap();
    stage.post("fails", "false");
    wait_until("both are counted", || {
        let report = conductor(stage);
        report["done"] == 1 && report["failed"] == 1 && report["running"] == 0
    });
    running.stops();
    stage.env.run("conductors w1").fails(3, "w1");
}

fn registry_shows_skipped_jobs_with_reasons(stage: &Stage) {
    let flow = stage.env.run("post flow flow_uuid=x").posted();
    let running = stage.start(&["--filter", "name!=z", "--name", "w1"]);
    wait_until("it is reported", || {
        conductor(stage)["skipped"] != json!([])
    });
    let report = conductor(stage);
    assert_eq!(
        report["skipped"],
        json!([{"reason": "the job has no command", "jobs": 1, "example": "flow", "job": flow}])
    );
    assert_eq!(report["accepts"]["filters"], json!(["name!=z"]));
    assert_eq!(report["accepts"]["programs"], Value::Null);
    running.stops();
}

fn dead_conductor_is_listed_as_gone(stage: &Stage) {
    stage.start(&["--name", "w1"]).kill();
    let report = conductor(stage);
    assert_eq!(report["silent"], true, "{report}");
    stage.env.run("conductors -o table").prints("gone ");
}

fn signal_makes_the_conductor_print_its_state(stage: &Stage) {
    stage.env.run("post flow flow_uuid=x").posted();
    stage.post("waits", WAITS);
    let running = stage.start(&[]);
    stage.logged(1);
    stage.says(&running, "skipped");
    for times in 1..=2 {
        running.signal(Signal::USR2);
        wait_until("it is reported", || {
            running.stderr().matches("=state running=1 ").count() == times
        });
    }
    stage.says(&running, "=running uuid=");
    wait_until("the reasons are reported again", || {
        running
            .stderr()
            .matches("skipped jobs=1 example=flow")
            .count()
            == 3
    });
    fs::write(stage.env.file("go"), "").unwrap();
    running.signal(Signal::TERM);
    running.ended().exits(0, "event=job_consumed uuid=");
}

#[test]
fn skip_reasons_do_not_hide_each_other() {
    need!(stage = Stage::redis());
    let directory = stage.env.file("handlers");
    fs::create_dir(&directory).unwrap();
    for (name, mode) in [("fine", 0o755), ("resize", 0o775)] {
        fs::write(directory.join(name), "#!/bin/sh\n").unwrap();
        set_mode(&directory.join(name), mode);
    }
    set_mode(&directory, 0o755);
    for name in ["other", "resize"] {
        stage.env.post(name);
    }
    let conduct = ["conduct", "--handlers", "handlers", "--name", "w1"];
    let running = stage.env.jobboard(&conduct).spawn();
    stage.says(&running, "resize is writable by other users");
    stage.says(&running, "example=other");
    stage.env.post("another");
    stage.says(&running, "example=another");
    let handlers = &conductor(&stage)["accepts"]["handlers"];
    assert_eq!(handlers["fine"], Value::Null);
    let refused = handlers["resize"].as_str().unwrap();
    assert!(refused.contains("is writable by other users"), "{handlers}");
    running.signal(Signal::TERM);
    let ended = running.ended();
    let summary = ended.stderr.lines().last().unwrap();
    for reason in [
        "no handler matches its name",
        "resize is writable by other users",
    ] {
        assert!(summary.contains(reason), "{ended}");
    }
}

#[test]
fn registry_is_updated_at_most_once_a_second_and_only_on_change() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    for (name, value) in [
        ("slowlog-log-slower-than", "0"),
        ("slowlog-max-len", "100000"),
    ] {
        server.run(&["CONFIG", "SET", name, value]);
    }
    // A line per word: the name of the command, the script, the number of keys, and the keys.
    let asked = || {
        let log = server.run(&["SLOWLOG", "GET", "100000"]);
        let lines: Vec<_> = log.lines().collect();
        let is_update =
            |words: &&[&str]| words[0].starts_with("EVAL") && words[5].ends_with("told.w1");
        lines.windows(6).filter(is_update).count() as u64
    };
    stage.post_many(300, "true");
    let (before, start) = (asked(), Instant::now());
    let running = stage.start(&["--name", "w1", "-j4"]);
    wait_until("all is done", || conductor(&stage)["done"] == 300);
    // At the start, the script may be sent twice: by its hash, and in full.
    let most = start.elapsed().as_secs() + 3;
    let updates = asked() - before;
    assert!((1..=most).contains(&updates), "{updates} in {most}s");
    let (before, start) = (asked(), Instant::now());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let refreshes = start.elapsed().as_secs() / 10 + 1;
    assert!(asked() - before <= refreshes, "{}", asked() - before);
    running.stops();
}
