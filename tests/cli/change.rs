//! `jobboard change`.

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use crate::{
    dump::{
        OF_THE_BOARD, are_alike,
        boards::{Boards, records},
        fill,
        hostile::sha256,
    },
    support::{Env, Host, Peer, Server, ZooKeeper, members, play, wait_until, words},
};

/// Members that `change` itself writes.
const OF_THE_CHANGE: [&str; 4] = ["by", "action", "action_on", "reason"];

#[test]
fn changing_several_jobs_needs_the_name_of_a_protected_board() {
    let env = Env::new();
    env.post_many(2);
    let url = format!("sqlite:{}", env.board().display());
    env.configure(&format!(
        "default = \"prod\"\n[board.prod]\nurl = \"{url}\"\nprotected = true\n"
    ));
    let refused = env.run("change @1 @2 --priority HIGH");
    refused.fails(8, "--confirm prod");
    let refused = env.run("change @1 @2 --priority HIGH --json");
    assert_eq!(refused.error()["commands"], json!([]));
    env.ok("change @1 @2 --priority HIGH --dry-run");
    env.ok("change @1 --priority HIGH");
    env.ok("change @1 @2 --priority LOW --confirm prod");
    for verb in ["restore", "retry"] {
        env.ok("trash --force @1 @2 --confirm prod");
        let trash = env.run("list --trash -o uuid");
        let uuids: Vec<_> = trash.succeeded().lines().collect();
        let several = format!("{verb} {}", uuids.join(" "));
        env.run(&several).fails(8, "--confirm prod");
        env.ok(format!("{several} --confirm prod"));
    }
}

#[test]
fn key_is_changed_only_once() {
    play(
        r#"
        # contradictory options
        0 post resize a=1
        2 change @1 --set a=2 --set a=3 => the key `a` is given twice
        2 change @1 --set a=2 --unset a => the key `a` is given twice
        2 change @1 --set command:=[] -- true => the key `command` is given twice
        "#,
    );
}

#[test]
fn change_edits_the_chosen_parts_and_nothing_else() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        fill(&boards, &board);
        let before = boards.dumped(&board);
        let change = |words: &[&str]| boards.run(&board, &[&["change"][..], words].concat());
        let uuid = |at: usize| before[at]["uuid"].as_str().unwrap();
        let urgent = words("--priority very_high --reason now --json");
        let report = change(&[&[uuid(1)], &urgent[..]].concat()).json();
        assert_eq!(members(&report, "done name"), "changed low");
        change(&[uuid(3), "--name", "néw", "--set", "a=b", "--set", "n:=[1]"]).succeeded();
        change(&[
            uuid(2),
            "--details",
            "{\"x\":{\"y\":1.5}}",
            "--set",
            "z:=null",
        ])
        .succeeded();
        change(&[uuid(5), "--set", "p:=1", "--unset", "q"]).succeeded();
        change(&[uuid(5), "--unset", "p"]).succeeded();
        let after = boards.dumped(&board);
        assert_eq!(after[1]["priority"], "VERY_HIGH");
        assert_eq!(
            (&after[1]["by"], &after[1]["reason"]),
            (&after[3]["by"], &json!("now"))
        );
        assert_eq!(
            (&after[1]["action"], &after[3]["name"]),
            (&json!("changed"), &json!("néw"))
        );
        assert_eq!(after[3]["details"], json!({"a": "b", "n": [1]}));
        assert_eq!(after[2]["details"], json!({"x": {"y": 1.5}, "z": null}));
        assert_eq!(after[5]["raw"], before[5]["raw"], "{kind}");
        let but = [
            &OF_THE_BOARD[..],
            &OF_THE_CHANGE,
            &["name", "priority", "details", "raw", "size"],
        ];
        for (before, after) in before.iter().zip(&after) {
            let mut named = after.clone();
            named["name"] = before["name"].clone();
            are_alike(std::slice::from_ref(before), &[named], &but.concat());
        }
        // A failed job is still delayed, and an urgent one is next.
        assert_eq!(
            (&after[3]["attempts"], after[3]["not_before"].is_null()),
            (&json!(1), false)
        );
        let next = boards.run(&board, &["claim", "--next", "--json"]).json();
        assert_eq!(next["name"], "rich");
        let next = boards.run(&board, &["claim", "--next", "--json"]).json();
        assert_eq!(next["name"], "low", "{kind}");
    }
}

#[test]
fn impossible_changes_leave_the_job_unchanged() {
    let boards = Boards::new();
    let board = boards.another("embedded");
    fill(&boards, &board);
    let before = boards.dumped(&board);
    let uuid = |at: usize| before[at]["uuid"].as_str().unwrap();
    let change = |words: &[&str]| boards.run(&board, &[&["change"][..], words].concat());
    let claimed = change(&[uuid(4), "--priority", "LOW"]);
    claimed.fails(4, "claimed by ada");
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(1 << 20));
    fs::write(boards.env.file("large"), large).unwrap();
    change(&[uuid(5), "--details", "@large"]).failed(2);
    for words in [
        &[][..],
        &["--priority", "URGENT"],
        &["--name", ""],
        &["--details", "[]"],
        &["--set", "x"],
    ] {
        change(&[&[uuid(5)][..], words].concat()).failed(2);
    }
    assert_eq!(boards.dumped(&board), before);
    change(&[uuid(4), uuid(5), "--priority", "LOW"]).has_code(7);
    assert_eq!(boards.dumped(&board)[5]["priority"], "LOW");
}

#[test]
fn trashed_job_is_changed_in_the_trash_and_retried() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        let run = |words: &[&str]| boards.run(&board, words);
        let job = run(&["post", "backup", "max_attempts:=1", "--", "false"]).posted();
        run(&["claim", &job, "--", "false"]).failed(1);
        let before = run(&["show", &job, "--json"]).json();
        assert_eq!(before["state"], "TRASHED", "{kind}: {before}");
        let changed = run(&["change", &job, "--reason", "typo", "--", "true"]);
        changed.succeeded();
        let next = format!("retry {}`", &job[..8]);
        assert!(changed.stderr.contains(&next), "{kind}: {changed}");
        let after = run(&["show", &job, "--json"]).json();
        assert_eq!(
            after["details"]["command"],
            json!(["true"]),
            "{kind}: {after}"
        );
        assert_eq!(members(&after, "action reason"), "changed typo");
        for key in words("state attempts failures trashed_on sequence created_on") {
            assert_eq!(after[key], before[key], "{kind}: {key}");
        }
        run(&["retry", &job]).succeeded();
        run(&["claim", &job, "--", "sh", "-c", "exit 9"]).failed(9);
        let words = ["change", &job, "--priority", "LOW"];
        run(&["change", &job, "--set", "command=echo hi"]).warns("`-- COMMAND` sets a command");
        run(&["purge", &job, "--yes"]).succeeded();
        run(&words).failed(3);
    }
}

#[test]
fn unknown_parts_of_a_posting_keep_their_bytes() {
    let boards = Boards::new();
    for kind in ["redis", "zookeeper"] {
        if !boards.kinds().contains(&kind) {
            continue;
        }
        let (from, to) = (boards.another(kind), boards.another(kind));
        boards.ok(&from, "post a n:=1");
        boards.ok(&from, "dump it");
        let mut record = records(&boards.env, "it").remove(0);
        let mut raw = BASE64.decode(record["raw"].as_str().unwrap()).unwrap();
        let odd: &[u8] = match kind {
            "redis" => {
                raw[0] += 1;
                b"\xa5extra\xc7\x03\x63abc"
            }
            _ => {
                raw.pop();
                b",  \"extra\" : [1e5,\"\\u00e9\"] }"
            }
        };
        raw.extend(odd);
        record["raw"] = BASE64.encode(&raw).into();
        let text = fs::read_to_string(boards.env.file("it")).unwrap();
        let body = format!("{}\n{record}\n", text.lines().next().unwrap());
        let end = json!({
            "end": true, "jobs": 1, "trash": 0, "malformed": 0, "sha256": sha256(&boards, &body),
        });
        fs::write(boards.env.file("odd"), format!("{body}{end}\n")).unwrap();
        boards.ok(&to, "load odd");
        let job = record["uuid"].as_str().unwrap();
        let change = format!("change {job} --priority LOW --name b --set m=2");
        boards.run(&to, &words(&change)).succeeded();
        let now = boards.dumped(&to).remove(0);
        let raw = BASE64.decode(now["raw"].as_str().unwrap()).unwrap();
        assert!(raw.ends_with(odd), "{kind}: {raw:?}");
        let facts = (&now["name"], &now["priority"], &now["details"]);
        assert_eq!(
            facts,
            (&json!("b"), &json!("LOW"), &json!({"n": 1, "m": "2"}))
        );
    }
}

#[test]
fn concurrent_changes_are_all_applied() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        let job = boards.run(&board, &["post", "a"]).posted();
        let facts: Vec<_> = (0..8).map(|at| format!("k{at}:={at}")).collect();
        let runs: Vec<_> = facts
            .iter()
            .map(|fact| boards.on(&board, &["change", &job, "--set", fact]).spawn())
            .collect();
        let ended: Vec<_> = runs.into_iter().map(|run| run.ended()).collect();
        let details = boards.run(&board, &["show", &job, "--json"]).json()["details"].clone();
        assert!(ended.iter().any(|run| run.code == 0), "{ended:?}");
        for (at, run) in ended.iter().enumerate() {
            assert!([0, 4].contains(&run.code), "{run}");
            let is_there = details.get(format!("k{at}")).is_some();
            assert_eq!(is_there, run.code == 0, "{kind}: {details} {run}");
        }
    }
}

/// Requires that TaskFlow reads a changed job, and that a listener receives an event.
fn taskflow_reads_it<H: Host>(server: Option<H>) {
    let boards = Boards::new();
    need!(server = server);
    need!(mut peer = Peer::on(&server));
    let posted = peer.request(&json!({
        "do": "post", "name": "peers", "priority": "LOW", "details": {"a": [1, "é"]},
    }));
    let (board, job) = (server.board(), posted.as_str().unwrap());
    let watch = ["watch", "--json", "--event", "restored", "--count", "1"];
    let mut watch = boards.on(&board, &watch).spawn();
    let change = format!("change {job} --priority HIGH --set b=2 --reason why");
    // The listener may start late.
    wait_until("it is reported", || {
        boards.run(&board, &words(&change)).warns("Python services");
        watch.has_ended()
    });
    let report: Value = serde_json::from_str(watch.ended().stdout.trim()).unwrap();
    assert_eq!(members(&report, "event reason"), "restored why");
    // A peer on ZooKeeper that has listed the job keeps the old version.
    let mut peer = Peer::on(&server).unwrap();
    let listed = peer.request(&json!({"do": "list"}));
    let facts = (&listed[0]["priority"], &listed[0]["details"]);
    assert_eq!(facts, (&json!("HIGH"), &json!({"a": [1, "é"], "b": "2"})));
    peer.request(&json!({"do": "claim", "uuid": job, "who": "py"}));
    peer.request(&json!({"do": "consume", "uuid": job, "who": "py"}));
}

#[test]
fn taskflow_on_redis_reads_a_changed_job() {
    taskflow_reads_it(<Server as Host>::start());
}

#[test]
fn taskflow_on_zookeeper_reads_a_changed_job() {
    taskflow_reads_it(<ZooKeeper as Host>::start());
}
