//! `claim --next -- COMMAND` and `run` in loops of scripts and cron: how attempts are judged.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_one_board},
    support::{Env, Outcome, members, play, wait_until, words},
};

on_one_board!(
    shell_loop_continues_after_a_failed_job,
    postponing_command_costs_no_attempt,
    cron_loop_gets_past_a_failing_job,
    exhausted_job_is_not_retried,
);

/// A command that fails for one of the jobs.
const PROCESS: &str = "echo $JOBBOARD_NAME >> log; test $JOBBOARD_NAME != poison";

/// Retries failed jobs soon.
const SOON: [&str; 4] = ["--retry-delay", "10ms", "--retry-max", "40ms"];

/// The time limit of a loop over many jobs, on a busy machine.
const LONG: Duration = Duration::from_secs(180);

/// Claims the next job for a shell script.
fn next(stage: &Stage, words: &[&str], script: &str) -> Outcome {
    let command = ["--", "sh", "-c", script];
    let claim = [&["claim", "--next"], words, &command].concat();
    stage.env.run(claim)
}

/// Repeats a loop that claims the next job, like cron, until the board is empty.
fn run_until_empty(stage: &Stage, words: &[&str], script: &str) {
    let command = ["--", "sh", "-c", PROCESS];
    let claim = [&["-q", "claim", "--next"], words, &SOON, &command].concat();
    let start = Instant::now();
    while !stage.env.names().is_empty() {
        let mut running = stage.env.jobboard(&claim).in_shell(script).spawn();
        while !running.has_ended() {
            assert!(start.elapsed() < LONG, "{}", running.stderr());
            thread::sleep(Duration::from_millis(5));
        }
        running.ended().succeeded();
    }
}

/// Requires that the poison job is trashed, and each good one ran once.
fn all_is_done(stage: &Stage, good: usize) {
    let mut log = stage.log();
    log.sort();
    let mut wanted: Vec<_> = (0..good).map(|number| format!("job-{number}")).collect();
    wanted.extend(["poison"; 5].map(str::to_owned));
    wanted.sort();
    assert_eq!(log, wanted);
    let [board, trash] = stage.env.everything();
    assert_eq!((board, trash[1].clone()), (json!([]), Value::Null));
    assert_eq!(members(&trash[0], "name attempts"), "poison 5");
    let reason = "exit 1";
    assert_eq!(trash[0]["last_failure"]["reason"], reason);
}

fn cron_loop_gets_past_a_failing_job(stage: &Stage) {
    stage.env.post("poison");
    stage.env.post_many(10);
    run_until_empty(stage, &[], "while \"$@\"; do :; done");
    all_is_done(stage, 10);
}

fn shell_loop_continues_after_a_failed_job(stage: &Stage) {
    stage.env.post("poison");
    stage.env.post_many(10);
    // Five failures in one loop: it waits for the retries.
    let words = ["--if-none", "200", "--wait", "2s"];
    run_until_empty(stage, &words, "while \"$@\" || [ $? = 1 ]; do :; done");
    all_is_done(stage, 10);
}

fn postponing_command_costs_no_attempt(stage: &Stage) {
    stage.env.post("later");
    let words = words("--max-attempts 1 --retry-delay 1h --retry-max 1h");
    let run = next(stage, &words, "exit 75");
    assert_eq!(run.code, 75, "{run:?}");
    let note = "later is back on the board; retry in ";
    assert!(run.stderr.starts_with(note), "{run:?}");
    let listed = stage.env.everything()[0][0].clone();
    assert_eq!(
        members(&listed, "state attempts last_failure"),
        "UNCLAIMED 0 null"
    );
    assert!(listed["not_before"].is_string(), "{listed}");
    next(stage, &words, "echo ran >> log").failed(6);
    // A claim by name ignores the delay.
    let job = listed["uuid"].as_str().unwrap();
    stage.env.ok(format!("claim {job} -- true"));
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

fn exhausted_job_is_not_retried(stage: &Stage) {
    stage.env.post("poison");
    let once = ["--max-attempts", "1", "--lease", "1s"];
    assert_eq!(next(stage, &once, "kill -9 $PPID").code, 137);
    // The claim expires; the job is trashed, and the next one is awaited.
    let command = ["--", "sh", "-c", PROCESS];
    let wait = [&["claim", "--next", "--wait", "5m"], &once[..], &command].concat();
    let waiting = stage.env.jobboard(&wait).spawn();
    waiting.says("poison is in the trash: no failure is recorded: the conductor died");
    stage.env.post("good");
    waiting.ended().succeeded();
    assert_eq!(stage.log(), ["good"]);
    let [board, trash] = stage.env.everything();
    assert_eq!((board, &trash[0]["attempts"]), (json!([]), &json!(1)));
}

#[test]
fn job_can_set_its_retry_limit() {
    let stage = Stage::embedded().unwrap();
    let env = &stage.env;
    env.ok("post poison max_attempts:=1");
    let run = ["run", "poison", "max_attempts:=1", "--", "false"];
    for run in [next(&stage, &[], "exit 3"), env.run(run)] {
        assert!(
            run.stderr.starts_with("poison is in the trash: "),
            "{run:?}"
        );
    }
    env.ok("post poison max_attempts:=9");
    assert_eq!(next(&stage, &["--max-attempts-max", "1"], "exit 3").code, 3);
    assert!(env.names().is_empty());
}

#[test]
fn exhausted_unique_job_can_be_posted_again() {
    let stage = Stage::embedded().unwrap();
    let run = |script| {
        let words = ["run", "nightly", "--unique", "n", "--max-attempts", "1"];
        let command = ["--lease", "1s", "--", "sh", "-c", script];
        stage.env.run([&words[..], &command].concat())
    };
    assert_eq!(run("kill -9 $PPID").code, 137);
    wait_until("another is run", || {
        run("echo $JOBBOARD_ATTEMPT >> log").succeeded();
        !stage.log().is_empty()
    });
    assert_eq!(stage.log(), ["1"]);
    let [board, trash] = stage.env.everything();
    assert_eq!((board, &trash[0]["name"]), (json!([]), &json!("nightly")));
}

#[test]
fn interrupted_or_unexecutable_command_costs_no_attempt() {
    let stage = Stage::embedded().unwrap();
    let job = stage.env.post("a");
    let once = ["--max-attempts", "1"];
    assert_eq!(next(&stage, &once, "kill -INT $$").code, 130);
    let garbage = stage.env.file("garbage");
    std::fs::write(&garbage, "echo a shell has run this\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&garbage, executable).unwrap();
    let garbage = garbage.to_str().unwrap();
    let claim = format!("claim --next --max-attempts 1 -- {garbage}");
    assert_eq!(stage.env.run(claim).code, 126);
    let job = stage.env.show(&job);
    assert_eq!(
        members(&job, "state attempts not_before"),
        "UNCLAIMED 0 null"
    );
}

#[test]
fn command_receives_any_possible_job_name() {
    let env = Env::new();
    env.post("a");
    let peer = "UPDATE job SET name = 'a' || char(0) || 'b'";
    env.database().execute(peer, []).unwrap();
    let claim = "claim --next -- sh -c 'echo $JOBBOARD_NAME'";
    assert_eq!(env.run(claim).succeeded(), "a b\n");
}

#[test]
fn exit_codes_and_final_failures() {
    play(
        r#"
        # --if-none sets the exit code without a job, and failure options need a command
        0 claim --next --if-none 0 -- true => no job is claimable
        200 -q claim --next --json --if-none 200 => (nothing)
        200 claim --next --if-none 200 --wait 50ms -- true
        0 post a
        1 claim --next --if-none 200 -- false
        125 claim --next --if-none 0 --board redis://127.0.0.1:1 -- true
        2 claim @1 --max-attempts 2
        2 claim @1 --on-failure trash
        2 claim @1 --if-none 3
        2 claim @1 --hold --retry-max 3s

        # a failure can be final
        0 post job-0
        0 post job-1
        5 claim --next --on-failure consume -- sh -c 'exit 5' => job-0 was removed and recorded as failed: exit 5
        5 claim --next --on-failure trash -- sh -c 'exit 5'
        names
        0 list --trash --columns name == job-1
        "#,
    );
}
