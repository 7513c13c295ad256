//! `jobboard apply`, and `--plan` of the bulk verbs.

use std::{fs, process::Command};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    interop::shared::{Shared, Side},
    support::{Env, Host, Server, ZooKeeper, play},
};

on_every_board!(jobs_that_changed_since_the_plan_are_skipped);

on_one_board!(
    each_verb_is_planned_without_an_effect_and_applied_once,
    killed_apply_is_completed_by_repeating_it,
    job_that_changes_before_its_turn_is_skipped,
);

/// Applies the plan, and returns the names of the jobs with each result.
fn applied(env: &Env) -> (Vec<String>, Vec<String>) {
    let run = env.run("apply plan --yes --json");
    run.succeeded();
    let (skipped, done): (Vec<_>, Vec<_>) = run
        .values()
        .into_iter()
        .partition(|it| it["done"] == "skipped");
    let names = |jobs: Vec<Value>| {
        jobs.iter()
            .map(|it| it["name"].as_str().unwrap().into())
            .collect()
    };
    (names(done), names(skipped))
}

fn each_verb_is_planned_without_an_effect_and_applied_once(stage: &Stage) {
    let env = &stage.env;
    for name in ["a", "b", "c"] {
        env.post(name);
    }
    let jobs = json!(["a", "b", "c"]);
    for (verb, after) in [
        ("trash --state UNCLAIMED --force", "TRASHED"),
        ("restore --state TRASHED", "UNCLAIMED"),
        ("trash --state UNCLAIMED --force", "TRASHED"),
        ("retry --state TRASHED", "UNCLAIMED"),
        (
            "change - --priority HIGH --set n:=null --unset m",
            "UNCLAIMED",
        ),
        ("abandon --state CLAIMED", "UNCLAIMED"),
        ("consume --state UNCLAIMED --force --failed", "COMPLETE"),
    ] {
        let uuids = env.run("list -o uuid").stdout;
        if verb.starts_with("abandon") {
            for job in uuids.lines() {
                env.claim(job, "ada");
            }
        }
        let words = format!("{verb} --who ada --reason 'no use' --plan plan");
        let before = env.everything();
        env.jobboard(&words).stdin(uuids).run().succeeded();
        assert_eq!(env.everything(), before, "{verb:?}");
        let dry = env.json("apply plan --dry-run --json");
        assert_eq!(dry.as_array().unwrap().len(), 3, "{verb:?}");
        assert_eq!(json!(applied(env).0), jobs, "{verb:?}");
        let list = match after {
            "TRASHED" => &["list", "--json", "--trash"][..],
            "COMPLETE" => &["list", "--json", "--history"],
            _ => &["list", "--json"],
        };
        let done = env.run(list).json();
        for job in done.as_array().unwrap() {
            let found = [&job["state"], &job["by"], &job["reason"]];
            assert_eq!(found, [after, "ada", "no use"], "{verb:?}");
            if verb.starts_with("change") {
                assert_eq!(job["details"], json!({"n": null}), "{verb:?}");
            }
        }
        assert_eq!(done.as_array().unwrap().len(), 3, "{verb:?}");
        let before = env.everything();
        let (done, skipped) = applied(env);
        assert_eq!(
            (json!(done), json!(skipped)),
            (json!([]), jobs.clone()),
            "{verb:?}"
        );
        assert_eq!(env.everything(), before, "{verb:?}");
    }
}

fn jobs_that_changed_since_the_plan_are_skipped(stage: &Stage) {
    let env = &stage.env;
    let jobs = ["same", "claimed", "gone", "edited", "posted-again"].map(|name| env.post(name));
    env.ok("trash --name * --force --plan plan");
    env.claim(&jobs[1], "bob");
    for job in [&jobs[2], &jobs[4]] {
        env.ok(format!("consume {job} --force --yes"));
    }
    env.ok(format!("change {} --priority LOW", jobs[3]));
    env.ok(format!("post posted-again --uuid {}", jobs[4]));
    let new = env.post("new");
    let (done, skipped) = applied(env);
    assert_eq!(done, ["same"]);
    assert_eq!(skipped, ["claimed", "gone", "edited", "posted-again"]);
    let states = [&jobs[1], &jobs[3], &jobs[4], &new].map(|job| env.state(job));
    assert_eq!(states, ["CLAIMED", "UNCLAIMED", "UNCLAIMED", "UNCLAIMED"]);
}

fn killed_apply_is_completed_by_repeating_it(stage: &Stage) {
    let env = &stage.env;
    for lines in [1, 7, 14] {
        let jobs = env.post_many(20);
        let plan = ["retry", "--state", "TRASHED", "--plan", "plan"];
        env.ok("trash --name * --force --yes");
        env.ok([&plan[..], &["--reason", "disk freed"]].concat());
        let running = env.jobboard("apply plan --yes --rate 50/s").spawn();
        running.prints(lines);
        running.kill();
        let (done, skipped) = applied(env);
        assert_eq!(done.len() + skipped.len(), 20);
        assert!(skipped.len() >= lines, "{skipped:?}");
        for job in &jobs {
            let job = env.show(job);
            let found = [&job["state"], &job["action"], &job["reason"]];
            assert_eq!(found, ["UNCLAIMED", "retried", "disk freed"]);
        }
        env.ok("consume --name * --force --yes");
    }
}

fn job_that_changes_before_its_turn_is_skipped(stage: &Stage) {
    let env = &stage.env;
    let jobs = ["a", "b"].map(|name| env.post(name));
    let plan = [
        "change", &jobs[0], &jobs[1], "--set", "n=1", "--plan", "plan",
    ];
    env.ok(plan);
    let apply = env.jobboard("apply plan --yes --rate 20/m").spawn();
    apply.prints(1);
    apply.signal(Signal::STOP);
    env.ok(format!("change {} --priority LOW", jobs[1]));
    apply.signal(Signal::CONT);
    let outcome = apply.ended();
    let [first, second] = &jobs;
    let lines = format!("{first}\ta\tchanged\n{second}\tb\tskipped\n");
    assert_eq!(outcome.succeeded(), lines);
    assert_eq!(env.show(second)["details"], json!({}));
}

#[test]
fn plan_that_is_damaged_or_for_another_board_changes_nothing() {
    let env = Env::new();
    env.post("a");
    let plan = || env.ok("trash @1 --force --plan plan");
    plan();
    let text = fs::read_to_string(env.file("plan")).unwrap();
    let cut = text.lines().next().unwrap();
    let edited = text.replace("\"attempts\":0", "\"attempts\":1");
    for (text, found) in [
        (cut, "truncated: the trailer is missing"),
        (&edited, "damaged: its hash does not match"),
    ] {
        let apply = env.jobboard(&["apply", "-", "--yes"]).stdin(text);
        apply.run().fails(8, found);
    }
    env.run(["apply", "plan", "--yes", "--board", "sqlite:other.db"])
        .fails(8, "the plan is for the board sqlite:");
    env.fails(8, "apply plan");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    // A plan may contain details, so only its author may read it.
    let mode = Command::new("stat")
        .args(["-c", "%a"])
        .arg(env.file("plan"))
        .output();
    assert_eq!(String::from_utf8(mode.unwrap().stdout).unwrap(), "600\n");
}

#[test]
fn plan_against_a_python_worker_on_redis() {
    each_job_is_done_by_the_plan_or_by_the_worker::<Server>();
}

#[test]
fn plan_against_a_python_worker_on_zookeeper() {
    each_job_is_done_by_the_plan_or_by_the_worker::<ZooKeeper>();
}

fn each_job_is_done_by_the_plan_or_by_the_worker<H: Host>() {
    need!(mut shared = Shared::<H>::new());
    let jobs = shared.env.post_many(30);
    shared.env.ok("trash --name * --force --plan plan");
    let (early, late) = jobs.split_at(2);
    for job in early {
        shared.does(Side::TaskFlow, "claim", job, "py").unwrap();
    }
    let apply = shared.env.jobboard("apply plan --yes --rate 20/s").spawn();
    apply.prints(4);
    // The worker may be slow, and gets its first job before the plan goes on.
    apply.signal(Signal::STOP);
    // From the last job backwards, so that it meets the worker.
    let mut worked = Vec::new();
    for job in late.iter().rev() {
        if shared.does(Side::TaskFlow, "claim", job, "py").is_ok() {
            shared.does(Side::TaskFlow, "consume", job, "py").unwrap();
            worked.push(job.clone());
        }
        apply.signal(Signal::CONT);
    }
    let outcome = apply.ended();
    let lines: Vec<_> = outcome.succeeded().lines().collect();
    assert_eq!(lines.len(), 30);
    for job in &jobs {
        let result = lines
            .iter()
            .find(|it| it.starts_with(job.as_str()))
            .unwrap();
        let is_ours = !worked.contains(job) && !early.contains(job);
        assert!(
            result.ends_with(if is_ours { "trashed" } else { "skipped" }),
            "{result}"
        );
    }
    let trashed = shared.env.run("list --trash --count");
    let trashed: usize = trashed.succeeded().trim().parse().unwrap();
    assert!(trashed > 0 && !worked.is_empty());
    assert_eq!(trashed + worked.len() + early.len(), 30);
    for job in early {
        shared.does(Side::TaskFlow, "consume", job, "py").unwrap();
    }
}

#[test]
fn plan_that_others_can_write_is_refused() {
    play(
        r#"
        # a plan that others can write is refused
        0 post resize
        0 trash --name resize --force --plan plan
        mode 666 plan
        8 apply plan --yes => is writable by other users (mode 666) => chmod go-w
        mode 600 plan
        0 apply plan --yes
        "#,
    );
}
