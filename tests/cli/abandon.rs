//! `jobboard abandon`.

use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{
        env::{Env, Outcome, wait_until},
        process::{guards, is_alive, signal},
    },
};

on_every_board!(
    job_of_a_dead_conductor_is_available_after_a_forced_release,
    running_command_of_a_dead_conductor_delays_its_job,
);

on_one_board!(
    forced_release_without_proof_reports_the_wait_and_now_ends_it,
    job_trashed_by_force_waits_for_a_former_owner_that_may_still_run_it,
    job_trashed_by_force_after_its_command_ended_is_restored,
);

/// Logs its process and runs until it is killed; the next attempt succeeds.
const FIRST_RUNS: &str = "[ -e log ] && exit; echo $$ >> log; exec sleep 1000";

/// Starts a conductor with a long lease and a job, and kills it.
fn kill_conductor(stage: &Stage, script: &str) -> String {
    let job = stage.post("long", script);
    let conductor = stage.start(&["--name", "dead1", "--lease", "6h"]);
    stage.logged(1);
    conductor.kill();
    job
}

fn pid(stage: &Stage) -> Pid {
    Pid::from_raw(stage.log()[0].parse().unwrap()).unwrap()
}

fn by_force(stage: &Stage, words: &[&str]) -> Outcome {
    let force = ["abandon", "--force", "--yes", "--json"];
    stage.env.jobboard(&[&force, words].concat()).run()
}

fn job_of_a_dead_conductor_is_available_after_a_forced_release(stage: &Stage) {
    let job = kill_conductor(stage, FIRST_RUNS);
    wait_until("the guard ends the command", || !is_alive(pid(stage)));
    let done = by_force(stage, &["--owner", "dead1", &job]);
    assert_eq!(done.json()["not_before"], json!(null), "{done:?}");
    assert!(!done.stderr.contains("conductors wait"), "{done:?}");
    let shown = stage.env.show(&job);
    assert_eq!(shown["attempts"], 1);
    assert_eq!(shown["failures"].as_array().unwrap().len(), 1);
    assert!(shown["not_before"].is_null(), "{shown}");
    let explained = stage.env.run(format!("explain {job}"));
    let released = "  released    the claim of dead1, by ";
    assert!(explained.stdout.contains(released), "{explained}");
    let shown = stage.env.run(format!("show {job} -o table"));
    assert!(shown.stdout.contains(": the claim of dead1"), "{shown}");
    assert_eq!(stage.env.ok("list --failed -o uuid"), "");
    assert_eq!(stage.env.json("status --json")["names"][0]["failed"], 0);
    stage.conduct(&["--drain"]).run().succeeded();
    assert_eq!(stage.env.show(&job)["outcome"], "consumed");
}

fn forced_release_without_proof_reports_the_wait_and_now_ends_it(stage: &Stage) {
    let run = |name| {
        let script = format!("echo {name} >> log; exec sleep 1000");
        let words = ["run", name, "--", "sh", "-c", &script];
        stage.env.jobboard(&words).spawn()
    };
    let runs = ["a-1", "a-2", "b"].map(run);
    stage.logged(3);
    let done = by_force(stage, &["--name", "a-*"]);
    let waits = done.values();
    assert!(
        waits.iter().all(|it| it["not_before"].is_string()) && waits.len() == 2,
        "{done:?}"
    );
    let text: Vec<_> = done
        .stderr
        .lines()
        .filter(|it| it.contains("--now"))
        .collect();
    let [text] = text.as_slice() else {
        panic!("{done:?}")
    };
    let words =
        "process cannot be checked from here: conductors wait for 2 jobs, the last of them until ";
    assert!(
        text.contains(words) && text.ends_with("ends the wait"),
        "{text}"
    );
    let done = by_force(stage, &["--name", "b", "--now"]);
    assert_eq!(done.json()["not_before"], json!(null), "{done:?}");
    assert!(!done.stderr.contains("--now"), "{done:?}");
    for run in runs {
        run.ended();
    }
}

fn job_trashed_by_force_waits_for_a_former_owner_that_may_still_run_it(stage: &Stage) {
    let script = "echo started >> log; exec sleep 1000";
    let job = &stage.post("resize", script);
    let words = ["claim", job, "--", "sh", "-c", script];
    let runner = stage.env.jobboard(&words).spawn();
    stage.logged(1);
    let ok = |words: &[&str]| {
        let outcome = stage.env.jobboard(words).run();
        outcome.succeeded();
        outcome
    };
    let trashed = ok(&["trash", "--force", "--yes", job]);
    let warning = "`restore` and `retry` refuse";
    assert!(trashed.stderr.contains(warning), "{trashed}");
    for verb in ["restore", "retry"] {
        let refused = stage.env.jobboard(&[verb, job]).run();
        let message = refused.failed(4);
        assert!(
            message.contains("may still be running the job"),
            "{refused}"
        );
    }
    let explained = stage.env.jobboard(&["explain", job]).run();
    assert!(!explained.stdout.contains("jobboard retry"), "{explained}");
    ok(&["restore", job, "--now"]);
    assert_eq!(stage.env.show(job)["not_before"], json!(null));
    drop(runner);
}

fn job_trashed_by_force_after_its_command_ended_is_restored(stage: &Stage) {
    let job = kill_conductor(stage, FIRST_RUNS);
    wait_until("the guard ends the command", || !is_alive(pid(stage)));
    for verb in [&["trash", "--force", "--yes"][..], &["restore"]] {
        let outcome = stage.env.jobboard(&[verb, &[&job]].concat()).run();
        outcome.succeeded();
        assert!(!outcome.stderr.contains("refuse"), "{outcome}");
    }
    stage.conduct(&["--drain"]).run().succeeded();
    assert_eq!(stage.env.show(&job)["outcome"], "consumed");
}

fn running_command_of_a_dead_conductor_delays_its_job(stage: &Stage) {
    if stage.zookeeper_board().is_some() {
        // On ZooKeeper the claim ends with the session of the dead conductor, maybe before the release.
        return;
    }
    let job = stage.post("long", "sleep 1000 & echo $! >> log; wait");
    let conductor = stage.start(&["--name", "dead1", "--lease", "6h"]);
    stage.logged(1);
    // Its guard must be dead too, or the guard ends the command. A running conductor would start another guard.
    let owner = Pid::from_raw(conductor.pid() as i32).unwrap();
    signal(owner, Signal::STOP);
    guards(owner)
        .into_iter()
        .for_each(|it| signal(it, Signal::KILL));
    conductor.kill();
    let done = by_force(stage, &[&job]);
    signal(pid(stage), Signal::KILL);
    assert!(done.json()["not_before"].is_string(), "{done:?}");
    let expected = "long is still running (process ";
    assert!(done.stderr.contains(expected), "{done:?}");
    let child = pid(stage).as_raw_nonzero().to_string();
    assert!(done.stderr.contains(&child), "{done:?}");
    // `retry` looks again.
    wait_until("the command ends", || !is_alive(pid(stage)));
    stage.env.ok(format!("retry {job}"));
}

#[test]
fn owner_releases_a_job() {
    let (env, uuid) = Env::with_claimed_job();
    let outcome = env.run("abandon @1 --who ada --json");
    assert_eq!(
        outcome.json(),
        json!({"uuid": uuid, "name": "resize", "done": "abandoned"})
    );
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn other_users_cannot_abandon() {
    let (env, _) = Env::with_claimed_job();
    let run = env.run("abandon @1 --who bob");
    assert_eq!(env.state("@1"), "CLAIMED");
    insta::assert_snapshot!(run, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot abandon @1 on sqlite:ROOT/state/jobboard/board.db: the job belongs to ada, not to bob
    hint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, use `jobboard abandon --force --yes @1`
    ");
}

#[test]
fn release_of_a_job_that_a_move_holds_names_the_danger() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "move:ada:h:1:c0ffee01");
    let refused = env.fails(4, "abandon @1");
    let hint = "`jobboard doctor` shows how to finish it";
    assert!(
        refused.contains(hint) && !refused.contains("--force"),
        "{refused}"
    );
    for verb in ["abandon", "trash", "consume"] {
        let preview = env.run(format!("{verb} @1 --force --dry-run"));
        let warning = "a move holds 1 job, which may also be on another board";
        assert!(preview.stderr.contains(warning), "{preview}");
    }
}

#[test]
fn unclaimed_job_cannot_be_abandoned_even_by_force() {
    let env = Env::new();
    env.post("resize");
    for more in [&[][..], &["--force", "--yes"]] {
        let arguments = [&["abandon", "@1", "--json"], more].concat();
        let run = env.jobboard(&arguments).run();
        assert_eq!(run.code, 4);
        assert!(run.stderr.contains(r#""kind":"not-claimed""#), "{run}");
    }
}

#[test]
fn force_releases_the_claim_and_prints_it() {
    let (env, _) = Env::with_claimed_job();
    let run = env.run("abandon @1 --force --yes");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	abandoned
    --- stderr
      00000001 resize (claimed by ada)
    ");
}

#[test]
fn force_with_an_owner_affects_that_owner_only() {
    let (env, _) = Env::with_claimed_job();
    let of = |owner: &str| {
        let arguments = ["abandon", "@1", "--force", "--yes", "--owner", owner];
        env.jobboard(&arguments).run()
    };
    let refused = of("bob");
    assert_eq!(env.state("@1"), "CLAIMED");
    of("ada").succeeded();
    assert_eq!(env.state("@1"), "UNCLAIMED");
    insta::assert_snapshot!(refused, @"
    exit code 4
    --- stdout
    --- stderr
      00000001 resize (claimed by ada)
    error: cannot abandon @1 on sqlite:ROOT/state/jobboard/board.db: the job is not claimed by bob
    hint: nothing changed; `jobboard owner @1` shows who holds the claim
    ");
}

#[test]
fn all_claims_of_one_owner_are_released() {
    let env = Env::new();
    env.post_many(3);
    env.claim("@1", "ada");
    env.claim("@2", "bob");
    env.claim("@3", "ada");
    let run = env.run("abandon --filter owner=ada --force --yes");
    let states = ["@1", "@2", "@3"].map(|job| env.state(job));
    assert_eq!(states, ["UNCLAIMED", "CLAIMED", "UNCLAIMED"]);
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	job-0	abandoned
    00000002-0000-0000-0000-000000000000	job-2	abandoned
    --- stderr
      00000001 job-0 (claimed by ada)
      00000002 job-2 (claimed by ada)
    ");
}

/// A board with one job of ada and five unclaimed jobs.
fn mostly_unclaimed() -> Env {
    let env = Env::new();
    env.post_many(6);
    env.claim("@1", "ada");
    env
}

#[test]
fn equal_failures_of_a_filter_are_summarised() {
    let env = mostly_unclaimed();
    let run = env.run("abandon --filter name=* --yes --who ada");
    insta::assert_snapshot!(run, @"
    exit code 7
    --- stdout
    00000001-0000-0000-0000-000000000000	job-0	abandoned
    --- stderr
    not claimed by ada, skipped without --force: 5 of 6 jobs
      00000001 job-0 (claimed by ada)
      00000002 job-1
      00000003 job-2
      00000004 job-3
      00000005 job-4
      … and 1 more
    error: cannot abandon 5 jobs (job-1, job-2, job-3 and 2 more) on sqlite:ROOT/state/jobboard/board.db: the job is not claimed
    hint: the job needs no release; `jobboard show 00000006-0000-0000-0000-000000000000` shows its state
    -v prints each failure
    error: failed for 5 of 6 jobs
    ");
}

#[test]
fn each_failure_is_listed_for_programs_and_on_request() {
    let env = mostly_unclaimed();
    let run = |more: &str| {
        let words = ["abandon", "--filter", "owner=none", "--yes", more];
        let run = env.jobboard(&words).run();
        run.failed(7).to_owned()
    };
    let lines = run("--json");
    let lines: Vec<_> = lines.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[..5].iter().all(|line| line.contains("not-claimed")));
    for job in 1..6 {
        assert!(run("-v").contains(&format!("cannot abandon job-{job} on")));
    }
}

#[test]
fn missing_confirmation_is_one_json_error() {
    let env = Env::new();
    let job = env.post("resize");
    env.claim(&job, "ada");
    let run = env.jobboard(&["abandon", "--state", "CLAIMED", "--force", "--json"]);
    let run = run.run();
    run.failed(8);
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert_eq!(run.error()["kind"], "refused");
}

#[test]
fn retry_waits_for_a_former_owner_that_may_still_run_the_job() {
    let env = Env::new();
    let job = env.post("resize");
    let worker = env.jobboard(&["claim", &job, "--", "sleep", "600"]).spawn();
    wait_until("the command runs", || env.state(&job) == "CLAIMED");
    env.jobboard(&["abandon", "--force", &job, "--yes"])
        .run()
        .succeeded();
    let refused = env.jobboard(&["retry", &job]).run();
    assert!(
        refused.failed(4).contains("may still be running the job"),
        "{refused}"
    );
    let explained = env.jobboard(&["explain", &job]).run();
    assert!(!explained.stdout.contains("jobboard retry"), "{explained}");
    env.jobboard(&["retry", &job, "--now"]).run().succeeded();
    assert_eq!(env.show(&job)["not_before"], serde_json::Value::Null);
    drop(worker);
}

#[test]
fn name_of_a_process_is_refused_without_force() {
    let env = Env::new();
    let job = env.post("resize");
    let worker = env.jobboard(&["claim", &job, "--", "sleep", "600"]).spawn();
    wait_until("the command runs", || env.state(&job) == "CLAIMED");
    let owner = env.show(&job)["owner"].as_str().unwrap().to_owned();
    for words in [
        &["abandon"][..],
        &["trash"],
        &["consume"],
        &["extend", "--expiry", "1s"],
    ] {
        let words = [&["--who", &owner], words, &[&job]].concat();
        let refused = env.jobboard(&words).run();
        assert!(
            refused.failed(8).contains("is the name of a process"),
            "{refused}"
        );
    }
    assert_eq!(env.state(&job), "CLAIMED");
    drop(worker);
}
