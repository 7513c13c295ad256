//! Jobs that ran, but that the board refuses to settle.

use std::{fs, thread, time::Duration};

use rustix::process::Signal;
use serde_json::json;

use super::Stage;
use crate::support::{Peer, ZooKeeper, wait_until};

/// Returns a client with direct access to the nodes of a board, and the path of its jobs.
fn stranger(stage: &mut Stage) -> Option<(Peer, String)> {
    let server = stage.zookeeper_server()?;
    Some((Peer::on(&*server)?, server.path().to_owned()))
}

#[test]
fn job_with_a_child_node_is_reported_and_ends_no_drain() {
    need!(mut stage = Stage::zookeeper());
    need!((mut peer, path) = stranger(&mut stage));
    let job = stage.post("stuck", "echo stuck >> log");
    let below = format!("{path}/job0000000000/a child");
    peer.request(&json!({"do": "create", "path": below}));
    stage.post("fine", "echo fine >> log");
    let conductor = stage.start(&["--drain", "--name", "night"]);
    stage.says(&conductor, "not_settled");
    wait_until("it is in the registry", || {
        let listed = stage.env.json("conductors --json");
        listed[0]["unsettled"][0]["uuid"] == json!(job)
    });
    let shown = stage.env.run("conductors");
    let is_shown = shown.stderr.contains("night cannot settle") && shown.stderr.contains("a child");
    assert!(is_shown, "{shown}");
    let ended = conductor.ended();
    assert_eq!(ended.code, 7, "{ended}");
    assert_eq!(ended.stderr.matches("not_settled").count(), 1, "{ended}");
    ended.warns("unsettled=1");
    assert!(!ended.stderr.contains("board_"), "{ended}");
    assert_eq!(stage.log(), ["stuck", "fine"]);
    assert_eq!(stage.env.names(), ["stuck"]);

    let trash = format!("trash {job} --force --yes");
    let refused = stage.env.run(&trash);
    let message = refused.failed(1);
    assert!(message.contains("(a child)"), "{message}");
    let command = message
        .split('`')
        .find(|part| part.starts_with("zkCli.sh "));
    ZooKeeper::cli(command.unwrap().strip_prefix("zkCli.sh ").unwrap());
    stage.env.ok(&trash);
}

#[test]
fn job_is_settled_once_its_child_node_is_removed() {
    need!(mut stage = Stage::zookeeper());
    need!((mut peer, path) = stranger(&mut stage));
    stage.post("stuck", "echo stuck >> log");
    let below = format!("{path}/job0000000000/child");
    peer.request(&json!({"do": "create", "path": below}));
    let conductor = stage.start(&["--drain", "--name", "night"]);
    stage.says(&conductor, "not_settled");
    peer.request(&json!({"do": "delete", "path": below}));
    conductor.ended().succeeded();
    assert_eq!(stage.log(), ["stuck"]);
    assert_eq!(stage.env.names(), [""; 0]);
}

#[test]
fn conductor_ends_after_a_late_settlement() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    stage.post("a", "until [ -e go ]; do sleep 0.02; done; exit 1");
    let conductor = stage.start(&["--max-jobs", "1", "--retry-delay", "1h"]);
    stage.says(&conductor, "running_start");
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.says(&conductor, "not_settled");
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    let ended = conductor.ended();
    assert_eq!(ended.code, 7, "{ended}");
    assert!(ended.stderr.contains("job_abandoned"), "{ended}");
}

#[test]
fn lost_job_is_no_success() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let job = stage.post("a", "until [ -e go ]; do sleep 0.02; done");
    let conductor = stage.start(&["--drain"]);
    stage.says(&conductor, "running_start");
    server.run(&["FLUSHALL"]);
    fs::write(stage.env.file("go"), "").unwrap();
    let ended = conductor.ended();
    assert_eq!(ended.code, 7, "{ended}");
    assert!(ended.stderr.contains("claim_lost"), "{ended}");
    let named = format!("a {}", &job[..8]);
    assert!(ended.stderr.contains(&named), "{ended}");
}

#[test]
fn second_signal_leaves_jobs_that_an_absent_board_cannot_settle() {
    need!(mut stage = Stage::redis());
    stage.post("a", "until [ -e go ]; do sleep 0.02; done");
    let conductor = stage.start(&["--lease", "10m"]);
    stage.says(&conductor, "running_start");
    stage.stop_server();
    fs::write(stage.env.file("go"), "").unwrap();
    stage.says(&conductor, "running_end");
    conductor.signal(Signal::TERM);
    stage.says(&conductor, "stopping");
    // Earlier, it would be an echo of the first.
    thread::sleep(Duration::from_millis(300));
    conductor.signal(Signal::TERM);
    let ended = conductor.ended();
    ended.succeeded();
    for text in ["left_claimed", "wanted=consume", "unsettled=1"] {
        assert!(ended.stderr.contains(text), "{ended}");
    }
}

#[test]
fn refused_right_leaves_no_finished_job_unmentioned() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    stage.post("a", "until [ -e go ]; do sleep 0.02; done");
    let conductor = stage.start(&[]);
    stage.says(&conductor, "running_start");
    server.run(&["ACL", "SETUSER", "default", "-hdel"]);
    fs::write(stage.env.file("go"), "").unwrap();
    let ended = conductor.ended();
    assert_eq!(ended.code, 5, "{ended}");
    for text in ["left_claimed", "wanted=consume", "unsettled=1"] {
        assert!(ended.stderr.contains(text), "{ended}");
    }
}

#[test]
fn full_server_is_no_outage() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    stage.post("a", "until [ -e go ]; do sleep 0.02; done; exit 1");
    let conductor = stage.start(&["--retry-delay", "1h"]);
    stage.says(&conductor, "running_start");
    server.run(&["CONFIG", "SET", "maxmemory", "1"]);
    fs::write(stage.env.file("go"), "").unwrap();
    stage.says(&conductor, "not_settled");
    server.run(&["CONFIG", "SET", "maxmemory", "0"]);
    stage.says(&conductor, "job_abandoned");
    conductor.signal(Signal::TERM);
    let ended = conductor.ended();
    ended.succeeded();
    assert!(
        ended.stderr.contains("OOM") || ended.stderr.contains("memory"),
        "{ended}"
    );
    assert!(!ended.stderr.contains("board_unreachable"), "{ended}");
    assert!(!ended.stderr.contains("unsettled"), "{ended}");
}
