//! The output of `list -o jsonl` as input for `load` and `post --from`.

use serde_json::json;

use crate::support::column;

use super::{OF_THE_BOARD, OF_THE_KIND, are_alike, boards::Boards, fill};

#[test]
fn listed_jobs_can_be_loaded() {
    let boards = Boards::new();
    for (from, to) in [
        ("embedded", "redis"),
        ("redis", "zookeeper"),
        ("zookeeper", "embedded"),
    ] {
        if !boards.kinds().contains(&from) || !boards.kinds().contains(&to) {
            continue;
        }
        let (from, to) = (boards.another(from), boards.another(to));
        fill(&boards, &from);
        for words in [
            &["list", "-o", "jsonl"][..],
            &["list", "-o", "jsonl", "--trash"],
        ] {
            let listed = boards.run(&from, words);
            let loaded = boards
                .on(&to, &["load", "-"])
                .stdin(listed.succeeded())
                .run();
            loaded.succeeded();
        }
        let by_name = |mut all: Vec<serde_json::Value>| {
            all.sort_by_key(|job| job["name"].to_string());
            all
        };
        let (before, after) = (by_name(boards.dumped(&from)), by_name(boards.dumped(&to)));
        are_alike(&before, &after, &[&OF_THE_BOARD[..], &OF_THE_KIND].concat());
    }
}

#[test]
fn dumps_without_headers_can_follow_each_other() {
    let boards = Boards::new();
    let to = boards.another("embedded");
    let dump = |name: &str| {
        let from = boards.another("embedded");
        boards.ok(&from, format!("post {name}"));
        let dump = boards.run(&from, &["dump"]);
        let lines = dump.succeeded().lines().skip(1);
        lines.map(|it| format!("{it}\n")).collect::<String>()
    };
    let all = dump("one") + &dump("two");
    boards.on(&to, &["load", "-"]).stdin(all).run().succeeded();
    assert_eq!(column(&boards.dumped(&to), "name"), ["one", "two"]);
}

#[test]
fn listed_jobs_can_be_posted_and_ended_ones_cannot() {
    let boards = Boards::new();
    let (from, to) = (boards.another("embedded"), boards.another("embedded"));
    fill(&boards, &from);
    let listed = boards.run(&from, &["list", "-o", "jsonl"]);
    boards
        .on(&to, &["post", "--from", "-"])
        .stdin(listed.succeeded())
        .run()
        .succeeded();
    assert_eq!(boards.dumped(&to).len(), 6);
    let job = boards.run(&from, &["post", "done"]).posted();
    boards.ok(&from, format!("consume {job} --force --yes"));
    let past = boards.run(&from, &["list", "--history", "-o", "jsonl"]);
    for words in [&["post", "--from", "-"][..], &["load", "-"]] {
        let refused = boards.on(&to, words).stdin(past.succeeded()).run();
        refused.exits(7, "from the history, which keeps no details");
    }
    assert_eq!(boards.dumped(&to).len(), 6);
    // A truncated oversized job is not valid.
    let line = json!({"name": "x", "details": null, "size": 9, "raw": "e30="}).to_string();
    let refused = boards.on(&to, &["post", "--from", "-"]).stdin(line).run();
    refused.warns("too large");
    boards.ok(&from, "dump it");
    let refused = boards.run(&to, &["post", "--from", "it"]);
    refused.warns("this is a dump: use `jobboard load`");
}
