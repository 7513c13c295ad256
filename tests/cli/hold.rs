//! `jobboard claim --hold` and `jobboard claim -- COMMAND`: renewed claims.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Env, Running, play, wait_until};

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
fn reading_the_name_of_the_job_can_be_interrupted() {
    let env = Env::new();
    env.post("resize");
    for words in [&["claim", "-"][..], &["claim", "-", "--hold"]] {
        let mut running = env.jobboard(words).piped_stdin().spawn();
        wait_until("a signal ends it", || {
            running.signal(Signal::INT);
            running.has_ended()
        });
        running.ended().has_code(130);
    }
    assert_eq!(env.state("@1"), "UNCLAIMED");
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
    let refused = env.run(abandon);
    refused.failed(4);
    assert_eq!(refused.error()["kind"], "not-owner");
    assert_eq!(env.show("@1")["owner"], report["owner"]);
    assert!(!running.has_ended());
    env.ok("abandon @1 --force --yes --who bob");
    let run = running.ended();
    assert_ne!(run.code, 0, "{run:?}");
    run.warns("the claim on the job was lost");
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn commands_under_a_claim() {
    play(
        r#"
        # a successful command consumes the job
        0 post resize
        0 claim --next -- sh -c 'echo $JOBBOARD_NAME $JOBBOARD_ATTEMPT' == resize 1
        names

        # a failed command abandons the job, and a manual claim is no attempt
        0 post resize
        5 claim --next -- sh -c 'echo $JOBBOARD_ATTEMPT; exit 5' == 1
        5 claim @1 -- sh -c 'echo $JOBBOARD_ATTEMPT; exit 5' == 2
        0 claim @1 --who ada
        0 list --columns attempts == 2
        0 show @1 --json -> "exit_code":5

        # a command does not run without a job
        0 post resize
        2 claim @1 --hold --expiry 1h
        2 claim @1 --lease 1h
        2 claim @1 --hold -- true
        2 claim @1 --expiry 1h -- true
        2 claim @1 --hold --lease 0s
        0 claim @1 --who ada
        6 claim --next --json -- echo ran => {"error":{"code":6,"kind":"not-found"
        125 claim @1 --json -- echo ran => {"error":{"code":125,"kind":"already-claimed"
        125 claim @9 --json -- echo ran => {"error":{"code":125,"kind":"not-found"
        0 owner @1 == ada
        "#,
    );
}
