//! `jobboard show`.

use serde_json::json;

use crate::support::{Env, play};

/// Posts a job, runs it once, and leaves it in the trash.
fn fail(env: &Env, script: &str) {
    let post = format!("post resize -- sh -c '{script}'");
    env.ok(post);
    assert_eq!(env.run("conduct --drain --max-attempts 1").code, 7);
}

#[test]
fn output_of_failed_attempts_is_printed_with_secrets_masked() {
    let env = Env::new();
    let script = "echo step 1; echo password=hunter2 >&2; echo disk full >&2; exit 3";
    fail(&env, script);
    let logs = |words: &[&str]| env.run([&["logs", "@1"], words].concat());
    let text = logs(&[]);
    let lines: Vec<_> = text.succeeded().lines().collect();
    assert!(
        lines[0].starts_with("resize  attempt 1  exit 3: disk full  "),
        "{text}"
    );
    let expected = [
        "  stdout:",
        "    step 1",
        "  stderr:",
        "    password=********",
        "    disk full",
    ];
    assert_eq!(lines[1..], expected);
    assert!(logs(&["--reveal"]).succeeded().contains("password=hunter2"));
    let failures = logs(&["--json"]).json();
    assert_eq!(failures, env.show("@1")["failures"]);
    let fields = logs(&["-o", "tsv"]);
    let fields: Vec<_> = fields.succeeded().trim_end().split('\t').collect();
    assert_eq!(fields[1..3], ["1", "exit 3: disk full"]);
    assert_eq!(
        fields[5..],
        ["step 1\\n", "password=********\\ndisk full\\n"]
    );
    env.post("other");
    let none = env.run("logs @2");
    assert_eq!(none.succeeded(), "");
    none.warns("other: no failed attempt");
}

#[test]
fn secrets_are_shown_only_on_request() {
    let env = Env::new();
    let details = json!({"user": "ada", "tls": {"private_key": "hunter2"}, "db_password": "hunter2",
        "chain": "-----BEGIN CERTIFICATE-----\nhunter2", "list": [{"api_token": "hunter2"}]});
    let details = details.to_string();
    let posted = env.run(format!("post resize --details '{details}'"));
    posted.succeeded();
    let shown = |more: &[&str]| {
        let arguments = [&["show", "@1", "-o", "table"], more].concat();
        let run = env.run(arguments);
        run.succeeded().matches("hunter2").count()
    };
    assert_eq!(shown(&[]), 0);
    assert_eq!(shown(&["--reveal"]), 4);
    assert_eq!(env.show("@1")["details"]["db_password"], "hunter2");
}

#[test]
fn references_that_show_no_job() {
    play(
        r#"
        # references that show no job
        0 post job-0
        2 show '' => is not a job reference
        2 explain '' => is not a job reference
        3 show @99 => cannot show @99 on sqlite:ROOT/state/jobboard/board.db: the job does not exist\nhint: `jobboard list` shows the jobs on the board; add `--trash` or `--history` for jobs that have left it

        # a trashed job is found
        0 post resize
        0 trash @1 --force --yes
        0 show @1 --json -> "state":"TRASHED" !> "trashed_on":null

        # the text has all facts, even in a pipe
        0 post resize lb=5f3a --book flows:00000000-0000-4000-8000-000000000001
        0 claim @1 --who ada
        0 show @1 == resize  CLAIMED\nuuid          00000001-0000-0000-0000-000000000000\npriority      NORMAL\nsequence      1\ncreated       TIME\nmodified      TIME\nowner         ada\nclaimed       TIME\nexpires       never\nfence         1\nbook          flows 00000002-0000-0000-0000-000000000000\ndetails\n  {\n    "lb": "5f3a"\n  }

        # a failure reads the same in all listings
        0 post resize -- sh -c 'echo disk full >&2; exit 3'
        7 conduct --drain --max-attempts 1
        0 list --trash -> exit 3: disk full !> ended with code
        0 list --trash -o table --filter reason~disk -> exit 3: disk full !> ended with code
        0 list --failed -> exit 3: disk full !> ended with code
        0 show @1 -> exit 3: disk full !> ended with code
        4 explain @1 -> exit 3: disk full !> ended with code
        0 report -> exit 3: disk full !> ended with code
        0 list --failed --count == 1
        9 wait @1 -> trashed => last failure: exit 3: disk full
        "#,
    );
}

#[test]
fn each_job_is_one_json_line() {
    let env = Env::new();
    env.post_many(2);
    assert_eq!(env.show("@1")["name"], "job-0");
    let both = env.run("show @2 @1 --json").values();
    let names: Vec<_> = both.iter().map(|job| &job["name"]).collect();
    assert_eq!(names, ["job-1", "job-0"]);
}
