//! `jobboard retry`.

use std::{fs, time::Instant};

use rustix::process::Signal;

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{Running, column, play, wait_until},
};

on_every_board!(waiting_claim_wins_a_retried_job);

on_one_board!(
    retried_job_runs_immediately,
    each_job_is_retried_or_has_a_reason,
    filter_retries_many_jobs,
    canary_that_fails_as_before_keeps_the_others,
    canary_with_another_result_releases_the_others,
    canary_without_a_conductor_is_refused_or_waits_until_the_timeout,
    canary_without_a_free_slot_names_the_reason,
    interrupted_retry_prints_the_command_for_the_remaining_jobs,
);

/// Delays failed jobs for longer than any test.
const LATER: [&str; 4] = ["--retry-delay", "1h", "--retry-max", "1h"];

/// Claims jobs and lets them fail, so that they are delayed.
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

fn retried_job_runs_immediately(stage: &Stage) {
    let job = stage.post(
        "flaky",
        "echo $JOBBOARD_ATTEMPT >> log; [ -e mended ] || exit 3",
    );
    let words = [&LATER[..], &["--max-attempts", "2"]].concat();
    let conductor = stage.start(&words);
    // The conductor that delayed the job retries it.
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
        stage.env.ok(retry.collect::<Vec<_>>());
    }
    stage.logged(4);
    assert_eq!(stage.log(), ["1", "1", "2", "1"]);
    wait_until("it is done", || {
        stage.env.json(format!("show {job} --json"))["outcome"] == "consumed"
    });
    conductor.kill();
}

fn each_job_is_retried_or_has_a_reason(stage: &Stage) {
    let [held, spent] = hold_back(stage, &["held", "spent"]).try_into().unwrap();
    stage.env.ok(format!("trash {spent} --force --yes"));
    let (free, claimed) = (stage.env.post("free"), stage.env.post("claimed"));
    stage.env.claim(&claimed, "ada");
    let untouched = [&free, &claimed].map(|job| stage.env.show(job));
    let all = format!("retry {held} {free} {spent} {claimed} --reason 'disk full'");
    let would = stage.env.run(format!("{all} --dry-run --json"));
    assert_eq!(would.code, 7, "{would:?}");
    let planned = would.value();
    assert_eq!(
        column(planned.as_array().unwrap(), "uuid"),
        [&*held, &*spent]
    );
    assert!(!stage.env.show(&held)["not_before"].is_null());
    let done = stage.env.run(&all);
    assert_eq!(done.code, 7, "{done:?}");
    let text: Vec<_> = done.stdout.lines().collect();
    assert_eq!(
        text,
        [
            format!("{held}\theld\tretried"),
            format!("{spent}\tspent\tretried")
        ]
    );
    done.warns("the job is not backing off");
    done.warns("the job is claimed by ada");
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
    for (job, why) in [(&free, "not backing off"), (&claimed, "claimed by ada")] {
        stage.env.run(format!("retry {job}")).fails(4, why);
    }
}

fn filter_retries_many_jobs(stage: &Stage) {
    let jobs = hold_back(stage, &["a-1", "a-2", "a-3", "a-4", "b-1"]);
    stage.env.ok(format!("trash {} --force --yes", jobs[0]));
    stage.env.post("a-free");
    let retry = |words: &[&str]| {
        let begun = Instant::now();
        let retry = [&["retry", "--name", "a-*", "--yes"], words].concat();
        (stage.env.run(retry), begun.elapsed().as_millis())
    };
    let (refused, _) = retry(&["--max", "3"]);
    refused.fails(8, "4 jobs selected, but --max is 3");
    let (first, _) = retry(&["--limit", "1"]);
    assert_eq!(first.succeeded(), format!("{}\ta-2\tretried\n", jobs[1]));
    first.warns("skipped 1 of 5 jobs: not waiting for a retry\n");
    let (rest, took) = retry(&["--rate", "5/s"]);
    let text = rest
        .succeeded()
        .lines()
        .map(|line| &line[..36])
        .collect::<Vec<_>>();
    assert_eq!(text, [&jobs[2], &jobs[3], &jobs[0]]);
    assert!(took >= 400, "3 jobs in {took} ms");
    let (none, _) = retry(&[]);
    assert!(
        none.succeeded().is_empty() && none.stderr.contains("no job matches"),
        "{none:?}"
    );
    let held_back = stage.env.run("list --json --filter attempts>0");
    assert_eq!(held_back.each("uuid"), [&*jobs[4]]);
}

fn waiting_claim_wins_a_retried_job(stage: &Stage) {
    let [job] = hold_back(stage, &["resize"]).try_into().unwrap();
    let waiting = stage.env.jobboard("claim --next --wait 5m").spawn();
    let start = Instant::now();
    stage.env.ok(format!("retry {job}"));
    assert!(waiting.ended().succeeded().contains(&job));
    // A waiter that missed the event would look again after a minute.
    assert!(start.elapsed().as_secs() < 60);
}

const CANARY: [&str; 6] = ["retry", "--name", "a-*", "--yes", "--canary", "1"];

/// Starts a conductor under which four jobs fail with the text of the file `why`, and waits until all are trashed.
fn fail(stage: &Stage) -> Running {
    fs::write(stage.env.file("why"), "disk full").unwrap();
    for name in ["a-1", "a-2", "a-3", "a-4"] {
        stage.post(name, "[ -e mended ] || { cat why >&2; exit 3; }");
    }
    let conductor = stage.start(&["--max-attempts", "1"]);
    wait_until("all are in the trash", || trashed(stage) == "4\n");
    conductor
}

fn trashed(stage: &Stage) -> String {
    stage.env.run("list --trash --count").stdout
}

fn canary_that_fails_as_before_keeps_the_others(stage: &Stage) {
    let conductor = fail(stage);
    let refused = stage.env.run(CANARY);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(refused.stdout.ends_with("\ta-1\tretried\n"), "{refused:?}");
    let expected = " a-1 failed again: exit 3: disk full; not retried: 3 jobs\n";
    refused.warns(expected);
    wait_until("it is back in the trash", || trashed(stage) == "4\n");
    conductor.kill();
    // A failed attempt is a result, even if others follow.
    let conductor = stage.start(&LATER);
    stage.env.run(CANARY).exits(7, expected);
    assert_eq!(trashed(stage), "3\n");
    conductor.kill();
}

fn canary_with_another_result_releases_the_others(stage: &Stage) {
    let conductor = fail(stage);
    fs::write(stage.env.file("why"), "no route").unwrap();
    let other = stage.env.run(CANARY);
    assert_eq!(other.succeeded().lines().count(), 4, "{other:?}");
    other.warns(" a-1 failed for another reason: exit 3: no route");
    wait_until("all are back in the trash", || trashed(stage) == "4\n");
    fs::write(stage.env.file("mended"), "").unwrap();
    let done = stage.env.run(CANARY);
    assert_eq!(done.succeeded().lines().count(), 4, "{done:?}");
    done.warns("continuing with 3 jobs");
    wait_until("all are done", || {
        stage.env.run("list --count").stdout == "0\n"
    });
    assert_eq!(trashed(stage), "0\n");
    conductor.kill();
}

fn canary_without_a_conductor_is_refused_or_waits_until_the_timeout(stage: &Stage) {
    end(fail(stage));
    stage.env.run(CANARY).fails(8, "no conductor is running");
    assert_eq!(trashed(stage), "4\n");
    stage
        .env
        .run([&CANARY[..], &["--timeout", "3s"]].concat())
        .has_code(124);
    assert_eq!(trashed(stage), "3\n");
}

fn canary_without_a_free_slot_names_the_reason(stage: &Stage) {
    let conductor = fail(stage);
    stage.post("long", "touch began; exec sleep 600");
    wait_until("its slot is taken", || stage.env.file("began").exists());
    wait_until("the others wait", || {
        let listed = stage.env.json("conductors --json");
        listed[0]["running"] == 1
    });
    let late = stage.env.run([&CANARY[..], &["--timeout", "2s"]].concat());
    assert_eq!(late.code, 124, "{late:?}");
    late.warns("no conductor had a free slot within 2s");
    late.warns("not retried: 3 jobs; to continue: `jobboard retry");
    late.warns("hint: `jobboard conductors`");
    assert_eq!(trashed(stage), "3\n");
    conductor.kill();
}

/// Ends a conductor, so that it leaves the registry.
fn end(conductor: Running) {
    conductor.signal(Signal::TERM);
    conductor.ended();
}

fn interrupted_retry_prints_the_command_for_the_remaining_jobs(stage: &Stage) {
    end(fail(stage));
    for (more, signal, left, resume) in [
        (
            ["--canary", "1", "--timeout", "1h"],
            Signal::INT,
            3,
            "--canary 1",
        ),
        (
            ["--rate", "1/m", "--reason", "disk freed"],
            Signal::TERM,
            2,
            "--reason 'disk freed' --rate 1/m",
        ),
    ] {
        let words = [
            &["retry", "--name", "a-*", "--state", "TRASHED", "--yes"],
            &more[..],
        ];
        let retry = stage.env.jobboard(&words.concat()).spawn();
        retry.prints(1);
        retry.signal(signal);
        let stopped = retry.ended();
        assert_eq!(stopped.code, 128 + signal.as_raw(), "{stopped:?}");
        let filters = "--filter 'name=a-*' --filter state=TRASHED";
        let expected = format!(
            "stopped with {left} jobs remaining; to continue: `jobboard retry {filters} {resume}`"
        );
        stopped.warns(expected);
        assert_eq!(trashed(stage), format!("{left}\n"));
    }
}

#[test]
fn missing_job_is_not_found_and_invalid_rate_is_refused() {
    play(
        r#"
        # a missing job and invalid rates
        0 post resize
        3 retry @2
        2 retry
        2 retry @1 --rate 5 => 5/s or 100/m
        2 retry @1 --rate 0/s => 5/s or 100/m
        2 retry @1 --rate x/s => 5/s or 100/m
        2 retry @1 --rate 5/d => 5/s or 100/m
        "#,
    );
}
