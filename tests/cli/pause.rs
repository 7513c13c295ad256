//! `jobboard pause` and `jobboard resume`.

use serde_json::json;

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{Env, Outcome, Server, members, play, wait_until},
};

on_every_board!(claim_next_skips_paused_jobs);

on_one_board!(
    conductor_skips_paused_jobs_only,
    conductor_skips_known_jobs_once_paused,
    pause_expires,
    pause_is_shown_and_reported,
);

fn run(stage: &Stage, words: &[&str]) -> Outcome {
    stage.env.run(words)
}

/// Waits until a conductor reports this reason for skipping jobs.
fn leaves_alone(stage: &Stage, reason: &str) {
    wait_until("the reason is reported", || {
        let report = stage.env.json("conductors --json");
        let reasons = report[0]["skipped"].as_array().unwrap().clone();
        let mut reasons = reasons.iter().filter_map(|it| it["reason"].as_str());
        reasons.any(|it| it.contains(reason))
    });
}

fn conductor_skips_paused_jobs_only(stage: &Stage) {
    stage.env.ok("pause backup-* --reason 'the volume is full'");
    let _conductor = stage.start(&[]);
    let paused = stage.post("backup-1", "echo backup >> log");
    stage.post("resize", "echo resize >> log");
    stage.logged(1);
    assert_eq!(stage.log(), ["resize"]);
    leaves_alone(stage, "the volume is full");
    let text = stage.env.run("conductors").stderr;
    assert!(text.contains("backup-* is paused by "), "{text}");
    assert_eq!(stage.env.state(&paused), "UNCLAIMED");
    assert_eq!(stage.env.show(&paused)["attempts"], 0);
    stage.env.ok("resume");
    stage.logged(2);
    assert_eq!(stage.log(), ["resize", "backup"]);
}

fn conductor_skips_known_jobs_once_paused(stage: &Stage) {
    let flaky = stage.post("flaky", "echo flaky >> log; [ -e mended ]");
    let _conductor = stage.start(&["--jobs", "1", "--retry-delay", "1h", "--retry-max", "1h"]);
    let is_held_back = || !stage.env.show(&flaky)["not_before"].is_null();
    wait_until("it is held back", is_held_back);
    stage.env.ok("pause flaky");
    leaves_alone(stage, "flaky is paused");
    std::fs::write(stage.env.file("mended"), "").unwrap();
    run(stage, &["retry", &flaky]).succeeded();
    stage.post("last", "echo last >> log");
    stage.logged(2);
    assert_eq!(stage.log(), ["flaky", "last"]);
    assert_eq!(stage.env.state(&flaky), "UNCLAIMED");
    stage.env.ok("resume flaky");
    stage.logged(3);
    assert_eq!(stage.log(), ["flaky", "last", "flaky"]);
}

fn pause_expires(stage: &Stage) {
    let _conductor = stage.start(&[]);
    let paused = stage.env.json("pause * --for 1500ms --json --yes");
    assert_eq!(members(&paused, "done names"), "paused *");
    stage.post("backup", "date -u +%Y-%m-%dT%H:%M:%S.%6NZ >> log");
    stage.logged(1);
    let until = paused["until"].as_str().unwrap();
    assert!(
        stage.log()[0].as_str() >= until,
        "{:?} {until}",
        stage.log()
    );
}

fn claim_next_skips_paused_jobs(stage: &Stage) {
    let backup = stage.env.post("backup");
    stage.env.ok("pause backup");
    stage.env.fails(6, "claim --next");
    let waiting = stage.env.jobboard("claim --next --wait 60s").spawn();
    let resize = stage.env.post("resize");
    assert!(waiting.ended().succeeded().contains(&resize));
    let waiting = stage.env.jobboard("claim --next --wait 60s").spawn();
    stage.env.ok("resume backup");
    assert!(waiting.ended().succeeded().contains(&backup));
    // A pause with an end replaces one without.
    let third = stage.env.post("backup");
    stage.env.ok("pause backup");
    let waiting = stage.env.jobboard("claim --next --wait 60s").spawn();
    stage.env.post("other");
    assert!(!waiting.ended().succeeded().contains(&third));
    let waiting = stage.env.jobboard("claim --next --wait 60s").spawn();
    stage.env.ok("pause backup --for 1s");
    assert!(waiting.ended().succeeded().contains(&third));
    // A paused job can be claimed by name.
    let other = stage.env.post("backup");
    stage.env.ok("pause backup");
    stage.env.ok(format!("claim {other}"));
}

fn pause_is_shown_and_reported(stage: &Stage) {
    let job = stage.env.post("backup-1");
    let watch = [
        "watch", "--event", "paused", "--event", "resumed", "--count", "2", "--json",
    ];
    let watching = stage
        .env
        .jobboard(&[&watch[..], &["--since", "1s"]].concat())
        .spawn();
    wait_until("it listens", || {
        stage.env.ok("pause backup-* --who olga --reason 'no room'");
        !watching.stdout().is_empty()
    });
    let table = ["-o", "table"];
    run(stage, &[&["list"], &table[..]].concat()).prints("paused");
    let shown = run(stage, &[&["show", &job], &table[..]].concat());
    let words = "backup-* is paused by olga: no room";
    shown.prints(words);
    let status = run(stage, &[&["status"], &table[..]].concat());
    let status = status.succeeded();
    assert!(
        status.contains(words) && status.contains("resume 'backup-*'"),
        "{status}"
    );
    for (only, is_counted) in [("jobs", true), ("conductors", false)] {
        let expected = stage.env.run(format!("doctor --only {only}"));
        assert_eq!(
            expected.stdout.contains("waiting as intended"),
            is_counted,
            "{expected}"
        );
    }
    let paused = &stage.env.json("status --json")["pauses"][0];
    assert_eq!(members(paused, "names by"), "backup-* olga");
    assert_eq!(members(paused, "until reason"), "null no room");
    stage.env.ok("resume backup-*");
    let events = watching.ended().values();
    let names: Vec<_> = events.iter().map(|event| &event["name"]).collect();
    assert_eq!(names, [&json!("backup-*"), &json!("backup-*")]);
    assert!(
        !run(stage, &[&["list"], &table[..]].concat())
            .succeeded()
            .contains("paused")
    );
}

/// A peer may write another pattern into the record of a pause.
#[test]
fn pause_is_named_by_its_key_on_the_board() {
    need!(server = Server::start());
    let env = Env::new();
    let url = server.url("");
    let run = |words: &[&str]| env.run([words, &["--board", &url]].concat());
    run(&["pause", "b*"]).succeeded();
    let record = server.run(&["HGET", "taskflow:paused", "b*"]);
    server.run(&["HSET", "taskflow:paused", "c*", &record]);
    let paused = run(&["pause"]);
    assert_eq!(paused.succeeded().lines().count(), 2, "{paused}");
    run(&["resume", "c*"]).succeeded();
    run(&["resume", "b*"]).succeeded();
    assert_eq!(run(&["pause"]).succeeded(), "");
}

#[test]
fn invalid_pause_or_resume_is_reported() {
    play(
        r#"
        # an invalid pause or resume
        2 pause [a => `[` has no matching `]`
        2 pause '' => the pattern is empty
        6 resume backup => nothing is paused
        0 resume == (nothing)
        0 pause backup-*
        6 resume backup => the current pause is backup-*
        8 --read-only pause x => read

        # a uuid is not paused as a name
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        2 pause 5f3a0000 => `jobboard pause resize`
        0 pause resize
        0 pause cafe

        # pausing everything needs a confirmation, and a protected board its name
        0 post a
        8 pause * => cannot pause all jobs
        8 pause ** => cannot pause all jobs
        8 pause ?* => cannot pause all jobs
        0 pause == (nothing)
        0 pause * --yes
        0 pause *-a
        config default = "prod"\n[board.prod]\nurl = "sqlite:ROOT/state/jobboard/board.db"\nprotected = true\n
        8 pause * --yes => --confirm prod
        0 pause * --confirm prod
        8 pause b --yes => --confirm prod
        0 pause b --confirm prod
        8 resume
        0 resume --confirm prod
        0 pause == (nothing)
        "#,
    );
}
