//! Bad lines of a bulk post: each is reported with its number, and the others are posted.

use serde_json::Value;

use crate::support::env::{Env, Outcome};

/// Posts lines of which the second is bad, and returns the run and its error.
fn bad_second_line(line: &str) -> (Outcome, Value) {
    let env = Env::new();
    let lines = format!("{{\"name\":\"a\"}}\n{line}\n{{\"name\":\"c\"}}\n");
    let post = |arguments: &[&str]| env.jobboard(arguments).stdin(lines.clone()).run();
    let run = post(&["post", "--from", "-"]);
    assert_eq!(run.code, 7, "{run}");
    assert_eq!(run.stdout.lines().count(), 2, "{run}");
    assert_eq!(env.names(), ["a", "c"]);
    let json = post(&["post", "--from", "-", "-o", "jsonl"]);
    assert_eq!(json.code, 7, "{json}");
    let error = json.stderr.lines().next().unwrap().to_owned();
    (run, serde_json::from_str(&error).unwrap())
}

#[test]
fn bad_line_is_reported_with_its_number_and_the_others_are_posted() {
    for (line, wrong) in [
        ("[1]", "must be a JSON object"),
        ("{\"name\":", "not valid JSON"),
        (
            "{\"nam\":\"b\"}",
            "unknown member `nam`; known members are name, details",
        ),
        ("{\"name\":7}", "`name` must be a string, not a number"),
        ("{\"details\":{}}", "a job needs a name"),
        (
            "{\"name\":\"b\",\"details\":[]}",
            "`details` must be an object, not an array",
        ),
        (
            "{\"name\":\"b\",\"book\":{\"name\":\"c\"}}",
            "`book` needs the string `uuid`",
        ),
        ("{\"name\":\"b\",\"priority\":\"urgent\"}", "VERY_HIGH"),
        ("{\"name\":\"b\",\"uuid\":\"5f3a\"}", "`5f3a` is not a uuid"),
        ("{\"name\":\"a\\u0000b\"}", "control characters"),
        ("{\"name\":\"\"}", "needs a name"),
        ("\u{fffd}", "not valid JSON"),
    ] {
        let (run, error) = bad_second_line(line);
        assert!(run.stderr.contains("line 2"), "{line}: {run}");
        assert!(run.stderr.contains(wrong), "{line}: {run}");
        assert_eq!(error["error"]["code"], 2, "{line}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("line 2"), "{line}: {message}");
    }
}

#[test]
fn oversized_line_is_skipped() {
    let (run, _) = bad_second_line(&format!("{{\"name\":\"{}\"}}", "x".repeat(9 << 20)));
    assert!(run.stderr.contains("limit"), "{run}");
}

#[test]
fn taken_uuid_is_reported_with_its_line() {
    let env = Env::new();
    let uuid = env.post("resize");
    let run = env
        .jobboard(&["post", "--from", "-"])
        .stdin(format!("{{\"name\":\"a\",\"uuid\":\"{uuid}\"}}\n"))
        .run();
    insta::assert_snapshot!(run, @"
    exit code 7
    --- stdout
    --- stderr
    error: line 1: a job with the uuid 00000001-0000-0000-0000-000000000000 already exists on the board
    hint: nothing changed; `jobboard show 00000001-0000-0000-0000-000000000000` shows the existing job
    error: failed for 1 of 1 jobs
    ");
}
