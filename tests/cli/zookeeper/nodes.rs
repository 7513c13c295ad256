//! Malformed and foreign nodes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::on_board;
use crate::{
    conduct::Stage,
    interop::shared::{Shared, Side, pairs},
    support::{Host, Location, ZooKeeper},
};

/// Returns the data of a recorded case.
fn oddity(case: &str) -> String {
    let file = include_str!("../../../src/board/wire/fixtures/zk_reader_tolerance.json");
    let file: Value = serde_json::from_str(file).unwrap();
    let mut cases = file["vectors"].as_array().unwrap().iter();
    let found = cases.find(|found| found["case"] == case).unwrap();
    let hex = found["data_hex"].as_str().unwrap().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    // The peer takes bytes that may be no text.
    hex.chunks(2).map(|pair| char::from(byte(pair))).collect()
}

/// Creates a node with a good posting.
fn create(shared: &mut Shared<ZooKeeper>, name: &str) {
    let posting = oddity("good");
    shared.server.create(&mut shared.peer, name, &posting);
}

#[test]
fn unnumbered_job_ends_listings_of_taskflow_and_is_malformed() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let long = format!("job{}", "1".repeat(4301));
    let names = [
        "job",
        "jobx",
        "job1x",
        "job1.5",
        "job0x10",
        "job_1",
        "job1__0",
        "job+-1",
        "job½",
        "job²",
        "job1_0",
        "job 5 ",
        "job+7",
        "job-3",
        "job٣",
        "job99999999999999999999",
        &long,
    ];
    for name in names {
        create(&mut shared, name);
        let is_listed = shared.peer.ask(&json!({"do": "list"})).is_ok();
        let state = if is_listed { "UNCLAIMED" } else { "MALFORMED" };
        let listed = shared.env.json("list --json");
        assert_eq!(listed[0]["state"], state, "{name}: {listed}");
        let key = format!("key:{name}");
        if !is_listed {
            shared.env.fails(4, format!("claim '{key}'"));
            shared.env.fails(6, "claim --next");
        }
        shared.env.ok(format!("consume '{key}' --force --yes"));
        assert_eq!(shared.jobs().len(), 0, "{name}");
    }
    create(&mut shared, "jobx");
    shared.env.ok("trash key:jobx --force --yes");
    shared.env.run("restore key:jobx").fails(4, "no number");
    assert_eq!(shared.jobs().len(), 0);
    shared.env.ok("purge key:jobx --yes");
}

#[test]
fn foreign_nodes_are_no_jobs() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let job = shared.post(Side::Jobboard, "resize", "NORMAL", &json!({}));
    for name in ["other", "job0000000077.lock", ".job"] {
        create(&mut shared, name);
    }
    assert_eq!(shared.env.names(), ["resize"]);
    for (name, number) in [("job12", 12), ("job-0000000001", -1)] {
        create(&mut shared, name);
        let listed = shared.jobs();
        assert!(
            listed.iter().any(|job| job["sequence"] == number),
            "{listed:?}"
        );
    }
    shared.is(&job, "UNCLAIMED", None);
}

#[test]
fn trash_path_equals_that_of_taskflow_for_odd_paths() {
    for path in ["/job", "/jobs/jobs", "/a/ba/a", "/o/oo/o"] {
        need!(server = ZooKeeper::start());
        need!(mut shared = Shared::on(server.in_chroot(path)));
        for (trasher, restored) in pairs() {
            let job = shared.post(restored, "resize", "NORMAL", &json!({}));
            shared.does(restored, "claim", &job, "ada").unwrap();
            let before = shared.everything();
            let directories: BTreeSet<_> = before.as_object().unwrap().keys().cloned().collect();
            shared.does(trasher, "trash", &job, "ada").unwrap();
            assert!(
                on_board(&mut shared)
                    .iter()
                    .all(|(name, _)| !name.starts_with("job0"))
            );
            let after = shared.everything();
            let trashed: Vec<_> = after
                .as_object()
                .unwrap()
                .iter()
                .filter(|(path, node)| {
                    !directories.contains(*path) && node["data"].as_str().unwrap().contains(&job)
                })
                .map(|(path, _)| path.clone())
                .collect();
            assert_eq!(trashed.len(), 1, "{path}: {after}");
            assert!(trashed[0].contains("/.trash"), "{trashed:?}");
            assert_eq!(shared.env.state(&job), "TRASHED");
            shared.env.ok(format!("restore {job} --yes"));
            shared.is(&job, "UNCLAIMED", None);
            shared.does(Side::TaskFlow, "claim", &job, "bob").unwrap();
            shared.does(Side::Jobboard, "consume", &job, "bob").unwrap();
        }
    }
}

#[test]
fn taskflow_conductors_are_listed_until_they_leave() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let register = json!({"do": "register", "name": "night", "host": "host.example", "pid": 4711});
    shared.peer.request(&register);
    let listed = shared.env.json("conductors --json");
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let (host, pid, owner) = (&listed[0]["host"], &listed[0]["pid"], &listed[0]["owner"]);
    let expected = (&json!("host.example"), &json!(4711), &json!("night"));
    assert_eq!((host, pid, owner), expected);
    assert!(listed[0]["since"].is_string(), "{listed}");
}

#[test]
fn jobs_with_the_same_uuid_are_named_by_their_keys() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let uuid = shared.env.post("resize");
    let posting = shared
        .server
        .posting(&mut shared.peer, Location::Board, &uuid);
    let twin = "job0000000900";
    shared.server.create(&mut shared.peer, twin, &posting);
    let run = |words: &[&str]| shared.env.run(words);
    for sort in ["none", "age"] {
        run(&["list", "-o", "uuid", "--sort", sort]).prints(format!("key:{twin}"));
    }
    let before = run(&["list", "-o", "jsonl"]).stdout;
    for words in [
        &["trash", "--force", "--yes"][..],
        &["claim"],
        &["wait"],
        &["change", "--priority", "LOW"],
        &["show"],
        &["explain"],
    ] {
        let refused = run(&[words, &[&uuid]].concat());
        refused.failed(3);
        assert_eq!(
            refused.stderr.matches("key:job0000000").count(),
            2,
            "{refused}"
        );
    }
    assert_eq!(run(&["list", "-o", "jsonl"]).stdout, before);
    run(&["explain", &format!("key:{twin}"), "--json"]).shows("uuid-mismatch");
    let doctor = run(&["doctor", "--only", "uuid-mismatch"]);
    assert_eq!(doctor.code, 7, "{doctor}");
    let trash = ["trash", "-", "--force", "--yes"];
    let references = format!("{uuid}\nkey:{twin}\n");
    let trashed = shared.env.jobboard(&trash).stdin(references).run();
    trashed.exits(7, "matches several jobs");
    assert_eq!(run(&["list", "--count"]).stdout, "1\n");
    assert_eq!(shared.env.state(&uuid), "UNCLAIMED");
    assert_eq!(run(&["doctor", "--only", "uuid-mismatch"]).code, 0);
}

#[test]
fn board_is_no_broken_record_of_its_parent() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    env.post("resize");
    env.ok("consume @0 --force --yes");
    let parent = format!("zk://127.0.0.1:{}{}", server.port(), server.top());
    let on_parent = |words: &[&str]| env.run([words, &["--board", &parent]].concat());
    assert!(on_parent(&["list"]).succeeded().contains("MALFORMED"));
    for verb in ["trash", "consume"] {
        let forced = on_parent(&[verb, "--filter", "state=MALFORMED", "--force", "--yes"]);
        forced.fails(4, "the parent node of another board");
    }
    // The same board as before, which was used once.
    let listed = env.run("list");
    assert_eq!((listed.succeeded(), listed.stderr.as_str()), ("", ""));
    env.post("again");
}

#[test]
fn unused_board_differs_from_its_neighbour_in_the_trash() {
    need!(stage = Stage::zookeeper());
    let (env, server) = (&stage.env, stage.zookeeper_board().unwrap());
    env.post("resize");
    env.trash("@0");
    let mistyped = format!("zk://127.0.0.1:{}{}/job", server.port(), server.top());
    let list = env.run(["list", "--board", &mistyped]);
    list.exits(0, "no job was ever posted");
    let loss = "or the server lost all jobs";
    let config = format!("jobboard --board {mistyped} config");
    list.warns(format!("{loss}; check the board's address: `{config}`"));
    let check = env.run(["check", "--board", &mistyped]);
    check.shows(loss);
    check.shows(config);
}
