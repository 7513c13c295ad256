//! Events before the start of a watch.

use chrono::{DateTime, Utc};

use super::*;
use crate::support::{members, words};

on_every_board!(watch_can_begin_with_past_events,);

fn watch_can_begin_with_past_events(stage: &Stage) {
    let done = stage.env.post("done");
    let failed = stage.env.post("failed");
    let purged = stage.env.post("purged");
    run(stage, &["claim", &done, "--", "true"]).succeeded();
    let consume = ["--on-failure", "consume", "--", "false"];
    run(stage, &[&["claim", failed.as_str()], &consume[..]].concat()).failed(1);
    run(stage, &["trash", "--force", "--yes", &purged]).succeeded();
    run(stage, &["purge", "--yes", &purged, "--reason", "too old"]).succeeded();
    let waiting = stage.env.post("waiting");
    run(stage, &["change", &waiting, "--priority", "high"]).succeeded();
    let watch = ["watch", "--since", "1h", "--json"];
    let watching = stage.env.jobboard(&watch).spawn();
    let events_of = |lines: Vec<String>| -> Vec<Value> {
        let lines = lines.iter();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let before = events_of(watching.prints(10));
    let of = |name: &str| -> Vec<(&str, &Value)> {
        let of_it = before.iter().filter(|event| event["name"] == name);
        of_it
            .map(|event| (event["event"].as_str().unwrap(), &event["outcome"]))
            .collect()
    };
    let none = &Value::Null;
    let (consumed, given_up, gone) = (&json!("consumed"), &json!("failed"), &json!("purged"));
    let until = |end| vec![("posted", none), ("claimed", none), end];
    assert_eq!(of("done"), until(("consumed", consumed)));
    assert_eq!(of("failed"), until(("consumed", given_up)));
    assert_eq!(of("purged"), [("posted", none), ("purged", gone)]);
    assert_eq!(of("waiting"), [("posted", none), ("restored", none)]);
    let times = before.iter().map(|event| event["time"].as_str().unwrap());
    let times: Vec<DateTime<Utc>> = times.map(|time| time.parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let purge = before.iter().find(|event| event["event"] == "purged");
    assert_eq!(purge.unwrap()["reason"], "too old");
    // Later events are reported once, immediately.
    let change = ["change", &waiting, "--priority", "low", "--reason", "live"];
    run(stage, &change).succeeded();
    stage.env.post("later");
    let live = &events_of(watching.prints(12))[10..];
    assert_eq!(
        members(&live[0], "event name reason"),
        "restored waiting live"
    );
    assert_eq!(members(&live[1], "event name"), "posted later");
    // A filter selects among them.
    let select = words("--filter outcome=failed --event consumed --count 1");
    let only = run(stage, &[&watch[..], &select].concat());
    assert_eq!(only.json()["name"], "failed");
}
