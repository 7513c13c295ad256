//! `jobboard post`.

use serde_json::json;

use crate::support::env::{Env, wait_until};

#[test]
fn post_prints_only_the_uuid() {
    let env = Env::new();
    let run = env.run("post resize");
    run.posted();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000
    --- stderr
    ");
}

#[test]
fn facts_and_command_become_details() {
    let env = Env::new();
    let words = [
        "post",
        "resize",
        "size=10",
        "fast:=true",
        "--",
        "echo",
        "a b",
    ];
    let uuid = env.jobboard(&words).run().posted();
    assert_eq!(
        env.show(&uuid)["details"],
        json!({"size": "10", "fast": true, "command": ["echo", "a b"]})
    );
}

#[test]
fn details_come_from_a_file_or_stdin() {
    let env = Env::new();
    std::fs::write(env.file("details.json"), r#"{"from": "file"}"#).unwrap();
    let of_file = env.jobboard(&["post", "a", "--details", "@details.json"]);
    let of_stdin = env
        .jobboard(&["post", "a", "--details", "-", "more=1"])
        .stdin(r#"{"from": "stdin"}"#);
    let (of_file, of_stdin) = (of_file.run().posted(), of_stdin.run().posted());
    assert_eq!(env.show(&of_file)["details"], json!({"from": "file"}));
    assert_eq!(
        env.show(&of_stdin)["details"],
        json!({"from": "stdin", "more": "1"})
    );
}

#[test]
fn priority_book_and_uuid_are_stored() {
    let env = Env::new();
    let (uuid, book) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    let (uuid, book) = (uuid.to_string(), format!("flows:{book}"));
    let posted = env.run(format!("post a --priority very_high --uuid {uuid}"));
    assert_eq!(posted.posted(), uuid);
    assert_eq!(env.show(&uuid)["priority"], "VERY_HIGH");
    let with_book = env.jobboard(&["post", "a", "--book", &book]).run().posted();
    assert_eq!(env.show(&with_book)["book"]["name"], "flows");
}

#[test]
fn taken_uuid_is_refused() {
    let env = Env::new();
    let uuid = env.post("resize");
    let run = env.run(format!("post other --uuid {uuid}"));
    assert_eq!(env.names(), ["resize"]);
    insta::assert_snapshot!(run, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot post other on sqlite:ROOT/state/jobboard/board.db: a job with the uuid 00000001-0000-0000-0000-000000000000 already exists on the board
    hint: nothing changed; `jobboard show 00000001-0000-0000-0000-000000000000` shows the existing job
    ");
}

#[test]
fn unique_job_is_posted_once() {
    let env = Env::new();
    let post = || env.jobboard(&["post", "nightly", "--unique", "nightly", "--json"]);
    let (first, second) = (post().run().json(), post().run().json());
    assert_eq!(first["done"], "posted");
    assert_eq!(second["done"], "exists");
    assert_eq!(first["uuid"], second["uuid"]);
    assert_eq!(env.names(), ["nightly"]);
    env.ok("consume @1 --force --yes");
    assert_eq!(post().run().json()["done"], "posted");
}

#[test]
fn dry_run_prints_the_record_and_posts_nothing() {
    let env = Env::new();
    let run = env.run("post resize size:=10 --dry-run -o table");
    assert!(!env.board().exists());
    insta::assert_snapshot!(run, @r#"
    exit code 0
    --- stdout
    {
      "uuid": "00000001-0000-0000-0000-000000000000",
      "name": "resize",
      "priority": "NORMAL",
      "details": {
        "size": 10
      }
    }
    --- stderr
    "#);
}

#[test]
fn lines_are_posted_with_results_in_order() {
    let env = Env::new();
    let lines = concat!(
        "{\"name\":\"a\",\"details\":{\"n\":1},\"priority\":\"high\"}\n",
        "\n",
        "{\"name\":\"b\",\"unique\":\"b\"}\n",
        "{\"name\":\"b\",\"unique\":\"b\"}\n",
        "{\"name\":\"last line without an end\"}",
    );
    let run = env
        .jobboard(&["post", "--from", "-", "-o", "jsonl"])
        .stdin(lines)
        .run();
    run.succeeded();
    let report: Vec<_> = run
        .values()
        .iter()
        .map(|job| (job["line"].clone(), job["done"].clone()))
        .collect();
    assert_eq!(
        report,
        [
            (json!(1), json!("posted")),
            (json!(3), json!("posted")),
            (json!(4), json!("exists")),
            (json!(5), json!("posted")),
        ]
    );
    assert_eq!(env.names(), ["a", "b", "last line without an end"]);
}

#[test]
fn slow_lines_are_posted_as_they_arrive() {
    use std::io::Write;

    let env = Env::new();
    let mut run = env.jobboard(&["post", "--from", "-"]).piped_stdin().spawn();
    let mut stdin = run.stdin();
    for count in 1..=2 {
        stdin.write_all(b"{\"name\":\"a\"}\n").unwrap();
        crate::support::env::wait_until("the answer", || run.stdout().lines().count() == count);
        assert_eq!(env.names().len(), count);
    }
    drop(stdin);
    run.ended().succeeded();
}

#[test]
fn check_first_posts_nothing_if_a_line_is_bad() {
    let env = Env::new();
    let run = env
        .jobboard(&["post", "--from", "-", "--check-first"])
        .stdin("{\"name\":\"a\"}\n[]\n")
        .run();
    run.failed(7);
    assert!(!env.board().exists());
    insta::assert_snapshot!(run, @r#"
    exit code 7
    --- stdout
    --- stderr
    error: standard input, line 2: a line must be a JSON object such as {"name": "resize"}, not an array
    nothing was posted
    error: failed for 1 of 2 lines
    "#);
}

#[test]
fn post_with_wait_ends_with_the_job() {
    let env = Env::new();
    for (verb, code) in [("consume", 0), ("trash", 9)] {
        let waiting = env.jobboard(&["post", "resize", "--wait"]).spawn();
        crate::support::env::wait_until("the post", || !waiting.stdout().is_empty());
        let uuid = waiting.stdout().trim().to_owned();
        env.ok(format!("{verb} {uuid} --force --yes"));
        assert_eq!(waiting.ended().code, code);
    }
}

#[test]
fn post_with_wait_ends_at_the_timeout() {
    let env = Env::new();
    let run = env.run("post resize --wait --timeout 50ms");
    assert_eq!(env.names(), ["resize"]);
    insta::assert_snapshot!(run, @"
    exit code 124
    --- stdout
    00000001-0000-0000-0000-000000000000
    --- stderr
    no conductor is running; resize waits until a worker claims it
    error: cannot wait for 00000001-0000-0000-0000-000000000000 on sqlite:ROOT/state/jobboard/board.db: the job did not end within 50ms
    hint: `jobboard explain 00000001-0000-0000-0000-000000000000` shows its state and the reason
    ");
}

#[test]
fn check_first_finds_duplicate_uuids() {
    let env = Env::new();
    let uuid = "33333333-3333-4333-8333-333333333333";
    let twice = format!("{{\"name\":\"b\",\"uuid\":\"{uuid}\"}}\n").repeat(2);
    let run = env
        .jobboard(&["post", "--from", "-", "--check-first"])
        .stdin(format!("{{\"name\":\"a\"}}\n{twice}"))
        .run();
    assert!(run.failed(7).contains("line 3"), "{run}");
    assert!(run.stderr.contains("nothing was posted"), "{run}");
    assert!(!env.board().exists());
}

#[test]
fn post_with_wait_prints_the_reason_of_a_failure() {
    let env = Env::new();
    let post = [
        "post",
        "resize",
        "--wait",
        "--",
        "sh",
        "-c",
        "echo boom >&2; exit 3",
    ];
    let waiting = env.jobboard(&post).spawn();
    crate::support::env::wait_until("the post", || !waiting.stdout().is_empty());
    assert_eq!(env.run("conduct --drain --max-attempts 1").code, 7);
    let run = waiting.ended();
    assert_eq!(run.code, 9, "{run}");
    for message in ["  boom", "; last failure: exit 3: boom"] {
        assert!(run.stderr.contains(message), "{run}");
    }
}

#[test]
fn listed_job_can_be_posted_again() {
    let env = Env::new();
    let post = [
        "post",
        "resize",
        "size:=40",
        "at:={\"$ext\":1,\"text\":\"2024-02-29T13:05:09.123456\"}",
        "raw:={\"$bytes\":\"AP8=\"}",
        "--priority",
        "HIGH",
        "--book",
        "b:33333333-3333-4333-8333-333333333333",
    ];
    let uuid = env.jobboard(&post).run().posted();
    env.claim("@1", "ada");
    let listed = env.run("list -o jsonl");
    let board = ["--board", "sqlite:other.db"];
    let post = ["post", "--from", "-", "--board", "sqlite:other.db"];
    let run = env.jobboard(&post).stdin(listed.succeeded()).run();
    assert_eq!(run.succeeded(), format!("{uuid}\n"));
    let copy = env
        .jobboard(&[&["show", &uuid, "--json"][..], &board].concat())
        .run()
        .json();
    let original = env.show(&uuid);
    for key in ["uuid", "name", "details", "priority", "book"] {
        assert_eq!(copy[key], original[key], "{key}");
    }
    assert_eq!(copy["state"], "UNCLAIMED");
    // And the listing of the copy can be posted again, byte for byte.
    let again = env
        .jobboard(&[&["list", "-o", "jsonl"][..], &board].concat())
        .run();
    let run = env
        .jobboard(&["post", "--from", "-"])
        .stdin(again.succeeded())
        .run();
    assert!(
        run.failed(7).contains("already exists on the board"),
        "{run}"
    );
}

#[test]
fn command_that_no_conductor_can_run_is_rejected_with_its_correction() {
    let env = Env::new();
    for (line, problem, correction) in [
        (
            "a -- ./report",
            "give ./report as an absolute path",
            "$PWD/PROGRAM",
        ),
        ("a -- ../work/report", "as an absolute path", "$PWD/PROGRAM"),
        ("a -- ", "the command names no program", "`-- PROGRAM"),
        (
            "a max_attempts=2 -- true",
            "must be a positive JSON number",
            "`max_attempts:=3`",
        ),
        (
            "a max_attempts:=0 -- true",
            "must be a positive JSON number",
            "`max_attempts:=3`",
        ),
        ("a timeout:=5 -- true", "must be a duration", "`timeout=5m`"),
        ("a timeout=5y -- true", "must be a duration", "`timeout=5m`"),
        ("a env:=1 -- true", "must be an object of strings", "env:="),
        (
            "a env:={\"PATH\":\"/\"} -- true",
            "the variable `PATH`",
            "PATH",
        ),
        ("a cwd=work -- true", "must be an absolute path", "`cwd="),
        (
            "a command:=[\"./report\"]",
            "as an absolute path",
            "$PWD/PROGRAM",
        ),
    ] {
        let words: Vec<_> = ["post"].into_iter().chain(line.split(' ')).collect();
        let run = env.jobboard(&words).run();
        let answer = run.failed(2);
        assert!(
            answer.contains(problem) && answer.contains(correction),
            "{line}: {run}"
        );
    }
}

#[test]
fn each_way_to_write_details_checks_the_command() {
    let env = Env::new();
    let line = r#"{"name":"a","details":{"command":["./report"]}}"#;
    let run = env.jobboard(&["post", "--from", "-"]).stdin(line).run();
    assert!(run.failed(7).contains("absolute path"), "{run}");
    let uuid = env.jobboard(&["post", "a", "--", "true"]).run().posted();
    let change = ["change", &uuid, "--set", "max_attempts=2"];
    let run = env.jobboard(&change).run();
    assert!(run.failed(2).contains("`max_attempts:=2`"), "{run}");
    // Other machines may have the program, and other workers may read other details.
    for line in [
        "a -- no-such-program",
        "a timeout:=5",
        "a command=any",
        "a max_attempts:=2 -- true",
    ] {
        let words: Vec<_> = ["post"].into_iter().chain(line.split(' ')).collect();
        env.jobboard(&words).run().succeeded();
    }
}

#[test]
fn priority_among_the_details_is_pointed_out() {
    let env = Env::new();
    let run = env.jobboard(&["post", "a", "priority=HIGH"]).run();
    run.succeeded();
    assert!(run.stderr.contains("`--priority HIGH`"), "{run}");
}

#[test]
fn unique_job_with_a_failed_predecessor_names_its_failure() {
    let env = Env::new();
    let post = [
        "post",
        "nightly",
        "--unique",
        "k",
        "max_attempts:=1",
        "--",
        "sh",
        "-c",
        "echo disk full >&2; exit 3",
    ];
    let first = env.jobboard(&post).run();
    first.succeeded();
    assert_eq!(first.stderr, "");
    let _ = env.jobboard(&["conduct", "--drain"]).run();
    let again = env.jobboard(&post).run();
    assert_eq!(again.succeeded(), first.stdout);
    assert!(
        again.stderr.contains("in the trash (exit 3: disk full)"),
        "{again}"
    );
}

#[test]
fn waiting_for_a_posted_job_reports_its_end_and_a_missing_conductor() {
    let env = Env::new();
    let post = [
        "post",
        "a",
        "--wait",
        "--timeout",
        "1ms",
        "--json",
        "--",
        "true",
    ];
    let run = env.jobboard(&post).run();
    assert_eq!(run.code, 124, "{run}");
    assert!(run.stderr.contains("no conductor is running"), "{run}");
    let waiting = env
        .jobboard(&["post", "b", "--wait", "--json", "--", "true"])
        .spawn();
    wait_until("both are done", || {
        let _ = env.jobboard(&["conduct", "--drain"]).run();
        env.jobboard(&["list", "--history", "b", "-o", "uuid"])
            .run()
            .stdout
            .contains('-')
    });
    let run = waiting.ended();
    let lines: Vec<serde_json::Value> = run
        .succeeded()
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["done"], &lines[1]["done"]),
        (&json!("posted"), &json!("complete"))
    );
    assert_eq!(lines[1]["outcome"], "consumed");
}

#[test]
fn command_line_in_one_word_is_refused_with_its_correction() {
    let env = Env::new();
    for (line, answer) in [
        ("df -h", "`jobboard post a -- df -h`"),
        ("df -h | wc", "`jobboard post a -- sh -c LINE`"),
        ("mysql --password=x1", "separate the words"),
    ] {
        let refused = env.jobboard(&["post", "a", "--", line]).run();
        assert!(refused.failed(2).contains(answer), "{refused}");
    }
    assert!(env.names().is_empty());
}

#[test]
fn likely_mistakes_are_noted_with_the_correction() {
    let env = Env::new();
    for (words, note) in [
        (
            &["a", "priority=HIGH"][..],
            "`--priority HIGH` sets the priority",
        ),
        (&["a", "--", "/opt/my tool --all"], "put `sh -c` before it"),
        (
            &["a", "--", "false", "max_attempts:=1"],
            "`max_attempts:=1` is an argument of the command",
        ),
        (
            &["a", "maxattempts:=1", "--", "true"],
            "did you mean `max_attempts`?",
        ),
    ] {
        let posted = env.jobboard(&[&["post"], words].concat()).run();
        assert_eq!(posted.code, 0, "{posted}");
        assert!(posted.stderr.contains(note), "{posted}");
    }
    for words in [
        &["a", "size:=20", "--", "true", "--max=1"][..],
        &["a", "max_attempts:=1", "--", "true"],
    ] {
        let posted = env.jobboard(&[&["post"], words].concat()).run();
        assert_eq!(posted.stderr, "", "{posted}");
    }
}
