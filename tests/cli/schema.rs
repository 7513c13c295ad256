//! `jobboard schema`; every test that runs the program compares its output with the schemas.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::support::{
    Env, python,
    schema::{SCHEMAS, mismatch},
};

#[test]
fn schemas_are_listed_and_printed_by_name_and_by_command() {
    let env = Env::new();
    let names = env.run("schema --json").each("name");
    assert!(names.iter().eq(SCHEMAS.keys()), "{names:?}");
    let event = env.json("schema event");
    assert_eq!(event, SCHEMAS["event"]);
    let job = env.json("schema job");
    assert_eq!(job["$defs"]["common"], SCHEMAS["common"]);
    let list = env.json("schema list");
    let kinds = json!([{ "$ref": "urn:jobboard:count" }, { "$ref": "urn:jobboard:job" }]);
    assert_eq!(
        list["anyOf"],
        json!([{ "anyOf": kinds }, { "type": "array", "items": { "anyOf": kinds } }])
    );
    assert_eq!(list["$defs"]["job"], SCHEMAS["job"]);
    // These schemas have the name of a command that also prints arrays.
    for name in ["pause", "schema"] {
        let listed = env.json([name, "--json"]);
        assert!(listed.is_array());
        assert_eq!(mismatch(name, &listed), Ok(()));
    }
    let table = env.jobboard(&["schema"]).at_terminal(100).run();
    table.prints("An event on a board");
    let unknown = env.run("schema jop");
    unknown.fails(2, "`jobboard schema` lists the schemas");
}

/// Returns outputs, each with its schema.
fn printed(env: &Env) -> Vec<(&'static str, Value)> {
    let mut printed = Vec::new();
    let mut print = |schema, words: &[&str]| {
        let run = env.run(words);
        for value in run.values() {
            match value {
                Value::Array(values) => printed.extend(values.into_iter().map(|it| (schema, it))),
                value => printed.push((schema, value)),
            }
        }
    };
    print("posted", &["post", "resize", "vm=1", "--json"]);
    print("draft", &["post", "resize", "--dry-run", "--json"]);
    assert_eq!(env.run("run doomed --on-failure trash -- false").code, 1);
    print("result", &["claim", "--next", "--json"]);
    print("owner", &["owner", "@1", "--json"]);
    print("pause", &["pause", "night-*", "--json"]);
    print("job", &["list", "--json"]);
    print("job", &["list", "--trash", "--json"]);
    print("failure", &["show", "@2", "--output", "--json"]);
    print("count", &["list", "--count", "--json"]);
    print("count", &["list", "--count", "--by", "name", "--json"]);
    print("explanation", &["explain", "@1", "--json"]);
    print("diagnosis", &["doctor", "--json"]);
    print("diagnosis", &["doctor", "--list", "--json"]);
    print("selftest", &["selftest", "--dry-run", "--json"]);
    print("selftest", &["selftest", "--read-only", "--json"]);
    print("selftest", &["selftest", "--yes", "--for", "2s", "--json"]);
    print("status", &["status", "--json"]);
    print("report", &["report", "--json"]);
    print("check", &["check", "--json"]);
    print(
        "check",
        &["check", "--board", "sqlite:no/such.db", "--json"],
    );
    print("ping", &["ping", "--json"]);
    print("setting", &["config", "--json"]);
    print("dump", &["dump", "-"]);
    print("file", &["dump", "all.dump", "--json"]);
    print("text", &["completions", "bash", "--json"]);
    print("schema", &["schema", "--json"]);
    print("help", &["help", "claim", "--json"]);
    print("help", &["help", "boards", "--json"]);
    print("help", &["help", "options", "--json"]);
    print("pause", &["resume", "night-*", "--json"]);
    let failed = env.run("show no-such --json");
    printed.push(("error", serde_json::from_str(&failed.stderr).unwrap()));
    printed
}

/// Returns a value and variants with a missing or mistyped member.
fn altered(value: &Value) -> Vec<Value> {
    let mut all = vec![value.clone()];
    for name in value
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
    {
        let mut without = value.clone();
        without.as_object_mut().unwrap().shift_remove(name);
        let mut other = value.clone();
        other[name] = json!([{ "another": "type" }]);
        all.extend([without, other]);
    }
    all
}

#[test]
fn missing_or_mistyped_member_is_detected_here_and_in_python() {
    need!(mut python = python());
    let env = Env::new();
    let cases: Vec<_> = printed(&env)
        .into_iter()
        .map(|(schema, value)| (schema, altered(&value)))
        .collect();
    let mut judge = python
        .args([
            "-c",
            "import json, sys
from jsonschema import Draft202012Validator as Validator
for line in sys.stdin:
    schema, values = json.loads(line)
    Validator.check_schema(schema)
    judge = Validator(schema)
    print(json.dumps([judge.is_valid(value) for value in values]))",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = judge.stdin.take().unwrap();
    let lines: String = cases
        .iter()
        .map(|(schema, values)| {
            let schema = env.json(["schema", schema]);
            format!("{}\n", json!([schema, values]))
        })
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = judge.wait_with_output().unwrap();
    writer.join().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let verdicts: Vec<Vec<bool>> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(verdicts.len(), cases.len());
    let mut refused = 0;
    for ((schema, values), verdicts) in cases.iter().zip(verdicts) {
        let ours = values.iter().map(|value| mismatch(schema, value));
        for ((value, ours), python) in values.iter().zip(ours).zip(&verdicts) {
            assert_eq!(ours.is_ok(), *python, "{schema}: {value}: {ours:?}");
            refused += usize::from(!python);
        }
        assert!(verdicts[0], "{schema}: {}", values[0]);
    }
    // Except optional members and those of any type.
    let altered: usize = cases.iter().map(|(_, values)| values.len() - 1).sum();
    assert!(refused * 10 > altered * 9, "{refused} of {altered}");
}

#[test]
fn unknown_member_is_detected() {
    let known = json!({ "uuid": "x", "name": "y", "owner": "ada", "host": null });
    assert_eq!(mismatch("owner", &known), Ok(()));
    let more = json!({ "uuid": "x", "name": "y", "owner": "ada", "host": null, "since": 1 });
    assert_eq!(
        mismatch("owner", &more),
        Err("owner.since: is in no schema".to_owned())
    );
}
