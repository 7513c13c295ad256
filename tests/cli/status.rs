//! `jobboard status`.

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{Env, Outcome, Server, assert_contains, members, play, wait_until},
};

on_every_board!(
    every_job_is_counted_and_each_problem_can_be_listed,
    claims_of_a_live_conductor_are_distinguished,
);

on_one_board!(retried_job_is_failing_only_after_its_next_failure);

fn status(env: &Env) -> Value {
    env.json("status --json")
}

/// Posts several jobs with the same name and details.
fn post(env: &Env, count: usize, name: &str, details: &Value) -> Vec<String> {
    let line = format!("{}\n", json!({"name": name, "details": details}));
    let run = env.jobboard(&["post", "--from", "-"]);
    let run = run.stdin(line.repeat(count)).run();
    run.succeeded().lines().map(str::to_owned).collect()
}

fn fail(env: &Env, job: &str, delay: &str) {
    let claim = ["claim", job, "--retry-delay", delay, "--retry-max", delay];
    let run = env.jobboard(&[&claim[..], &["--", "false"]].concat());
    run.run().failed(1);
}

fn retried_job_is_failing_only_after_its_next_failure(stage: &Stage) {
    let (env, job) = (&stage.env, stage.env.post("dump"));
    let is_failing = || status(env)["names"][0]["failed"] == 1;
    fail(env, &job, "1d");
    assert!(is_failing());
    for retry in ["retry", "retry --keep-attempts"] {
        env.ok(format!("{retry} {job}"));
        assert!(!is_failing(), "{retry}");
        env.claim(&job, "ada");
        assert!(!is_failing(), "{retry}");
        env.ok(format!("abandon {job} --force --yes"));
        fail(env, &job, "1d");
        assert!(is_failing(), "{retry}");
    }
}

fn every_job_is_counted_and_each_problem_can_be_listed(stage: &Stage) {
    let env = &stage.env;
    let run = |words: &[&str]| -> Outcome { env.run(words) };
    let grow = post(env, 300, "grow", &json!({"v": 1}));
    let shrink = post(env, 197, "shrink", &json!({}));
    let frail = post(env, 2, "frail", &json!({"max_attempts": 2}));
    post(env, 1, "last", &json!({"max_attempts": 1}));
    for job in &grow[..3] {
        env.claim(job, "ada");
    }
    env.claim(&shrink[0], "bob");
    fail(env, &shrink[1], "1d");
    // One failure in two attempts is a problem, one in five is not.
    fail(env, &frail[0], "1ms");
    for job in &shrink[2..4] {
        env.trash(job);
    }
    let force = ["--force", "--yes"];
    run(&[&["consume", &grow[3], &grow[4]], &force[..]].concat()).succeeded();
    let consume = ["consume", "--failed", &grow[5]];
    run(&[&consume[..], &force].concat()).succeeded();
    run(&[&["trash", &grow[6]], &force[..]].concat()).succeeded();
    run(&["purge", "--yes", &grow[6]]).succeeded();

    let report = status(env);
    let expect = |key: &str, count: u64| assert_eq!(report[key], count, "{key} of {report}");
    expect("unclaimed", 500 - 4 - 2 - 4);
    expect("backing_off", 1);
    expect("claimed", 4);
    expect("trashed", 2);
    expect("conductors", 0);
    for (outcome, count) in [("consumed", 2), ("failed", 1), ("purged", 1)] {
        assert_eq!(report["history"][outcome], count, "{report}");
    }
    let names = ["grow", "shrink", "frail", "last"].map(|name| {
        let named = report["names"].as_array().unwrap().iter();
        let mut named = named.filter(|it| it["name"] == name);
        let named = named.next().unwrap();
        [&named["jobs"], &named["claimed"], &named["failed"]].map(|it| it.as_u64().unwrap())
    });
    assert_eq!(names, [[296, 3, 0], [195, 1, 1], [2, 0, 1], [1, 0, 0]]);
    assert_eq!(report["owners"][0]["owner"], "ada");
    assert_eq!(report["owners"][0]["claims"], 3);
    assert_eq!(report["owners"][0]["conductor"], Value::Null);
    assert_eq!(report["longest_held"]["uuid"], grow[0].as_str());
    assert_eq!(report["oldest_unclaimed"]["owner"], Value::Null);
    problems_can_be_listed(stage, &report);
}

fn problems_can_be_listed(stage: &Stage, report: &Value) {
    let env = &stage.env;
    let problems = &report["jobs_with_problem"];
    assert_eq!(
        problems,
        &json!({"claim-never-expires": 4, "no-conductor": 489})
    );
    for (code, count) in problems.as_object().unwrap() {
        let listed = env.run(["list", "--problem", code]);
        let listed = listed.succeeded().lines().count() as u64;
        assert_eq!(count, listed, "{code}");
    }
    // The text mentions what the history lacks.
    let shown = env.jobboard(&["status"]).at_terminal(100).run();
    let audit = shown.succeeded().contains("Python services");
    assert_eq!(audit, stage.is_network(), "{shown}");
}

fn claims_of_a_live_conductor_are_distinguished(stage: &Stage) {
    let job = stage.post("long", "touch log; sleep 600");
    let conductor = stage.start(&["--name", "night"]);
    wait_until("it is claimed", || stage.env.state(&job) == "CLAIMED");
    let report = status(&stage.env);
    assert_eq!(report["conductors"], 1);
    assert_eq!(report["owners"][0]["conductor"], "night");
    assert_eq!(report["owners"][0]["claim_never_expires"], 0);
    assert_eq!(report["jobs_with_problem"], json!({}));
    drop(conductor);
}

#[test]
fn suggested_commands_use_the_same_board() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let config = env.file("it's.toml");
    let board = env.board().display().to_string();
    std::fs::write(&config, format!("[board.b]\nurl = \"sqlite:{board}\"\n")).unwrap();
    let config = config.to_str().unwrap();
    let options = ["--config", config, "--board", "b"];
    let words = [&["status", "-o", "table"], &options[..]].concat();
    let run = env.run(words);
    let mut lines = run.succeeded().lines();
    let problem =
        lines.find_map(|line| line.split_once("claim-never-expires   1 job       jobboard "));
    let (_, command) = problem.unwrap();
    let shell = format!("\"$1\" {command}");
    let program = std::path::Path::new("sh");
    let words = ["-c", &shell, "sh", env!("CARGO_BIN_EXE_jobboard")];
    env.program(program, &words).run().shows("claimed by ada");
}

#[test]
fn status_and_report_work_without_a_readable_history() {
    need!((env, server) = Server::with_env(&[]));
    env.post("resize");
    server.run(&["SET", "taskflow:past", "x"]);
    let run = env.run("status --json");
    let report = run.json();
    assert_eq!(members(&report, "unclaimed history"), "1 null");
    assert!(report["history_problem"].is_string(), "{report}");
    run.warns("warning: ca");
    let report = env.json("report --json");
    assert_eq!(members(&report, "unclaimed history"), "1 null");
    assert_contains(&report["unseen"].to_string(), "the history");
}

#[test]
fn unreachable_server_is_an_error() {
    need!(mut stage = Stage::redis());
    stage.env.post("resize");
    stage.stop_server();
    stage.env.run("status").fails(5, "cannot read the board");
}

#[test]
fn missing_board_is_empty_with_a_note() {
    play(
        r#"
        # a missing board is empty, with a note
        0 status -o table == sqlite:ROOT/state/jobboard/board.db\nunclaimed     0\nclaimed       0\nin the trash  0\nlast 1d       no job in the history\nconductors    none => no job was ever posted on sqlite:ROOT/state/jobboard/board.db
        none
        0 post resize
        0 consume @1 --force --yes
        0 status -o table -> 1 consumed => (nothing)
        0 post resize
        0 trash @2 --force --yes
        0 status -o table -> in the trash  1 (1 new in the last day)

        # unreadable jobs are counted, and foreign text is escaped
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense' WHERE sequence = 1; UPDATE job SET name = char(27) || '[2Jred' WHERE sequence = 2; UPDATE job SET owner = x'1bff' WHERE sequence = 3
        0 status --json -> "unreadable-record":1
        0 status -o table -> \u{1b}[2Jred -> unreadable-record !> \e
        0 status -o tsv -> \u{1b}[2Jred -> unreadable-record !> \e
        "#,
    );
}
