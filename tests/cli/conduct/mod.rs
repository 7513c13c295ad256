//! `jobboard conduct` on every kind of board.

mod ending;
mod failing;
mod metrics;
mod output;
mod policy;
mod replaced;
mod service;
mod session;
mod signals;
mod stage;
mod status_reports;
mod traces;
mod unit;
mod unsettled;

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{column, json_lines, members};

pub(crate) use self::stage::{Kind, Stage, WAITS, on_every_board, on_one_board, set_mode};

on_every_board!(
    existing_jobs_are_run_and_consumed,
    later_job_is_run,
    conductor_is_registered_under_a_unique_name,
    several_conductors_share_the_work,
);

on_one_board!(
    parallel_jobs_are_limited_to_the_slots,
    each_skip_reason_is_reported_and_counted,
    later_skips_are_counted,
    max_jobs_limits_the_number_of_jobs,
    command_gets_the_settings_of_its_job_and_no_secret,
    json_log_reports_every_event,
    drain_of_an_empty_board_ends_immediately,
    most_urgent_job_runs_first,
    filter_chooses_the_jobs,
    flows_of_other_conductors_are_skipped_and_reported_once,
    idle_conductor_can_exit,
);

fn existing_jobs_are_run_and_consumed(stage: &Stage) {
    let jobs: Vec<_> = (0..20)
        .map(|number| stage.post(&format!("job-{number}"), "echo $JOBBOARD_JOB >> log"))
        .collect();
    let run = stage.conduct(&["--drain", "-j4"]).run();
    run.succeeded();
    let mut ran = stage.log();
    ran.sort();
    let mut posted = jobs;
    posted.sort();
    assert_eq!(ran, posted);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    let summary = run.stderr.lines().last().unwrap();
    assert!(
        summary.ends_with("summary ran=20 consumed=20 abandoned=0 trashed=0 lost=0"),
        "{summary}"
    );
}

fn drain_of_an_empty_board_ends_immediately(stage: &Stage) {
    stage.conduct(&["--drain"]).run().exits(0, "ran=0");
    stage.post("a", "true");
    stage.conduct(&["--drain", "-q"]).run().succeeded();
    let again = stage.conduct(&["--drain", "-q"]).run();
    assert_eq!((again.code, again.stderr.as_str()), (0, ""));
}

fn later_job_is_run(stage: &Stage) {
    let conductor = stage.start(&[]);
    for number in 0..3 {
        stage.post("later", "echo $JOBBOARD_JOB >> log");
        stage.logged(number + 1);
    }
    conductor.stops();
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

fn parallel_jobs_are_limited_to_the_slots(stage: &Stage) {
    // Each job waits for three concurrent ones, and must never see a fourth.
    let script = "mkdir here.$JOBBOARD_FENCE; for i in $(seq 500); do \
                  [ $(ls -d here.* | wc -l) -ge 3 ] && break; sleep 0.01; done; \
                  ls -d here.* | wc -l >> log; sleep 0.1; touch done.$JOBBOARD_FENCE; \
                  while [ $(ls -d done.* | wc -l) -lt 3 ]; do sleep 0.01; done; \
                  rmdir here.$JOBBOARD_FENCE";
    for _ in 0..3 {
        stage.post("together", script);
    }
    stage.conduct(&["--drain", "-j3"]).run().succeeded();
    assert_eq!(stage.log(), ["3", "3", "3"]);
    let script = "mkdir alone && sleep 0.05 && rmdir alone && echo alone >> log";
    for _ in 0..4 {
        stage.post("alone", script);
    }
    stage.conduct(&["--drain"]).run().succeeded();
    assert_eq!(stage.log()[3..], ["alone"; 4]);
}

fn most_urgent_job_runs_first(stage: &Stage) {
    let echo = "echo $JOBBOARD_NAME >> log";
    stage.post("old", echo);
    stage.post("new", echo);
    stage.post_with("urgent", echo, &["--priority", "HIGH"]);
    stage.conduct(&["--drain"]).run().succeeded();
    assert_eq!(stage.log(), ["urgent", "old", "new"]);
}

fn flows_of_other_conductors_are_skipped_and_reported_once(stage: &Stage) {
    for name in ["flow", "other-flow"] {
        let flow = "flow_uuid=6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        stage.env.ok(format!("post {name} {flow}"));
    }
    let before = stage.env.everything();
    stage.post("ours", "echo ran >> log");
    let run = stage.conduct(&["--drain"]).run();
    run.succeeded();
    assert_eq!(run.stderr.matches("skipped jobs=2").count(), 1, "{run:?}");
    assert_eq!(stage.log(), ["ran"]);
    assert_eq!(stage.env.everything(), before);
}

fn each_skip_reason_is_reported_and_counted(stage: &Stage) {
    stage.env.load("flow", &json!({"flow_uuid": "x"}));
    stage.conduct(&["--drain"]).run().succeeded();
    stage.env.load("lone", &json!({"command": "true"}));
    stage.env.load("lone", &json!({"command": "false"}));
    stage
        .env
        .load("slow", &json!({"command": ["true"], "timeout": 5}));
    let path = json!({"command": ["true"], "env": {"PATH": "/"}});
    stage.env.load("path", &path);
    for words in [&["--drain"][..], &["--max-jobs", "1"]] {
        stage.post("good", "true");
        let conduct = [words, &["--log", "json"]].concat();
        let run = stage.conduct(&conduct).run();
        assert_eq!(run.code, 7, "{run:?}");
        let notes: Vec<serde_json::Value> = run
            .stderr
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut skipped: Vec<_> = notes
            .iter()
            .filter(|note| note["event"] == "skipped")
            .map(|note| (note["reason"].as_str().unwrap(), &note["jobs"]))
            .collect();
        skipped.sort_by_key(|(reason, _)| *reason);
        let expected = [
            ("the job has no command", 1),
            (
                "the job sets the variable `PATH`, which is not allowed here",
                1,
            ),
            (
                "the job's `command` must be an array of strings, starting with the program",
                2,
            ),
            ("the job's `timeout` must be a duration such as 5m", 1),
        ];
        assert_eq!(skipped.len(), expected.len(), "{skipped:?}");
        let summary = notes.last().unwrap();
        for ((reason, jobs), expected) in skipped.into_iter().zip(expected) {
            assert_eq!((reason, jobs), (expected.0, &json!(expected.1)));
            assert_eq!(summary["reasons"][reason], expected.1, "{summary}");
        }
        assert_eq!(members(summary, "skipped consumed"), "5 1");
    }
}

fn later_skips_are_counted(stage: &Stage) {
    stage.env.load("lone", &json!({"command": "true"}));
    let conductor = stage.start(&["--max-jobs", "1"]);
    stage.says(&conductor, "array of strings");
    for timeout in [5, 6] {
        let slow = json!({"command": ["true"], "timeout": timeout});
        stage.env.load("slow", &slow);
    }
    stage.says(&conductor, "a duration such as 5m");
    stage.post_with("good", "true", &["--priority", "VERY_LOW"]);
    let run = conductor.ended();
    assert_eq!(run.code, 7, "{run:?}");
    assert_eq!(run.stderr.matches("=skipped jobs=").count(), 2);
    run.warns(" skipped=3 reasons=\"{");
}

fn filter_chooses_the_jobs(stage: &Stage) {
    stage.post("mine", "echo $JOBBOARD_NAME >> log");
    stage.post("yours", "echo $JOBBOARD_NAME >> log");
    let filter = ["--filter", "name=m*", "--drain"];
    stage.conduct(&filter).run().succeeded();
    assert_eq!(stage.log(), ["mine"]);
    assert_eq!(stage.env.names(), ["yours"]);
}

fn max_jobs_limits_the_number_of_jobs(stage: &Stage) {
    for _ in 0..5 {
        stage.post("a", "echo ran >> log");
    }
    stage.conduct(&["--max-jobs", "2", "-j4"]).run().succeeded();
    assert_eq!(stage.log().len(), 2);
    assert_eq!(stage.env.run("list --unclaimed --count").succeeded(), "3\n");
}

fn idle_conductor_can_exit(stage: &Stage) {
    stage.post("a", "sleep 0.3; echo ran >> log");
    stage.conduct(&["--idle-exit", "3s"]).run().succeeded();
    assert_eq!(stage.log(), ["ran"]);
}

fn command_gets_the_settings_of_its_job_and_no_secret(stage: &Stage) {
    let details = json!({
        "command": ["sh", "-c", "cat > seen; echo \"$GIVEN:${JOBBOARD_PASSWORD-none}:$PWD\" >> seen; \
                     env | sed -n 's/^JOBBOARD_\\([A-Z_]*\\)=.*/\\1/p' | sort | tr '\\n' ' ' >> seen"],
        "env": {"GIVEN": "here"},
        "cwd": stage.env.file(""),
        "stdin": "input\n",
    });
    let details = details.to_string();
    let post = ["post", "a", "--details", &details];
    stage.env.ok(post);
    let allow = if stage.is_network() {
        &["--allow-env", "GIVEN"][..]
    } else {
        &[]
    };
    if let Some(server) = stage.redis_server() {
        server.run(&["CONFIG", "SET", "requirepass", "hunter2"]);
    }
    let conduct = stage.conduct(&[&["--drain"], allow].concat());
    let run = conduct.env("JOBBOARD_PASSWORD", "hunter2").run();
    run.succeeded();
    let seen = std::fs::read_to_string(stage.env.file("seen")).unwrap();
    let directory = stage.env.file("").display().to_string();
    let directory = directory.trim_end_matches('/');
    let expected = format!(
        "input\nhere:none:{directory}\nATTEMPT CONDUCTOR DETAILS_FILE FENCE GUARD JOB NAME "
    );
    assert_eq!(seen, expected);
}

fn json_log_reports_every_event(stage: &Stage) {
    let uuid = stage.post("a", "echo disk full >&2; exit 3");
    let conduct = ["--drain", "--max-attempts", "1", "--log", "json"];
    let run = stage.conduct(&conduct).run();
    assert_eq!(run.code, 7, "{run:?}");
    let notes = run.stderr.lines().filter(|line| line.starts_with('{'));
    let notes = json_lines(&notes.collect::<Vec<_>>().join("\n"));
    let events = column(&notes, "event").join(" ");
    assert_eq!(
        events,
        "conducting running_start running_end job_trashed summary"
    );
    assert_eq!(notes[1]["uuid"], json!(uuid));
    assert_eq!(notes[1]["attempt"], 1);
    assert_eq!(notes[2]["failure"], "exit 3: disk full");
    assert_eq!(notes[3]["reason"], "exit 3: disk full");
    let summary = ["trashed", "failed", "failed_jobs"].map(|key| notes[4][key].clone());
    assert_eq!(json!(summary), json!([1, 1, [format!("a {}", &uuid[..8])]]));
    let next = notes[4]["next"].as_str().unwrap();
    assert!(next.ends_with(&format!(" explain {uuid}")), "{next}");
}

fn conductor_is_registered_under_a_unique_name(stage: &Stage) {
    let first = stage.start(&["--name", "w1"]);
    let listed = stage.env.json("conductors --json");
    assert_eq!(listed[0]["name"], "w1");
    assert_eq!(listed[0]["pid"], first.pid());
    let second = stage.conduct(&["--name", "w1", "--drain"]).spawn();
    stage.says(&second, "name_taken");
    first.stops();
    second.ended().succeeded();
    let listed = stage.env.json("conductors --json");
    assert_eq!(listed, json!([]));
}

fn several_conductors_share_the_work(stage: &Stage) {
    let jobs = 40;
    for _ in 0..jobs {
        stage.post(
            "a",
            "echo $JOBBOARD_CONDUCTOR $JOBBOARD_JOB >> log; sleep 0.02",
        );
    }
    let conductors: Vec<_> = (0..3)
        .map(|_| stage.conduct(&["--drain", "-j2"]).spawn())
        .collect();
    for conductor in conductors {
        conductor.ended().succeeded();
    }
    let (mut by_job, mut by_conductor) = (BTreeMap::new(), BTreeMap::new());
    for line in stage.log() {
        let (conductor, job) = line.split_once(' ').unwrap();
        *by_job.entry(job.to_owned()).or_insert(0) += 1;
        *by_conductor.entry(conductor.to_owned()).or_insert(0) += 1;
    }
    assert_eq!(by_job.len(), jobs);
    assert!(by_job.values().all(|count| *count == 1), "{by_job:?}");
    assert_eq!(by_conductor.len(), 3, "{by_conductor:?}");
}
