//! `jobboard show`.

use serde_json::json;

use crate::support::env::Env;

#[test]
fn text_has_all_facts_even_in_a_pipe() {
    let env = Env::new();
    let book = "flows:00000000-0000-4000-8000-000000000001";
    let posted = env
        .jobboard(&["post", "resize", "lb=5f3a", "--book", book])
        .run();
    env.claim(&posted.posted(), "ada");
    let run = env.run("show @1");
    insta::assert_snapshot!(run, @r#"
    exit code 0
    --- stdout
    resize  CLAIMED
    uuid          00000001-0000-0000-0000-000000000000
    priority      NORMAL
    sequence      1
    created       TIME
    modified      TIME
    owner         ada
    claimed       TIME
    expires       never
    fence         1
    book          flows 00000002-0000-0000-0000-000000000000
    details
      {
        "lb": "5f3a"
      }
    --- stderr
    "#);
}

#[test]
fn trashed_job_is_found() {
    let env = Env::new();
    env.post("resize");
    env.trash("@1");
    assert_eq!(env.state("@1"), "TRASHED");
    assert!(env.show("@1")["trashed_on"].is_string());
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

/// Posts a job, runs it once, and leaves it in the trash.
fn fail(env: &Env, script: &str) {
    let post = ["post", "resize", "--", "sh", "-c", script];
    env.jobboard(&post).run().succeeded();
    assert_eq!(env.run("conduct --drain --max-attempts 1").code, 7);
}

#[test]
fn output_of_failed_attempts_is_printed_with_secrets_masked() {
    let env = Env::new();
    let script = "echo step 1; echo password=hunter2 >&2; echo disk full >&2; exit 3";
    fail(&env, script);
    let logs = |words: &[&str]| env.jobboard(&[&["logs", "@1"], words].concat()).run();
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
    assert!(none.stderr.contains("other: no failed attempt"), "{none}");
}

#[test]
fn empty_reference_is_a_usage_error() {
    let env = Env::new();
    env.post("resize");
    for command in ["show", "explain"] {
        let run = env.jobboard(&[command, ""]).run();
        assert!(run.failed(2).contains("is not a job reference"), "{run}");
    }
}

#[test]
fn failure_reads_the_same_in_all_listings() {
    let env = Env::new();
    let script = "echo disk full >&2; exit 3";
    fail(&env, script);
    for words in [
        &["list", "--trash"][..],
        &["list", "--trash", "-o", "table", "--filter", "reason~disk"],
        &["list", "--failed"],
        &["show", "@1"],
        &["explain", "@1"],
        &["report"],
    ] {
        let run = env.jobboard(words).run();
        assert!(run.stdout.contains("exit 3: disk full"), "{run}");
        assert!(!run.stdout.contains("ended with code"), "{run}");
    }
    assert_eq!(env.ok("list --failed --count"), "1\n");
    let waited = env.run("wait @1");
    assert!(
        waited.stderr.contains("last failure: exit 3: disk full"),
        "{waited}"
    );
}

#[test]
fn secrets_are_shown_only_on_request() {
    let env = Env::new();
    let details = json!({"user": "ada", "tls": {"private_key": "hunter2"}, "db_password": "hunter2",
        "chain": "-----BEGIN CERTIFICATE-----\nhunter2", "list": [{"api_token": "hunter2"}]});
    let details = details.to_string();
    let posted = env
        .jobboard(&["post", "resize", "--details", &details])
        .run();
    posted.succeeded();
    let shown = |more: &[&str]| {
        let arguments = [&["show", "@1", "-o", "table"], more].concat();
        let run = env.jobboard(&arguments).run();
        run.succeeded().matches("hunter2").count()
    };
    assert_eq!(shown(&[]), 0);
    assert_eq!(shown(&["--reveal"]), 4);
    assert_eq!(env.show("@1")["details"]["db_password"], "hunter2");
}

#[test]
fn missing_job_is_not_found() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("show @99");
    insta::assert_snapshot!(run, @"
    exit code 3
    --- stdout
    --- stderr
    error: cannot show @99 on sqlite:ROOT/state/jobboard/board.db: the job does not exist
    hint: `jobboard list` shows the jobs on the board; add `--trash` or `--history` for jobs that have left it
    ");
}
