//! How a conductor ends, and how it ends its commands.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::{Stage, WAITS, on_every_board, on_one_board};
use crate::support::{Tag, members, process::no_echo, wait_until};

on_every_board!(
    operator_can_force_a_job_from_a_conductor,
    drain_does_not_wait_for_an_unlimited_claim,
    drain_says_that_it_waits_for_a_delayed_job,
    drain_waits_for_an_expiring_claim_of_another_client,
);

on_one_board!(
    second_signal_ends_everything_immediately,
    stubborn_command_is_killed_with_its_descendants,
    conductor_lets_jobs_finish_on_term,
    unfinished_jobs_are_released_uncounted_after_the_grace_period,
);

fn conductor_lets_jobs_finish_on_term(stage: &Stage) {
    stage.post("a", "echo started >> log; sleep 0.5; echo finished >> log");
    stage.post("b", "echo never >> log");
    let conductor = stage.start(&[]);
    stage.logged(1);
    conductor.signal(Signal::TERM);
    let run = conductor.ended();
    run.succeeded();
    assert_eq!(stage.log(), ["started", "finished"]);
    assert_eq!(stage.env.names(), ["b"]);
    run.warns("summary ran=1 consumed=1");
}

fn unfinished_jobs_are_released_uncounted_after_the_grace_period(stage: &Stage) {
    let tag = Tag::new();
    let script = format!(
        "trap '' TERM; echo started >> log; while :; do sleep {}; done",
        tag.text()
    );
    let job = stage.post("a", &script);
    let conductor = stage.start(&["--grace", "200ms"]);
    stage.logged(1);
    conductor.signal(Signal::INT);
    let start = Instant::now();
    conductor.ended().succeeded();
    assert!(
        start.elapsed() > Duration::from_secs(5),
        "it gets 5 s after TERM"
    );
    tag.is_gone_by(Instant::now());
    let job = stage.env.show(&job);
    assert_eq!(members(&job, "state attempts"), "UNCLAIMED 0");
    assert_eq!(job["last_failure"], json!(null));
}

fn second_signal_ends_everything_immediately(stage: &Stage) {
    let tag = Tag::new();
    let script = format!(
        "trap '' TERM; echo started >> log; while :; do sleep {}; done",
        tag.text()
    );
    let job = stage.post("a", &script);
    let conductor = stage.start(&["--grace", "1h"]);
    stage.logged(1);
    conductor.signal(Signal::INT);
    stage.says(&conductor, "stopping");
    no_echo();
    conductor.signal(Signal::INT);
    conductor.ended().succeeded();
    tag.is_gone_by(Instant::now());
    assert_eq!(stage.env.show(&job)["attempts"], 0);
}

fn operator_can_force_a_job_from_a_conductor(stage: &Stage) {
    let tag = Tag::new();
    // The second attempt counts the remaining processes of the first.
    let script = format!(
        "if [ -e log ]; then ps -eo args= | grep -c '^sleep {0}$' >> log; exit 0; fi; \
         trap '' TERM; echo started >> log; sleep {0}",
        tag.text()
    );
    let job = stage.post("a", &script);
    let first = stage.start(&["--lease", "3s"]);
    stage.logged(1);
    let second = stage.start(&["--lease", "3s"]);
    stage.env.ok(format!("abandon {job} --force --yes"));
    stage.says(&first, "claim_lost");
    stage.logged(2);
    assert_eq!(stage.log()[1], "0");
    for conductor in [first, second] {
        conductor.stops();
    }
    tag.is_gone_by(Instant::now());
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

fn stubborn_command_is_killed_with_its_descendants(stage: &Stage) {
    let tag = Tag::new();
    let sleep = format!("trap '' TERM; sleep {}", tag.text());
    // A grandchild in its own session that keeps the pipe of the command.
    let script = format!(
        "setsid sh -c \"{sleep}\" & sh -c \"{sleep}\" & {sleep}; sleep {}",
        tag.text()
    );
    stage.post("a", &script);
    let mut conductor =
        stage.start(&["--job-timeout", "100ms", "--on-failure", "trash", "--drain"]);
    wait_until("it has timed out", || conductor.has_ended());
    assert_eq!(conductor.ended().code, 7);
    // A killed process may take a moment to disappear.
    tag.is_gone_by(Instant::now() + Duration::from_secs(1));
}

fn drain_does_not_wait_for_an_unlimited_claim(stage: &Stage) {
    let job = stage.post("a", "true");
    stage.env.claim(&job, "ada");
    let run = stage.conduct(&["--drain"]).run();
    run.exits(0, "held_without_expiry jobs=1");
    assert_eq!(stage.env.show(&job)["owner"], "ada");
}

fn drain_waits_for_an_expiring_claim_of_another_client(stage: &Stage) {
    let job = stage.post("a", "echo ran >> log");
    let claim = ["claim", &job, "--hold", "--lease", "1s"];
    let holder = stage.env.jobboard(&claim).spawn();
    wait_until("it is held", || stage.env.state(&job) == "CLAIMED");
    let conductor = stage.start(&["--drain"]);
    stage.says(&conductor, "waiting jobs=1 example=a");
    holder.kill();
    conductor.ended().succeeded();
    assert_eq!(stage.log(), ["ran"]);
}

fn drain_says_that_it_waits_for_a_delayed_job(stage: &Stage) {
    let job = stage.post("a", "exit 75");
    // Long enough that no conductor claims it meanwhile.
    let once = [
        "--max-jobs",
        "1",
        "--retry-delay",
        "1h",
        "--retry-max",
        "1h",
    ];
    stage.conduct(&once).run().succeeded();
    let conductor = stage.start(&["--drain"]);
    stage.says(&conductor, "delayed jobs=1 not_before=");
    stage.env.ok(format!("trash --force --yes {job}"));
    conductor.ended().succeeded();
}

#[test]
fn job_runs_in_its_turn_once_its_pause_has_ended() {
    let stage = Stage::embedded().unwrap();
    stage.post_with("hot", "echo hot >> log", &["--priority", "HIGH"]);
    stage.env.ok("pause hot --for 1s");
    stage.post_many(40, "echo many >> log; sleep 0.1");
    stage.conduct(&["--drain", "-j1"]).run().succeeded();
    let log = stage.log();
    assert_eq!(log.len(), 41);
    assert_ne!(log.last().unwrap(), "hot");
}

#[test]
fn claims_that_return_unused_do_not_count_as_jobs() {
    let stage = Stage::embedded().unwrap();
    // Fast jobs make the conductor claim ahead, and slow ones make it return these claims.
    stage.post_many(12, "echo fast >> log");
    stage.post_many(3, "echo slow >> log; sleep 0.6");
    stage
        .conduct(&["--max-jobs", "15", "-j1"])
        .run()
        .succeeded();
    assert_eq!(stage.log().len(), 15);
}

#[test]
fn repaired_record_is_not_reported_as_refused() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let post_odd = || {
        let beside = format!("taskflow:{}.jobboard", stage.post("odd", "echo odd >> log"));
        server.run(&["SET", &beside, r#"{"v":3}"#]);
        beside
    };
    stage.post("long", WAITS);
    let beside = post_odd();
    let conductor = stage.start(&["--drain"]);
    stage.says(&conductor, "skipped jobs=1 example=odd");
    stage.logged(1);
    server.run(&["DEL", &beside]);
    std::fs::write(stage.env.file("go"), "").unwrap();
    let run = conductor.ended();
    run.succeeded();
    assert_eq!(stage.log(), ["began", "odd"], "{run}");
    run.warns("ran=2 consumed=2");
    post_odd();
    for words in [&["--drain"][..], &["--max-jobs", "1"]] {
        stage.post("fine", "true");
        let run = stage.conduct(words).run();
        run.exits(7, " skipped=1 reasons=\"{");
    }
}

#[test]
fn quiet_conductor_names_the_failed_jobs() {
    let stage = Stage::embedded().unwrap();
    let once = "-q conduct --drain --max-attempts 1";
    let job = stage.env.ok("post bad -- false");
    stage.env.ok("post good -- true");
    let run = stage.env.run(once);
    let (job, short) = (job.trim(), &job[..8]);
    let message = format!(
        "error: 1 job failed: bad {short}\n\
         hint: `jobboard explain {job}` shows the reason and the fix\n"
    );
    assert_eq!((run.code, run.stderr), (7, message));
    stage.env.ok("post worse -- false");
    stage.env.ok("post worst -- false");
    let run = stage.env.run(once);
    run.fails(7, "2 jobs failed: ");
    run.warns("`jobboard doctor` shows the reasons");
}
