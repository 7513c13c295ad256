//! `jobboard report`.

mod browser;

use std::{fs, os::unix::fs::PermissionsExt};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::{
    conduct::{Stage, on_every_board},
    support::{Env, Outcome, assert_contains, members, play},
};

on_every_board!(numbers_equal_those_of_other_commands);

/// Posts jobs of each kind.
fn mixed(stage: &Stage) {
    let env = &stage.env;
    let run = |words: &[&str]| -> Outcome { env.run(words) };
    let jobs = env.post_many(40);
    run(&["post", "frail", "max_attempts:=1", "--priority", "HIGH"]).succeeded();
    for job in &jobs[..3] {
        env.claim(job, "ada");
    }
    env.claim(&jobs[3], "bob");
    let retry = ["--retry-delay", "1d", "--retry-max", "1d"];
    for job in &jobs[5..7] {
        let command = ["--", "sh", "-c", "exit 3"];
        let claim = [&["claim", job], &retry[..], &command].concat();
        assert_eq!(run(&claim).code, 3);
    }
    env.trash(&jobs[7]);
    let force = ["--force", "--yes"];
    run(&[&["consume", &jobs[8], &jobs[9]], &force[..]].concat()).succeeded();
    run(&[&["consume", "--failed", &jobs[10]], &force[..]].concat()).succeeded();
}

fn report(env: &Env) -> Value {
    env.json("report --json")
}

fn numbers_equal_those_of_other_commands(stage: &Stage) {
    mixed(stage);
    let env = &stage.env;
    let json = |words: &[&str]| env.json(words);
    let (report, status) = (report(env), json(&["status", "--json"]));
    let keys = "board server unclaimed backing_off paused claimed jobs_with_problem trashed \
                conductors silent oldest_unclaimed longest_held names owners pauses";
    for key in keys.split(' ') {
        assert_eq!(report[key], status[key], "{key}");
    }
    for key in ["consumed", "failed", "purged", "moved"] {
        assert_eq!(report["history"][key], status["history"][key], "{key}");
    }
    let counted = |words: &[&str]| json(&[&["list", "--count", "--json"], words].concat());
    assert_eq!(report["unclaimed"], counted(&["--state", "UNCLAIMED"]));
    assert_eq!(report["claimed"], counted(&["--state", "CLAIMED"]));
    assert_eq!(report["trashed"], counted(&["--trash"]));
    let check = env.run("check --json");
    let metrics = check.value();
    let metrics = metrics["metrics"].as_array().unwrap();
    for (metric, key) in [
        ("unclaimed", "unclaimed"),
        ("claimed", "claimed"),
        ("backing_off", "backing_off"),
        ("trashed", "trashed"),
        ("conductors", "conductors"),
    ] {
        let mut found = metrics.iter().filter(|it| it["name"] == metric);
        let value = found.next().unwrap()["value"].as_f64();
        assert_eq!(value, report[key].as_f64(), "{metric}");
    }
    let frame = env.run("dash --once");
    let lines = frame.succeeded().replace('\n', " ");
    let of = |key: &str, what: &str| format!("{} {what}", report[key]);
    for count in [
        of("unclaimed", "unclaimed"),
        of("backing_off", "backing off"),
        of("claimed", "claimed"),
        of("trashed", "trashed"),
        of("conductors", "conductors"),
    ] {
        assert!(lines.contains(&format!(" {count} ")), "{count}: {frame}");
    }
    // Without malformed jobs the word is absent.
    assert!(!lines.contains("malformed"), "{frame}");
    sums_are_right(&report);
    let text = env.run("report -o table");
    let text = text.succeeded();
    for fact in ["unclaimed", "exit 3", "finished"] {
        assert!(text.contains(fact), "{fact}: {text}");
    }
}

/// Requires that different sums of the same jobs are equal.
fn sums_are_right(report: &Value) {
    let sum = |list: &str, key: &str| -> u64 {
        let each = report[list].as_array().unwrap().iter();
        each.map(|it| it[key].as_u64().unwrap()).sum()
    };
    assert_eq!(report["history"]["consumed"], sum("intervals", "finished"));
    // The chart begins in the minute of the first end.
    assert!(sum("intervals", "posted") <= 41);
    // Including the trashed job, unless it was earlier.
    assert!((1..=2).contains(&sum("intervals", "failed")));
    let failures = &report["failures"][0];
    assert_eq!(failures["signature"], "exit 3");
    assert_eq!(members(failures, "failures jobs"), "2 2");
    assert_eq!(failures["names"].as_array().unwrap().len(), 2);
}

#[test]
fn report_file_is_private_and_complete() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("report board.html -o table");
    run.prints("wrote the report to");
    let page = fs::read_to_string(env.file("board.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\"><head><meta http-equiv="));
    assert!(page.ends_with("</html>\n"));
    let mode = fs::metadata(env.file("board.html")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(env.file("")).unwrap().count(), 1);
    // The old report stays until the new one is complete.
    let run = env.run("--board redis://127.0.0.1:1 report board.html");
    run.failed(5);
    assert_eq!(fs::read_to_string(env.file("board.html")).unwrap(), page);
    let run = env.run("report nowhere/board.html");
    run.fails(1, "nowhere/board.html");
}

#[test]
fn claims_and_conductors_are_reported_as_of_the_chosen_time() {
    let env = Env::new();
    let job = env.post("resize");
    env.ok(format!("claim {job} --who ada --expiry 1h"));
    let left = |at: DateTime<Utc>| {
        let at = at.to_rfc3339();
        let report = env.run(format!("report --json --at {at}")).json();
        report["owners"][0]["expires_in"].as_f64().unwrap()
    };
    let now = Utc::now();
    for (later, least, most) in [
        (0, 3500.0, 3600.1),
        (1800, 1700.0, 1800.1),
        (7200, 0.0, 0.0),
    ] {
        let left = left(now + TimeDelta::seconds(later));
        assert!((least..=most).contains(&left), "{later}: {left}");
    }
}

#[test]
fn unreadable_history_entries_are_reported() {
    need!(stage = Stage::redis());
    let job = stage.env.post("resize");
    stage.env.ok(format!("consume {job} --force --yes"));
    let spoil = "local key = redis.call('KEYS', '*past')[1]; \
        return redis.call('XADD', key, '*', 'job', 'nonsense', 'side', '')";
    stage.redis_server().unwrap().run(&["EVAL", spoil, "0"]);
    let answer = report(&stage.env)["unseen"].to_string();
    assert_contains(&answer, "unreadable records in the history: 1");
}

#[test]
fn missing_board_has_a_report() {
    let env = Env::new();
    let run = env.run("report board.html");
    let text = run.succeeded();
    assert!(
        text.starts_with("No problems found.\nwrote the report to board.html ("),
        "{run}"
    );
    run.warns("no job was ever posted");
    assert!(!env.board().exists());
    assert_eq!(report(&env)["unclaimed"], 0);
}

#[test]
fn terminal_and_pipe_get_the_same_text() {
    let env = Env::new();
    env.post("resize");
    for words in [&["report"][..], &["report", "-"]] {
        let run = env.jobboard(words).at_terminal(80).run();
        let text = run.succeeded();
        assert!(text.contains("posted, last hour"), "{run}");
        assert!(!text.contains("<html"), "{run}");
    }
    env.run("report").prints("posted, last hour");
}

#[test]
fn invalid_report_options_are_refused() {
    play(
        r#"
        # invalid options of reports
        2 report --at yesterday => --at: invalid value `yesterday`: use a time such as 2026-11-20T18:00:00Z
        2 report - -o table --json
        2 report - --json => always HTML => omit
        2 report figures.json --json => always HTML => omit
        2 report -o uuid => `report` has no -o uuid output => omit
        2 status -o uuid => `status` has no -o uuid output => omit
        2 doctor -o uuid => `doctor` has no -o uuid output
        2 conductors -o uuid => `conductors` has no -o uuid output
        2 ping -o uuid => `ping` has no -o uuid output
        2 config -o uuid => `config` has no -o uuid output
        2 explain @1 -o uuid => `explain` has no -o uuid output
        2 report figures.json -o uuid => omit
        "#,
    );
}
