//! `jobboard claim --hold` and `jobboard claim -- COMMAND`: renewed claims.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::env::{Env, Running, wait_until};

/// Starts to hold a job, and returns its first output.
fn hold(env: &Env, words: &[&str]) -> (Running, Value) {
    let claim = ["claim", "@1", "--hold", "--who", "ada", "--json"];
    let mut running = env.jobboard(&[&claim, words].concat()).spawn();
    wait_until("the claim is printed", || {
        assert!(!running.has_ended());
        running.stdout().ends_with('\n')
    });
    let report = serde_json::from_str(&running.stdout()).unwrap();
    (running, report)
}

#[test]
fn successful_command_consumes_the_job() {
    let env = Env::new();
    env.post("resize");
    let script = "echo $JOBBOARD_NAME $JOBBOARD_ATTEMPT";
    let run = env
        .jobboard(&["claim", "--next", "--", "sh", "-c", script])
        .run();
    assert!(env.names().is_empty());
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    resize 1
    --- stderr
    ");
}

#[test]
fn failed_command_abandons_the_job() {
    let env = Env::new();
    let uuid = env.post("resize");
    let script = "echo $JOBBOARD_ATTEMPT; exit 3";
    let first = env
        .jobboard(&["claim", "--next", "--", "sh", "-c", script])
        .run();
    let second = env
        .jobboard(&["claim", &uuid, "--", "sh", "-c", script])
        .run();
    assert_eq!((first.code, first.stdout.as_str()), (3, "1\n"));
    assert_eq!((second.code, second.stdout.as_str()), (3, "2\n"));
    // A manual claim is no attempt.
    env.claim("@1", "ada");
    let job = env.show("@1");
    assert_eq!(job["attempts"], 2);
    assert_eq!(job["last_failure"]["exit_code"], 3);
}

#[test]
fn command_does_not_run_without_a_job() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    for (job, code) in [("--next", 6), ("@1", 125), ("@9", 125)] {
        let run = env.run(format!("claim {job} --json -- touch ran"));
        assert_eq!(run.code, code, "{run:?}");
        let kinds = ["not-found", "already-claimed", "not-found"];
        let kind = run.error()["kind"].clone();
        assert!(kinds.iter().any(|known| kind == *known), "{run:?}");
    }
    assert!(!env.file("ran").exists());
    assert_eq!(env.show("@1")["owner"], "ada");
}

#[test]
fn hold_prints_the_claim_immediately_and_outlives_its_lease() {
    let env = Env::new();
    env.post("resize");
    let began = Instant::now();
    let (mut running, report) = hold(&env, &["--lease", "2s"]);
    assert_eq!(report["done"], "claimed");
    assert_eq!(report["expires_in"], 2.0);
    assert!(
        report["owner"].as_str().unwrap().starts_with("ada:"),
        "{report}"
    );
    wait_until("three leases are over", || {
        began.elapsed() > Duration::from_secs(6)
    });
    assert!(!running.has_ended());
    let job = env.show("@1");
    assert_eq!(
        (&job["owner"], &job["fence"]),
        (&report["owner"], &report["fence"])
    );
    assert_eq!(job["attempts"], 0);
}

#[test]
fn interrupted_hold_abandons_the_job() {
    for signal in [Signal::INT, Signal::TERM] {
        let env = Env::new();
        env.post("resize");
        let (running, _) = hold(&env, &[]);
        assert_eq!(env.state("@1"), "CLAIMED");
        running.signal(signal);
        let run = running.ended();
        run.succeeded();
        assert_eq!(run.stderr, "");
        assert_eq!(env.state("@1"), "UNCLAIMED");
    }
}

#[test]
fn job_of_a_killed_holder_is_free_after_the_lease() {
    let env = Env::new();
    env.post("resize");
    let (running, _) = hold(&env, &["--lease", "2s"]);
    assert_eq!(running.kill().code, 137);
    env.ok("claim --next --wait 20s");
}

#[test]
fn only_force_releases_a_held_claim() {
    let env = Env::new();
    env.post("resize");
    let (mut running, report) = hold(&env, &["--lease", "3s"]);
    let abandon = ["abandon", "@1", "--json", "--who", "ada"];
    let refused = env.jobboard(&abandon).run();
    refused.failed(4);
    assert_eq!(refused.error()["kind"], "not-owner");
    assert_eq!(env.show("@1")["owner"], report["owner"]);
    assert!(!running.has_ended());
    env.ok("abandon @1 --force --yes --who bob");
    let run = running.ended();
    assert_ne!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("the claim on the job was lost"),
        "{run:?}"
    );
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn contradictory_options_are_refused() {
    let env = Env::new();
    env.post("resize");
    for words in [
        &["--hold", "--expiry", "1h"][..],
        &["--lease", "1h"],
        &["--hold", "--", "true"],
        &["--expiry", "1h", "--", "true"],
        &["--hold", "--lease", "0s"],
    ] {
        let run = env.jobboard(&[&["claim", "@1"], words].concat()).run();
        run.failed(2);
    }
    assert_eq!(env.state("@1"), "UNCLAIMED");
}
