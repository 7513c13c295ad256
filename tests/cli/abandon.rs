//! `jobboard abandon`.

use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{
        Env, Outcome, play,
        process::{guards, is_alive, signal},
        wait_until,
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
    stage.env.run([&force, words].concat())
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
    explained.shows("  released    the claim of dead1, by ");
    let shown = stage.env.run(format!("show {job} -o table"));
    shown.shows(": the claim of dead1");
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
        let outcome = stage.env.run(words);
        outcome.succeeded();
        outcome
    };
    ok(&["trash", "--force", "--yes", job]).warns("`restore` and `retry` refuse");
    for verb in ["restore", "retry"] {
        let refused = stage.env.run([verb, job]);
        refused.fails(4, "may still be running the job");
    }
    let explained = stage.env.run(["explain", job]);
    assert!(!explained.stdout.contains("jobboard retry"), "{explained}");
    ok(&["restore", job, "--now"]);
    assert_eq!(stage.env.show(job)["not_before"], json!(null));
    drop(runner);
}

fn job_trashed_by_force_after_its_command_ended_is_restored(stage: &Stage) {
    let job = kill_conductor(stage, FIRST_RUNS);
    wait_until("the guard ends the command", || !is_alive(pid(stage)));
    for verb in [&["trash", "--force", "--yes"][..], &["restore"]] {
        let outcome = stage.env.run([verb, &[&job]].concat());
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
    done.warns("long is still running (process ");
    let child = pid(stage).as_raw_nonzero().to_string();
    done.warns(child);
    // `retry` looks again.
    wait_until("the command ends", || !is_alive(pid(stage)));
    stage.env.ok(format!("retry {job}"));
}

#[test]
fn retry_waits_for_a_former_owner_that_may_still_run_the_job() {
    let env = Env::new();
    let job = env.post("resize");
    let worker = env.jobboard(&["claim", &job, "--", "sleep", "600"]).spawn();
    wait_until("the command runs", || env.state(&job) == "CLAIMED");
    env.ok(format!("abandon --force {job} --yes"));
    let refused = env.run(["retry", &job]);
    refused.fails(4, "may still be running the job");
    let explained = env.run(["explain", &job]);
    assert!(!explained.stdout.contains("jobboard retry"), "{explained}");
    env.ok(["retry", &job, "--now"]);
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
        env.run(words).fails(8, "is the name of a process");
    }
    assert_eq!(env.state(&job), "CLAIMED");
    drop(worker);
}

#[test]
fn releases_and_refusals() {
    play(
        r#"
        # the owner releases a job
        0 post resize
        0 claim @1 --who ada
        4 abandon @1 --who bob => cannot abandon @1 on sqlite:ROOT/state/jobboard/board.db: the job is claimed by ada, not by bob\n => hint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, use `jobboard abandon --force --yes @1`
        0 abandon @1 --who ada --json == {"uuid":"00000001-0000-0000-0000-000000000000","name":"resize","done":"abandoned"}
        6 owner @1

        # an unclaimed job cannot be abandoned, even by force
        0 post resize
        4 abandon @1 --json => "kind":"not-claimed"
        4 abandon @1 --json --force --yes => "kind":"not-claimed"

        # force releases the claim and prints it
        0 post resize
        0 claim @1 --who ada
        0 abandon @1 --force --yes == 00000001-0000-0000-0000-000000000000\tresize\tabandoned =>   00000001 resize (claimed by ada)
        6 owner @1

        # force with an owner affects that owner only
        0 post resize
        0 claim @1 --who ada
        4 abandon @1 --force --yes --owner bob =>   00000001 resize (claimed by ada)\n => cannot abandon @1 on sqlite:ROOT/state/jobboard/board.db: the job is not claimed by bob\nhint: nothing changed; `jobboard owner @1` shows who holds the claim
        0 abandon @1 --force --yes --owner ada
        6 owner @1

        # all claims of one owner are released
        0 post job-0
        0 post job-1
        0 post job-2
        0 claim @1 --who ada
        0 claim @2 --who bob
        0 claim @3 --who ada
        0 abandon --filter owner=ada --force --yes == 00000001-0000-0000-0000-000000000000\tjob-0\tabandoned\n00000002-0000-0000-0000-000000000000\tjob-2\tabandoned =>   00000001 job-0 (claimed by ada)\n  00000002 job-2 (claimed by ada)
        0 list --columns name,state == job-0\tUNCLAIMED\njob-1\tCLAIMED\njob-2\tUNCLAIMED

        # a missing confirmation is one JSON error
        0 post resize
        0 claim @1 --who ada
        8 abandon --state CLAIMED --force --json => {"error":{"code":8,"kind":"refused",

        # the release of a job that a move holds names the danger
        0 post resize
        0 claim @1 --who move:ada:h:1:c0ffee01
        4 abandon @1 => `jobboard doctor` shows how to finish it !> --force
        0 abandon @1 --force --dry-run => a move holds 1 job, which may also be on another board
        0 trash @1 --force --dry-run => a move holds 1 job, which may also be on another board
        0 consume @1 --force --dry-run => a move holds 1 job, which may also be on another board

        # equal failures of a filter are summarised, and listed for programs and on request
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}\n{"name":"job-3"}\n{"name":"job-4"}\n{"name":"job-5"}
        0 claim @1 --who ada
        7 abandon --filter owner=none --yes --json => {"error":{"code":4,"kind":"not-claimed" => job-1 on => job-2 on => job-3 on => job-4 on => job-5 on => {"error":{"code":7,"kind":"failed"
        7 abandon --filter owner=none --yes -v => cannot abandon job-1 on => cannot abandon job-2 on => cannot abandon job-3 on => cannot abandon job-4 on => cannot abandon job-5 on
        7 abandon --filter name=* --yes --who ada == 00000001-0000-0000-0000-000000000000\tjob-0\tabandoned => not claimed by ada, skipped without --force: 5 of 6 jobs\n  00000001 job-0 (claimed by ada)\n  00000002 job-1\n  00000003 job-2\n  00000004 job-3\n  00000005 job-4\n  … and 1 more\nerror: cannot abandon 5 jobs (job-1, job-2, job-3 and 2 more) on sqlite:ROOT/state/jobboard/board.db: the job is not claimed\nhint: the job needs no release; `jobboard show 00000006-0000-0000-0000-000000000000` shows its state\n-v prints each failure\nerror: failed for 5 of 6 jobs
        "#,
    );
}
