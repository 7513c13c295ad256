//! `jobboard retry`.

use std::time::Instant;

use serde_json::Value;

use crate::{
    conduct::{Stage, on_every_board},
    support::env::{Env, Outcome, wait_until},
};

on_every_board!(
    a_conductor_takes_at_once_what_is_tried_again,
    each_job_is_tried_again_or_it_is_said_why_not,
    many_are_tried_again_by_a_filter,
    whoever_waits_for_a_job_wins_one_that_is_tried_again,
);

/// So that what fails is held back for longer than any test lasts.
const LATER: [&str; 4] = ["--retry-delay", "1h", "--retry-max", "1h"];

fn run(stage: &Stage, words: &[&str]) -> Outcome {
    stage.env.jobboard(words).run()
}

/// Has jobs claimed and fail, so that they are held back.
fn hold_back(stage: &Stage, names: &[&str]) -> Vec<String> {
    let jobs: Vec<_> = names
        .iter()
        .map(|name| stage.post(name, "echo tried >> log; [ -e mended ]"))
        .collect();
    let conductor = stage.start(&LATER);
    let is_held_back = |job: &String| !stage.env.show(job)["not_before"].is_null();
    wait_until("they are held back", || jobs.iter().all(is_held_back));
    conductor.kill();
    jobs
}

fn a_conductor_takes_at_once_what_is_tried_again(stage: &Stage) {
    let job = stage.post(
        "flaky",
        "echo $JOBBOARD_ATTEMPT >> log; [ -e mended ] || exit 3",
    );
    let words = [&LATER[..], &["--max-attempts", "2"]].concat();
    let conductor = stage.start(&words);
    // The conductor that holds it back is the one to try it again.
    for attempts in [["1"].as_slice(), &["1", "1"], &["1", "1", "2"]] {
        stage.logged(attempts.len());
        assert_eq!(stage.log(), attempts);
        let (state, keep) = match attempts.len() {
            1 => ("UNCLAIMED", None),
            2 => ("UNCLAIMED", Some("--keep-attempts")),
            _ => ("TRASHED", None),
        };
        wait_until("it has failed", || stage.env.show(&job)["state"] == state);
        if state == "TRASHED" {
            std::fs::write(stage.env.file("mended"), "").unwrap();
        }
        let retry = ["retry", &job, "--reason", "mended"]
            .into_iter()
            .chain(keep);
        run(stage, &retry.collect::<Vec<_>>()).succeeded();
    }
    stage.logged(4);
    assert_eq!(stage.log(), ["1", "1", "2", "1"]);
    wait_until("it is done", || {
        run(stage, &["show", &job, "--json"]).json()["outcome"] == "consumed"
    });
    conductor.kill();
}

fn each_job_is_tried_again_or_it_is_said_why_not(stage: &Stage) {
    let [held, spent] = hold_back(stage, &["held", "spent"]).try_into().unwrap();
    run(stage, &["trash", &spent, "--force", "--yes"]).succeeded();
    let (free, claimed) = (stage.env.post("free"), stage.env.post("claimed"));
    stage.env.claim(&claimed, "ada");
    let untouched = [&free, &claimed].map(|job| stage.env.show(job));
    let all = [
        "retry",
        &held,
        &free,
        &spent,
        &claimed,
        "--reason",
        "disk full",
    ];
    let dry = [&all[..], &["--dry-run", "--json"]].concat();
    let would = run(stage, &dry);
    assert_eq!(would.code, 7, "{would:?}");
    assert_eq!(
        uuids(&serde_json::from_str(&would.stdout).unwrap()),
        [&held, &spent]
    );
    assert!(!stage.env.show(&held)["not_before"].is_null());
    let done = run(stage, &all);
    assert_eq!(done.code, 7, "{done:?}");
    let told: Vec<_> = done.stdout.lines().collect();
    assert_eq!(
        told,
        [
            format!("{held}\theld\tretried"),
            format!("{spent}\tspent\tretried")
        ]
    );
    assert!(done.stderr.contains("the job is not delayed"), "{done:?}");
    assert!(
        done.stderr.contains("the job is claimed by ada"),
        "{done:?}"
    );
    for job in [&held, &spent] {
        let job = stage.env.show(job);
        assert_eq!(job["state"], "UNCLAIMED");
        assert_eq!(job["attempts"], 0);
        assert!(job["not_before"].is_null() && job["trashed_on"].is_null());
        assert_eq!(job["failures"].as_array().unwrap().len(), 1);
        assert_eq!(job["reason"], "disk full");
    }
    let now = [&free, &claimed].map(|job| stage.env.show(job));
    for (now, before) in now.iter().zip(&untouched) {
        for field in ["state", "owner", "attempts", "last_modified", "by"] {
            assert_eq!(now[field], before[field]);
        }
    }
    for (job, why) in [(&free, "not delayed"), (&claimed, "claimed by ada")] {
        let refused = run(stage, &["retry", job]);
        assert!(refused.failed(4).contains(why), "{refused:?}");
    }
}

fn uuids(listed: &Value) -> Vec<&str> {
    let jobs = listed.as_array().unwrap().iter();
    jobs.map(|job| job["uuid"].as_str().unwrap()).collect()
}

fn many_are_tried_again_by_a_filter(stage: &Stage) {
    let jobs = hold_back(stage, &["a-1", "a-2", "a-3", "a-4", "b-1"]);
    run(stage, &["trash", &jobs[0], "--force", "--yes"]).succeeded();
    stage.env.post("a-free");
    let retry = |words: &[&str]| {
        let begun = Instant::now();
        let retry = [&["retry", "--name", "a-*", "--yes"], words].concat();
        (run(stage, &retry), begun.elapsed().as_millis())
    };
    let (refused, _) = retry(&["--max", "3"]);
    assert!(
        refused
            .failed(8)
            .contains("4 jobs selected, but --max is 3"),
        "{refused:?}"
    );
    let (first, _) = retry(&["--limit", "1"]);
    assert_eq!(first.succeeded(), format!("{}\ta-2\tretried\n", jobs[1]));
    let left = "skipped because they are claimed or not delayed: 1 of 5 jobs";
    assert!(first.stderr.contains(left), "{first:?}");
    let (rest, took) = retry(&["--rate", "5/s"]);
    let told = rest
        .succeeded()
        .lines()
        .map(|line| &line[..36])
        .collect::<Vec<_>>();
    assert_eq!(told, [&jobs[2], &jobs[3], &jobs[0]]);
    assert!(took >= 400, "3 jobs in {took} ms");
    let (none, _) = retry(&[]);
    assert!(
        none.succeeded().is_empty() && none.stderr.contains("no job matches"),
        "{none:?}"
    );
    let held_back = run(stage, &["list", "--json", "--filter", "attempts>0"]).json();
    assert_eq!(uuids(&held_back), [&jobs[4]]);
}

fn whoever_waits_for_a_job_wins_one_that_is_tried_again(stage: &Stage) {
    let [job] = hold_back(stage, &["resize"]).try_into().unwrap();
    let wait = ["claim", "--next", "--wait", "5m"];
    let waiting = stage.env.jobboard(&wait).spawn();
    let begun = Instant::now();
    run(stage, &["retry", &job]).succeeded();
    assert!(waiting.ended().succeeded().contains(&job));
    assert!(begun.elapsed().as_secs() < 60);
}

#[test]
fn what_is_nowhere_is_not_found_and_a_rate_is_a_number_a_second() {
    let env = Env::new();
    env.post("resize");
    env.jobboard(&["retry", "@2"]).run().failed(3);
    env.jobboard(&["retry"]).run().failed(2);
    for rate in ["5", "0/s", "x/s", "5/d"] {
        let refused = env.jobboard(&["retry", "@1", "--rate", rate]).run();
        assert!(refused.failed(2).contains("5/s or 100/m"), "{refused:?}");
    }
}
