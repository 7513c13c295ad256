//! `jobboard explain`: every verdict, with and without its cause.

mod damaged;
mod output;

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, WAITS, on_every_board, on_one_board},
    support::{Outcome, Running, texts, wait_until},
};

on_every_board!(
    queued_jobs_differ_from_the_running_one,
    missing_conductor_differs_from_one_that_skips_the_job,
    delayed_job_names_its_time,
    paused_job_differs_from_one_without_a_conductor,
    exhausted_job_depends_on_the_limit_of_the_conductor,
    unlimited_claim_differs_from_an_expiring_one,
    dead_owner_loses_the_job_soon,
    ended_job_is_found_in_trash_or_history,
    without_a_job_all_problems_are_listed,
);

on_one_board!(
    invalid_command_differs_from_a_refused_one,
    suggested_command_solves_the_problem,
);

/// An explanation of a job.
struct Explanation {
    value: Value,
    run: Outcome,
}

impl Explanation {
    fn verdict(&self) -> &str {
        self.value["verdict"].as_str().unwrap()
    }

    fn codes(&self) -> BTreeSet<&str> {
        let findings = self.value["findings"].as_array().unwrap().iter();
        findings.map(|it| it["code"].as_str().unwrap()).collect()
    }

    /// Returns the text of the verdict.
    fn text(&self) -> String {
        self.value["findings"][0].to_string()
    }

    /// Requires a text in the verdict.
    #[track_caller]
    fn contains(&self, part: &str) {
        assert!(self.text().contains(part), "{}", self.run);
    }

    /// Returns the suggested command, without the name of the program.
    fn remedy(&self) -> Vec<&str> {
        let words = texts(&self.value["findings"][0]["fix"]["command"]);
        assert_eq!(words[0], "jobboard");
        words[1..].to_vec()
    }
}

fn explain(stage: &Stage, job: &str) -> Explanation {
    let run = stage.env.run(format!("explain {job} --json"));
    let value = run.value();
    Explanation { value, run }
}

/// Requires a verdict and an exit code, and returns the explanation.
fn is(stage: &Stage, job: &str, verdict: &str, code: i32) -> Explanation {
    let explanation = explain(stage, job);
    let run = &explanation.run;
    assert_eq!((explanation.verdict(), run.code), (verdict, code), "{run}");
    let will_run = explanation.value["will_run"] == true;
    assert!(will_run || code != 0, "{run}");
    explanation
}

fn ends(conductor: Running) {
    conductor.stops();
}

fn queued_jobs_differ_from_the_running_one(stage: &Stage) {
    let first = stage.post("first", WAITS);
    let conductor = stage.start(&["--name", "night"]);
    stage.logged(1);
    // No conductor takes these two, so they are not ahead of the others.
    stage.env.ok("pause paused --for 1h");
    stage.post("paused", "true");
    stage.env.post("without-command");
    let (next, last) = (stage.post("next", "true"), stage.post("last", "true"));
    wait_until("it is reported", || {
        explain(stage, &first).text().contains("command is running")
    });
    let held = is(stage, &first, "running", 0);
    assert!(held.text().contains("night"), "{}", held.run);
    wait_until("all slots are busy", || {
        explain(stage, &next).verdict() == "waiting"
    });
    let next = is(stage, &next, "waiting", 0);
    next.contains("the job is next; night accepts");
    let last = is(stage, &last, "waiting", 0);
    assert!(last.text().contains("jobs ahead: 1"), "{}", last.run);
    let busy = "night runs 1 job in 1 slot, the longest for ";
    assert!(last.text().contains(busy), "{}", last.run);
    let doctor = stage.env.run("doctor -o table --only jobs");
    let waiting = format!("waiting for a free slot: 2 jobs; {busy}");
    doctor.shows(waiting);
    for explanation in [held, next, last] {
        assert_eq!(explanation.codes().len(), 1, "{}", explanation.run);
    }
    fs::write(stage.env.file("go"), "").unwrap();
    ends(conductor);
}

fn paused_job_differs_from_one_without_a_conductor(stage: &Stage) {
    let run = |words: &[&str]| stage.env.run(words);
    run(&["pause", "res*", "--reason", "no room"]).succeeded();
    let job = stage.post("resize", "true");
    is(stage, &job, "paused", 4);
    let conductor = stage.start(&["--name", "night"]);
    let explanation = is(stage, &job, "paused", 4);
    assert_eq!(explanation.codes().len(), 1, "{}", explanation.run);
    explanation.contains("no room");
    assert!(explanation.remedy().starts_with(&["resume"]));
    run(&["pause", "res*", "--for", "1h"]).succeeded();
    is(stage, &job, "paused", 0);
    run(&explanation.remedy()).succeeded();
    wait_until("it is done", || stage.env.names().is_empty());
    ends(conductor);
}

fn missing_conductor_differs_from_one_that_skips_the_job(stage: &Stage) {
    let job = stage.post("resize", "true");
    is(stage, &job, "no-conductor", 4);
    let conductor = stage.start(&["--name", "night", "--filter", "name=backup-*"]);
    is(stage, &job, "no-matching-conductor", 4)
        .contains("the conductor accepts only name=backup-*");
    let flow = stage.env.run("post backup-flow flow_uuid=x").posted();
    is(stage, &flow, "no-matching-conductor", 4).contains("the job has no command");
    ends(conductor);
    is(stage, &job, "no-conductor", 4);
}

fn delayed_job_names_its_time(stage: &Stage) {
    let job = stage.post("later", "test -e go || exit 75");
    let conductor = stage.start(&["--name", "night", "--retry-delay", "1h"]);
    wait_until("it is postponed", || {
        explain(stage, &job).verdict() == "backing-off"
    });
    is(stage, &job, "backing-off", 0).contains("night accepts the job after that");
    ends(conductor);
    is(stage, &job, "backing-off", 4).contains("no conductor is running");
}

fn exhausted_job_depends_on_the_limit_of_the_conductor(stage: &Stage) {
    let job = stage.post("frail", "exit 3");
    let conductor = stage.start(&["--retry-delay", "1h"]);
    wait_until("it has failed", || {
        explain(stage, &job).verdict() == "backing-off"
    });
    ends(conductor);
    let conductor = stage.start(&["--max-attempts", "1"]);
    let explanation = is(stage, &job, "retries-exhausted", 4);
    assert!(explanation.text().contains("exit 3"), "{}", explanation.run);
    assert_eq!(explanation.remedy(), ["retry", &job]);
    ends(conductor);
}

fn invalid_command_differs_from_a_refused_one(stage: &Stage) {
    let directory = stage.env.file("handlers");
    fs::create_dir(&directory).unwrap();
    for (name, mode) in [("fine", 0o755), ("resize", 0o775)] {
        fs::write(directory.join(name), "#!/bin/sh\nsleep 600\n").unwrap();
        crate::conduct::set_mode(&directory.join(name), mode);
    }
    crate::conduct::set_mode(&directory, 0o755);
    let post = |name: &str, details: &str| {
        let words = format!("post {name} --details '{details}'");
        stage.env.run(words).posted()
    };
    let wrong = stage.env.load("wrong", &json!({"command": ["./x"]}));
    is(stage, &wrong, "invalid-command", 4);
    let conductor = stage.start(&["--handlers", "handlers", "--name", "night"]);
    let (resize, fine) = (post("resize", "{}"), post("fine", "{}"));
    let explanation = is(stage, &resize, "conductor-refuses", 4);
    explanation.contains("is writable by other users");
    assert_eq!(explanation.remedy(), ["conductors", "night"]);
    is(stage, &wrong, "invalid-command", 4).contains("as an absolute path");
    wait_until("it is run", || explain(stage, &fine).verdict() == "running");
    drop(conductor);
}

fn unlimited_claim_differs_from_an_expiring_one(stage: &Stage) {
    let job = stage.post("byhand", "true");
    stage.env.claim(&job, "ada");
    let explanation = is(stage, &job, "claim-never-expires", 4);
    assert!(explanation.text().contains("ada"), "{}", explanation.run);
    if stage.is_network() && stage.redis_server().is_none() {
        return;
    }
    let extend = ["extend", &job, "--who", "ada", "--expiry"];
    let lasts = |span: &str| {
        stage.env.ok([&extend[..], &[span]].concat());
    };
    lasts("10m");
    is(stage, &job, "running", 0);
    lasts("5s");
    is(stage, &job, "claim-expires-soon", 0);
}

fn dead_owner_loses_the_job_soon(stage: &Stage) {
    let job = stage.post("long", WAITS);
    let conductor = stage.start(&["--name", "night"]);
    stage.logged(1);
    is(stage, &job, "running", 0);
    conductor.kill();
    let explanation = is(stage, &job, "owner-dead", 4);
    assert_eq!(explanation.value["will_run"], true, "{}", explanation.run);
}

fn ended_job_is_found_in_trash_or_history(stage: &Stage) {
    let (given_up, done) = (stage.post("a", "true"), stage.post("b", "true"));
    let trash = format!("trash {given_up} --force --yes --reason 'no use'");
    stage.env.ok(trash);
    let explanation = is(stage, &given_up, "trashed", 4);
    assert!(explanation.text().contains("no use"), "{}", explanation.run);
    stage.env.ok(format!("consume {done} --force --yes"));
    is(stage, &done, "ended", 0);
    let failed = stage.post("c", "true");
    let consume = format!("consume {failed} --failed --force --yes");
    stage.env.ok(consume);
    assert_eq!(is(stage, &failed, "ended", 4).value["will_run"], false);
    is(
        stage,
        "00000000-0000-4000-8000-000000000000",
        "unknown-job",
        3,
    );
}

fn without_a_job_all_problems_are_listed(stage: &Stage) {
    let problems = |words: &[&str]| {
        let run = stage.env.run(words);
        let report = run.value();
        (run.code, report["problems"].clone())
    };
    let nothing = problems(&["explain", "--json"]);
    assert_eq!(nothing, (0, serde_json::json!([])));
    for number in 0..12 {
        stage.post(&format!("job-{number}"), "true");
    }
    let listed = stage.env.json("list --json");
    stage.env.claim(listed[11]["uuid"].as_str().unwrap(), "ada");
    let (code, counted) = problems(&["explain", "--json"]);
    assert_eq!(
        problems(&["doctor", "--only", "jobs", "--json"]),
        (code, counted.clone())
    );
    let counted = counted.as_array().unwrap().iter();
    let mut counts: Vec<_> = counted
        .map(|it| (it["code"].as_str().unwrap(), &it["jobs"]))
        .collect();
    counts.sort_by_key(|(code, _)| *code);
    let (one, eleven) = (1.into(), 11.into());
    assert_eq!(
        counts,
        [("claim-never-expires", &one), ("no-conductor", &eleven)]
    );
}

fn suggested_command_solves_the_problem(stage: &Stage) {
    let job = stage.post("byhand", "true");
    stage.env.claim(&job, "ada");
    let mend = |explanation: &Explanation| {
        let words = explanation.remedy();
        stage.env.ok([&words[..], &["--yes"]].concat());
    };
    mend(&is(stage, &job, "claim-never-expires", 4));
    is(stage, &job, "no-conductor", 4);
    stage.env.trash(&job);
    let explanation = is(stage, &job, "trashed", 4);
    let retry = explanation.remedy();
    stage.env.ok(retry);
    is(stage, &job, "no-conductor", 4);
}
