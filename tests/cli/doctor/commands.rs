//! The command of each problem repairs it, or only reads, and the text names the remaining step.

use std::fs;

use serde_json::{Value, json};

use super::{Stage, command, dead, findings, finds, on_every_board};
use crate::{
    conduct::set_mode,
    night::ruin_a_record,
    support::{Outcome, wait_until},
};

on_every_board!(
    commands_repair_claims_and_records,
    commands_retry_failed_jobs_after_the_cause_is_fixed,
    commands_without_a_risk_only_read,
);

/// Runs a suggested command, with the consent that its risk asks for.
fn follow(stage: &Stage, problem: &Value) -> Outcome {
    let words = command(problem);
    assert_eq!(words[0], "jobboard", "{problem}");
    let consent: &[&str] = match problem["fix"]["risk"].is_null() {
        true => &[],
        false => &["--yes"],
    };
    stage.env.run([&words[1..], consent].concat())
}

/// Requires that the command of this problem ends it.
fn repairs(stage: &Stage, code: &str) {
    let problem = finds(&stage.env, code);
    follow(stage, &problem).succeeded();
    assert_eq!(findings(&stage.env, code), [json!(null); 0], "{problem}");
}

fn commands_repair_claims_and_records(stage: &Stage) {
    let env = &stage.env;
    let jobs = env.post_many(3);
    env.claim(&jobs[0], &dead("night"));
    repairs(stage, "owner-dead");
    env.claim(&jobs[1], "service");
    repairs(stage, "claim-never-expires");
    ruin_a_record(stage);
    repairs(stage, "unreadable-record");
    env.load("wrong", &json!({"command": ["../x"]}));
    repairs(stage, "invalid-command");
    env.load("again", &json!({"command": ["../x"]}));
    env.ok("doctor --fix --yes --only invalid-command --reason 'ticket 4711'");
    for (name, reason) in [
        ("wrong", "invalid-command"),
        ("again", "ticket 4711 (invalid-command)"),
    ] {
        let trashed = env.json(format!("list --trash --filter name={name} --json"));
        assert_eq!(trashed[0]["reason"], reason, "{trashed}");
    }
    assert_eq!(env.state(&jobs[0]), "UNCLAIMED");
    assert_eq!(env.state(&jobs[1]), "UNCLAIMED");
}

fn commands_retry_failed_jobs_after_the_cause_is_fixed(stage: &Stage) {
    let env = &stage.env;
    let script = "test -e mended || { echo disk full >&2; exit 3; }";
    stage.post_with("trashed", script, &["max_attempts:=1"]);
    stage.conduct(&["--drain"]).run().failed(7);
    let spent = stage.post("spent", script);
    for _ in 0..5 {
        env.fail(&spent, "1ms");
    }
    for code in ["failed", "retries-exhausted"] {
        assert_eq!(finds(env, code)["fix"]["text"], "after fixing the cause");
    }
    fs::write(env.file("mended"), "").unwrap();
    let spent = finds(env, "retries-exhausted");
    // The conductor would trash the spent job before the command runs.
    let conductor = stage.start(&["--filter", "name=trashed"]);
    repairs(stage, "failed");
    wait_until("the job is done", || env.names() == ["spent"]);
    drop(conductor);
    let retried = env.jobboard(&["retry", "--problem", "retries-exhausted", "--yes"]);
    assert!(command(&spent).contains(&"retry"), "{spent}");
    retried.run().succeeded();
    stage.conduct(&["--drain"]).run().succeeded();
    assert_eq!(findings(env, "retries-exhausted"), [json!(null); 0]);
    assert_eq!(env.names(), [""; 0]);
}

fn commands_without_a_risk_only_read(stage: &Stage) {
    let env = &stage.env;
    env.post("migrate");
    let problem = finds(env, "no-conductor");
    assert!(problem["fix"]["command"].is_null(), "{problem}");
    let text = problem["fix"]["text"].as_str().unwrap();
    assert!(
        text.contains("`jobboard conduct --handlers DIR`"),
        "{problem}"
    );
    fs::create_dir(env.file("handlers")).unwrap();
    set_mode(&env.file("handlers"), 0o755);
    fs::write(env.file("handlers").join("refused"), "").unwrap();
    let handlers = ["--handlers", "handlers", "--name", "night"];
    let conductor = stage.start(&handlers);
    env.post("refused");
    wait_until("both are skipped", || {
        conductor.stderr().matches("skipped").count() > 1
    });
    let before = env.everything();
    for code in ["no-matching-conductor", "conductor-refuses"] {
        let problem = finds(env, code);
        assert!(problem["fix"]["risk"].is_null(), "{problem}");
        follow(stage, &problem).prints("night");
        assert!(problem["fix"]["text"].is_string(), "{problem}");
    }
    assert_eq!(env.everything(), before);
}
