//! Jobs that fail, postpone, time out, or kill their conductor.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use serde_json::json;

use super::{Stage, on_every_board, on_one_board};
use crate::support::members;

on_every_board!(exhausted_job_is_not_retried);

on_one_board!(
    last_output_is_recorded_with_secrets_masked,
    timeout_counts_as_a_failure,
    settings_of_a_job_are_limited,
    unstartable_command_counts_as_a_failure,
    permanently_failing_job_is_trashed_alone,
    postponing_job_is_retried_until_ready,
    failure_can_be_final,
    job_postponed_by_another_conductor_is_waited_for,
);

/// Retries failed jobs immediately.
const SOON: [&str; 4] = ["--retry-delay", "10ms", "--retry-max", "40ms"];

fn permanently_failing_job_is_trashed_alone(stage: &Stage) {
    let script = "echo tried >> log; echo so far; head -c 5000 /dev/zero | tr '\\0' x >&2; echo at last >&2; exit 4";
    let poison = stage.post("poison", script);
    stage.post("good", "echo good >> log");
    let conduct = [&["--drain", "--max-attempts", "3"], &SOON[..]].concat();
    stage.conduct(&conduct).run().has_code(7);
    let mut log = stage.log();
    log.sort();
    assert_eq!(log, ["good", "tried", "tried", "tried"]);
    let job = stage.env.show(&poison);
    assert_eq!(job["state"], "TRASHED");
    assert_eq!(job["attempts"], 3);
    let failure = &job["last_failure"];
    assert_eq!(failure["exit_code"], 4);
    let stderr = failure["stderr"].as_str().unwrap();
    assert!(stderr.ends_with("xx\nat last\n") || stderr.ends_with("xat last\n"));
    assert_eq!(stderr.len(), 2048);
    let failures = job["failures"].as_array().unwrap();
    let outputs: Vec<_> = failures.iter().map(|it| it["stdout"].as_str()).collect();
    assert_eq!(outputs, [Some("so far\n"); 3]);
}

fn last_output_is_recorded_with_secrets_masked(stage: &Stage) {
    let script =
        "echo token=hunter$((1+1)) of $JOBBOARD_ATTEMPT; printf 'a\\033[2Jb\\n' >&2; exit 3";
    let job = stage.post("resize", script);
    let directory = stage.env.file("kept");
    std::fs::create_dir(&directory).unwrap();
    let directory = directory.to_str().unwrap();
    let log = |words: &[&str]| {
        let words = [&["--drain", "--output", directory], words, &SOON[..]].concat();
        let run = stage.conduct(&words).run();
        assert!(!run.stderr.contains("hunter"), "{run:?}");
        run.stderr
    };
    let text = log(&["--max-attempts", "2"]);
    let expected = r#"stdout="token=******** of 1" stderr="a\u001b[2Jb""#;
    assert!(text.contains(expected), "{text}");
    let shown = stage.env.run(format!("show {job} -o table"));
    let shown = shown.succeeded();
    for attempt in 1..=2 {
        let expected = format!("  stdout:\n    token=******** of {attempt}\n  stderr:\n    a");
        assert!(shown.contains(&expected), "{shown}");
    }
    let waited = stage.env.run(format!("wait {job}"));
    let expected = "on stdout:\n  token=******** of 2\nlast lines of resize on stderr:\n  a";
    waited.exits(9, expected);
    for expected in [text.as_str(), shown, &waited.stderr] {
        assert!(!expected.contains('\u{1b}'), "{expected:?}");
    }
    let failure = &stage.env.show(&job)["last_failure"];
    assert_eq!(failure["stdout"], "token=hunter2 of 2\n");
    stage.post("again", script);
    let json = log(&["--log", "json", "--on-failure", "consume"]);
    assert!(json.contains(r#""stdout":"token=******** of 1""#), "{json}");
}

fn postponing_job_is_retried_until_ready(stage: &Stage) {
    let script = "echo $JOBBOARD_ATTEMPT >> log; [ $(wc -l < log) -ge 4 ] || exit 75";
    stage.post("later", script);
    let conduct = [&["--drain", "--max-attempts", "1"], &SOON[..]].concat();
    let run = stage.conduct(&conduct).run();
    run.succeeded();
    assert_eq!(stage.log(), ["1"; 4]);
    assert_eq!(run.stderr.matches("job_postponed").count(), 3, "{run:?}");
}

fn timeout_counts_as_a_failure(stage: &Stage) {
    let own = json!({"command": ["sleep", "600"], "timeout": "50ms", "max_attempts": 1});
    let own = own.to_string();
    let post = ["post", "own", "--details", &own];
    let own = stage.env.run(post).posted();
    let other = stage.post("other", "sleep 600");
    let conduct = ["--drain", "--job-timeout", "100ms", "--on-failure", "trash"];
    stage.conduct(&conduct).run().has_code(7);
    for (job, limit) in [(own, "50ms"), (other, "100ms")] {
        let reason = stage.env.show(&job)["last_failure"]["reason"].clone();
        assert_eq!(reason, format!("the command took longer than {limit}"));
    }
}

fn settings_of_a_job_are_limited(stage: &Stage) {
    let own = json!({"command": ["sleep", "600"], "timeout": "1h", "max_attempts": 1000});
    let own = own.to_string();
    let post = ["post", "own", "--details", &own];
    let own = stage.env.run(post).posted();
    // A job without limits gets the defaults, capped by the maximum.
    let other = stage.post("other", "sleep 600");
    let ends = ["--job-timeout-max", "50ms", "--max-attempts-max", "2"];
    let conduct = [&["--drain"], &ends[..], &SOON].concat();
    stage.conduct(&conduct).run().has_code(7);
    for job in [own, other] {
        let job = stage.env.show(&job);
        assert_eq!(members(&job, "state attempts"), "TRASHED 2");
        let reason = "the command took longer than 50ms";
        assert_eq!(job["last_failure"]["reason"], reason);
    }
}

fn unstartable_command_counts_as_a_failure(stage: &Stage) {
    let absent = stage.env.run("post a -- no-such-program").posted();
    let nowhere = json!({"command": ["true"], "cwd": "/no/such/folder"}).to_string();
    let nowhere = ["post", "b", "--details", &nowhere];
    let nowhere = stage.env.run(nowhere).posted();
    let script = stage.env.file("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let uninterpreted = ["post", "c", "--", script.to_str().unwrap()];
    let uninterpreted = stage.env.run(uninterpreted).posted();
    let run = stage.conduct(&["--drain", "--max-attempts", "1"]).run();
    assert_eq!(run.code, 7, "{run:?}");
    let reason = |job: &str| stage.env.show(job)["last_failure"]["reason"].to_string();
    assert!(reason(&absent).contains("program no-such-program not found"));
    assert!(reason(&nowhere).contains("the directory /no/such/folder does not exist"));
    assert!(reason(&uninterpreted).contains("its interpreter does not exist"));
}

fn failure_can_be_final(stage: &Stage) {
    stage.post("a", "exit 1");
    let run = stage.conduct(&["--drain", "--on-failure", "consume"]).run();
    assert_eq!(run.code, 7, "{run:?}");
    assert!(run.stderr.contains(" failed=1 "), "{run:?}");
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    let trashed = stage.post("b", "exit 1");
    let run = stage.conduct(&["--drain", "--on-failure", "trash"]).run();
    assert_eq!(run.code, 7, "{run:?}");
    assert_eq!(stage.env.state(&trashed), "TRASHED");
    // A job waiting for a retry is no success either.
    stage.post("c", "exit 1");
    stage.conduct(&["--max-jobs", "1"]).run().has_code(7);
}

fn exhausted_job_is_not_retried(stage: &Stage) {
    // It kills its conductor, so that the failure is not reported.
    let poison = stage.post("poison", "echo tried >> log; kill -9 $PPID");
    stage.post("good", "echo good >> log");
    for _ in 0..2 {
        let lease = ["--drain", "--max-attempts", "2", "--lease", "1s"];
        assert_eq!(stage.conduct(&lease).run().code, 137);
    }
    let conduct = ["--drain", "--max-attempts", "2", "--lease", "1s"];
    stage.conduct(&conduct).run().has_code(7);
    let mut log = stage.log();
    log.sort();
    assert_eq!(log, ["good", "tried", "tried"]);
    let job = stage.env.show(&poison);
    assert_eq!(job["state"], "TRASHED");
    // The claim that trashed it was no attempt.
    assert_eq!(job["attempts"], 2);
    let reason = "no failure is recorded: the conductor died, or its claim expired or was released";
    assert_eq!(job["last_failure"]["reason"], reason);
}

fn job_postponed_by_another_conductor_is_waited_for(stage: &Stage) {
    let script = "echo $JOBBOARD_CONDUCTOR >> log; [ $(wc -l < log) -ge 2 ]";
    stage.post("a", script);
    let first = ["--max-jobs", "1", "--retry-delay", "1s"];
    assert_eq!(stage.conduct(&first).run().code, 7);
    stage.conduct(&["--drain"]).run().succeeded();
    let log = stage.log();
    assert_eq!(log.len(), 2);
    assert_ne!(log[0], log[1]);
}
