//! Traces: a job keeps the trace of its posting, and attempts are linked to it.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::{Stage, on_one_board};
use crate::support::{assert_contains, wait_until, words};

on_one_board!(attempts_are_linked_to_the_trace_of_the_posting);

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

fn parent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

fn attempts_are_linked_to_the_trace_of_the_posting(stage: &Stage) {
    let env = &stage.env;
    let script = "echo $TRACEPARENT $TRACESTATE >> log; [ $JOBBOARD_ATTEMPT = 2 ]";
    let post = ["post", "traced", "--trace", "--", "sh", "-c", script];
    let post = env.jobboard(&post).env("TRACEPARENT", parent());
    let traced = post.env("TRACESTATE", "a=1").run().posted();
    let details = &env.show(&traced)["details"];
    assert_eq!(details["traceparent"], parent());
    assert_eq!(details["tracestate"], "a=1");
    let plain = stage.post("plain", "echo \"<$TRACEPARENT>\" > plain");
    assert_eq!(env.show(&plain)["details"].get("traceparent"), None);

    let words = words("--otlp-file spans.jsonl --retry-delay 1ms --drain");
    let conducted = stage.conduct(&words).env("TRACEPARENT", parent()).run();
    conducted.succeeded();
    let text = fs::read_to_string(env.file("spans.jsonl")).unwrap();
    let spans: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone())
        .collect();
    assert_eq!(spans.len(), 3, "{text}");
    let of = |uuid: &str| -> Vec<&Value> {
        let is_of = |span: &&Value| attribute(span, "messaging.message.id") == uuid;
        spans.iter().filter(is_of).collect()
    };
    let printed: BTreeSet<_> = stage.log().into_iter().collect();
    for (span, outcome) in of(&traced).iter().zip(["failed", "consumed"]) {
        assert_eq!(attribute(span, "jobboard.outcome"), outcome, "{span}");
        assert_eq!(span["links"][0]["traceId"], TRACE);
        assert_eq!(span["links"][0]["spanId"], SPAN);
        // The attempt has its own trace, which the command receives.
        let (trace, id) = (&span["traceId"], &span["spanId"]);
        assert_ne!(trace, TRACE);
        let [trace, id] = [trace, id].map(|it| it.as_str().unwrap());
        let parent = format!("00-{trace}-{id}-01 a=1");
        assert!(printed.contains(&parent), "{printed:?}");
        conducted.warns(trace);
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let failed = of(&traced)[0];
    assert_eq!(failed["status"]["code"], 2, "{failed}");
    assert_eq!(attribute(failed, "process.exit.code"), "1");
    // The trace of the conductor is not the trace of the job.
    let plain = of(&plain)[0];
    assert_eq!(plain["links"].as_array().unwrap().len(), 0, "{plain}");
    let printed = fs::read_to_string(env.file("plain")).unwrap();
    assert_contains(&printed, plain["traceId"].as_str().unwrap());
    assert!(!printed.contains(TRACE), "{printed}");
}

fn attribute(span: &Value, key: &str) -> String {
    let mut attributes = span["attributes"].as_array().unwrap().iter();
    let value = &attributes.find(|it| it["key"] == key).unwrap()["value"];
    let value = value.get("stringValue").or_else(|| value.get("intValue"));
    value.unwrap().as_str().unwrap().to_owned()
}

#[test]
fn missing_or_invalid_trace_is_not_stored() {
    let stage = Stage::embedded().unwrap();
    let env = &stage.env;
    for (parent, message) in [(None, "not set"), (Some("00-what"), "is invalid")] {
        let mut post = env.jobboard(&["post", "a", "--trace", "--", "true"]);
        if let Some(parent) = parent {
            post = post.env("TRACEPARENT", parent);
        }
        let posted = post.run();
        posted.warns(message);
        let details = &env.show(&posted.posted())["details"];
        assert_eq!(details.as_object().unwrap().len(), 1, "{details}");
    }
    stage.post("b", "echo \"<$TRACEPARENT$TRACESTATE>\" >> log");
    let conduct = stage.conduct(&["--drain"]).env("TRACEPARENT", parent());
    conduct.run().succeeded();
    assert_eq!(stage.log(), ["<>"]);
    let line = "{\"name\":\"many\",\"details\":{\"traceparent\":\"own\"}}\n{\"name\":\"other\"}\n";
    let post = env.jobboard("post --trace --from -").stdin(line);
    let posted = post.env("TRACEPARENT", parent()).run();
    let uuids: Vec<_> = posted.succeeded().lines().collect();
    let kept = |uuid| env.show(uuid)["details"]["traceparent"].clone();
    assert_eq!(kept(uuids[0]), "own");
    assert_eq!(kept(uuids[1]), parent());
}

#[test]
fn claimed_command_continues_the_trace() {
    let stage = Stage::embedded().unwrap();
    let post = stage.env.jobboard(&["post", "a", "--trace"]);
    post.env("TRACEPARENT", parent()).run().posted();
    stage
        .env
        .ok("claim --next -- sh -c 'echo $TRACEPARENT > log'");
    let printed = stage.log().remove(0);
    assert!(
        printed.starts_with("00-") && !printed.contains(TRACE),
        "{printed}"
    );
}

#[test]
fn unwritable_span_file_is_reported() {
    let stage = Stage::embedded().unwrap();
    let refused = stage
        .conduct(&["--otlp-file", "none/spans", "--drain"])
        .run();
    refused.fails(1, "none/spans");
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    stage.post("a", "true");
    stage.post("b", "true");
    let conduct = stage.conduct(&["--otlp-file", "/dev/full"]).spawn();
    wait_until("all have run", || stage.env.names().is_empty());
    conduct.says("output_not_kept");
    assert_eq!(conduct.stderr().matches("output_not_kept").count(), 1);
}
