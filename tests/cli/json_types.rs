//! JSON values have their own types, never texts of them.

use serde_json::Value;

use crate::support::Env;

/// Finds texts that stand for a JSON value.
fn mistyped(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for item in items {
                mistyped(item, path, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                mistyped(member, &format!("{path}.{name}"), found);
            }
        }
        Value::String(text) => {
            // The lease of an unlimited claim has this name among others.
            let is_word = path.ends_with(".lease") && text == "none";
            let wrong = ["true", "false", "none", "null", "-", ""];
            if wrong.contains(&text.to_ascii_lowercase().as_str()) && !is_word {
                found.push(format!("{path} is {text:?}"));
            }
        }
        _ => {}
    }
}

#[test]
fn json_values_have_their_types() {
    let env = Env::new();
    let uuids = env.post_many(6);
    env.ok("claim @1 --who ada");
    env.trash("@2");
    let gone = "00000000-0000-4000-8000-000000000001";
    for words in [
        &["config"][..],
        &["list"],
        &["list", "--count"],
        &["list", "--trash"],
        &["conductors"],
        &["ping"],
        &["show", "@1"],
        &["show", "@1", "@2", "@3"],
        &["owner", "@1"],
        &["post", "resize"],
        &["post", "resize", "--dry-run"],
        &["claim", "@3"],
        &["claim", "--next", "--expiry", "1h"],
        &["extend", "@4", "--expiry", "2h"],
        &["abandon", "@3", "--dry-run"],
        &["abandon", "@3"],
        &["consume", "@4"],
        &["trash", "@5", "@6", "--force", "--yes"],
        &["restore", "@5"],
        &["purge", "@6", "--yes"],
        &["wait", gone, "--gone-ok"],
        &["list", "--history"],
        &["wait", &uuids[5]],
        &["wait", "--any"],
        &["watch", "--timeout", "50ms"],
        &["man"],
    ] {
        let run = env
            .jobboard(&[words, &["--json"]].concat())
            .env("JOBBOARD_WHO", "ada")
            .run();
        assert!(matches!(run.code, 0 | 9 | 124), "{run}");
        let mut found = Vec::new();
        for value in run.values() {
            mistyped(&value, words[0], &mut found);
        }
        assert_eq!(found, Vec::<String>::new(), "{words:?}: {run}");
    }
}
