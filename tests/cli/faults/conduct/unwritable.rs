//! Servers that refuse writes for a moment, during a renewal.

use std::fs;

use serde_json::json;

use crate::{
    conduct::Stage,
    support::{Server, wait_until},
};

/// The server refuses writes across a renewal while a command runs, which then ends.
fn survives(stage: &Stage, code: &str, begin: impl FnOnce(&Server), end: impl FnOnce(&Server)) {
    let server = stage.redis_server().unwrap();
    let script = "echo begun >> log; while [ ! -e go ]; do sleep 0.05; done; echo ended >> log";
    stage.post("long", script);
    let conductor = stage.start(&["--max-jobs", "1", "--lease", "6s"]);
    stage.logged(1);
    begin(server);
    wait_until("a renewal is refused", || {
        let refused = server.run(&["INFO", "errorstats"]);
        refused.contains(&format!("errorstat_{code}:"))
    });
    end(server);
    fs::write(stage.env.file("go"), "").unwrap();
    let run = conductor.ended();
    run.succeeded();
    assert!(!run.stderr.contains("claim_lost"), "{run:?}");
    assert_eq!(stage.log(), ["begun", "ended"]);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
}

#[test]
fn failed_save_of_the_server_costs_no_claim() {
    need!(stage = Stage::redis());
    let begin = |server: &Server| {
        let directory = server.run(&["CONFIG", "GET", "dir"]);
        // A directory in place of the file makes saving fail.
        fs::create_dir(format!("{}/dump.rdb", directory.lines().last().unwrap())).unwrap();
        server.run(&["CONFIG", "SET", "save", "3600 1"]);
        server.run(&["BGSAVE"]);
        wait_until("it could not save", || {
            let info = server.run(&["INFO", "persistence"]);
            info.contains("rdb_last_bgsave_status:err")
        });
    };
    survives(&stage, "MISCONF", begin, |server| {
        server.run(&["CONFIG", "SET", "save", ""]);
    });
}

#[test]
fn temporary_replica_costs_no_claim() {
    need!(stage = Stage::redis());
    let replicate = |of: [&'static str; 2]| {
        move |server: &Server| {
            server.run(&["REPLICAOF", of[0], of[1]]);
        }
    };
    let begin = replicate(["127.0.0.1", "1"]);
    survives(&stage, "READONLY", begin, replicate(["NO", "ONE"]));
}
