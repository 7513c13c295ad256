//! Bad lines of a bulk post: each is reported with its number, and the others are posted.

use serde_json::Value;

use crate::support::{Env, Outcome, play};

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
fn oversized_line_is_skipped() {
    let (run, _) = bad_second_line(&format!("{{\"name\":\"{}\"}}", "x".repeat(9 << 20)));
    run.warns("limit");
}

#[test]
fn taken_uuid_is_reported_with_its_line() {
    play(
        r#"
        # a taken uuid is reported with its line
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        7 post --from - << {"name":"a","uuid":"5f3a0000-0000-4000-8000-000000000001"}\n => error: line 1: a job with the uuid 5f3a0000-0000-4000-8000-000000000001 already exists on the board\nhint: nothing changed; `jobboard show 5f3a0000-0000-4000-8000-000000000001` shows the existing job\nerror: failed for 1 of 1 jobs

        # a bad line is reported with its number, and the others are posted
        7 post --from - << {"name":"a"}\n[1]\n{"name":"c"} -> 00000001- => line 2 => must be a JSON object
        names a c
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"b","details":{"password":"******** (--reveal shows it)"}}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => masked secrets
        7 post --from - -o jsonl << {"name":"a"}\n[1]\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => must be a JSON object
        7 post --from - -o jsonl << {"name":"a"}\n{"name":\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => not valid JSON
        7 post --from - -o jsonl << {"name":"a"}\n{"nam":"b"}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => unknown member `nam`; known members are name, details
        7 post --from - -o jsonl << {"name":"a"}\n{"name":7}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => `name` must be a string, not a number
        7 post --from - -o jsonl << {"name":"a"}\n{"details":{}}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => a job needs a name
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"b","details":[]}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => `details` must be an object, not an array
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"b","book":{"name":"c"}}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => `book` needs the string `uuid`
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"b","priority":"urgent"}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => VERY_HIGH
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"b","uuid":"5f3a"}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => `5f3a` is not a uuid
        7 post --from - -o jsonl << {"name":"a"}\n{"name":"a\u0000b"}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => control characters
        7 post --from - -o jsonl << {"name":"a"}\n{"name":""}\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => needs a name
        7 post --from - -o jsonl << {"name":"a"}\n�\n{"name":"c"} -> "line":3 => {"error":{"code":2 => line 2 => not valid JSON
        0 list --count --filter name=a == 14
        0 list --count --filter name=c == 14
        0 list --count == 28

        # a JSON array is refused as a whole
        0 post z
        2 post --from - -o jsonl << [\n{"name":"a"},\n{"name":"b"}\n] => the input is a JSON array; use `-o jsonl`
        2 load - -o jsonl << \n [{"name":"a"},\n{"name":"b"}\n] => the input is a JSON array; use `-o jsonl`
        names z
        "#,
    );
}
